"""Counts requests, decisions and verdicts as plain numbers, which `network/http/families.py`
renders as metrics when they are scraped.

Rule: counting costs a dictionary entry or a list element, and never a lock, a label lookup or a
lasting allocation. Values that clients choose (client ids, software, topics, principals) are never
labels, so clients cannot make a node's memory grow.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Protocol

from ...policies.verdict import Finding, PolicyOutcome, RuleAction
from ...protocol.acls import AclOperation, AclResourceType
from ...store.base import SessionState

BOUNDS = (
    0.000_1,
    0.000_25,
    0.000_5,
    0.001,
    0.002_5,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
"""Upper bounds of the latency buckets, in seconds, from a cached read to Kafka's default
timeout.
"""


class LatencyHistogram:
    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        """The counts by bound; the last one is for durations above all bounds."""
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


FAILED = "failed"
"""The label for a rule that could not be evaluated, in place of an action."""


class VerdictMetrics:
    """Counts of a node's policy verdicts. Counts are kept only for rules in force, because rule
    files may introduce new rule names at any time, and for each of these from 0 on, because an
    increase from nothing to 1 is none to Prometheus.
    """

    def __init__(self) -> None:
        self.verdicts: Counter[tuple[str, str, str]] = Counter()
        """Counts by policy, rule (empty if the policy has none) and decision."""
        self.findings: Counter[tuple[str, str]] = Counter()
        """Counts by rule and action of all findings, also of those that decided nothing."""
        self.latencies = LatencyHistogram()

    def found(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.findings[finding.rule, finding.action.value if finding.error is None else FAILED] += 1

    def follow(self, policy: str, rules: Mapping[str, RuleAction]) -> None:
        """Count for this policy and these rules from now on. Keep what was counted of policies, and
        of the rules that are still in force.
        """
        findings = dict.fromkeys(
            ((rule, label) for rule, action in rules.items() for label in (action.value, FAILED)), 0
        )
        verdicts = dict.fromkeys([(policy, "", outcome.value) for outcome in PolicyOutcome], 0)
        verdicts |= dict.fromkeys([(policy, rule, PolicyOutcome.VIOLATED.value) for rule in rules], 0)
        findings.update({key: count for key, count in self.findings.items() if key[0] in rules})
        kept = (item for item in self.verdicts.items() if item[1] and (not item[0][1] or item[0][1] in rules))
        verdicts.update(kept)
        self.findings, self.verdicts = Counter(findings), Counter(verdicts)


class AuthorizationMetrics:
    def __init__(self) -> None:
        self.denied: Counter[tuple[AclOperation, AclResourceType]] = Counter()
        """Counts of denied actions on resources that clients named."""
        self.faults = 0
        """How often an authorizer of the user's failed, which denies."""


class AuditState(Protocol):
    """The figures of an audit log that are shown as metrics."""

    @property
    def written_events(self) -> int: ...

    @property
    def waiting_events(self) -> int:
        """The number of events that are not durable yet."""

    @property
    def lag_seconds(self) -> float:
        """The age of the oldest event that is not durable yet, in seconds."""

    @property
    def dropped_events(self) -> int: ...

    @property
    def failed_writes(self) -> int: ...

    @property
    def refused_requests(self) -> int:
        """The number of requests that were refused because the log could not be written."""

    @property
    def syncs(self) -> int: ...


class NodeMetrics:
    def __init__(self, audit: AuditState | None = None) -> None:
        self.elections_won = 0
        self.unclean_elections = 0
        """Partitions that got leaders which were not in sync while this node was the controller."""
        self.commits = 0
        """Commits that took effect while this node was the controller."""
        self.committed_elements = 0
        self.session_changes: Counter[str] = Counter()
        """Counts by the new state of the session."""
        self.decisions: Counter[tuple[int, int]] = Counter()
        """Counts by API and error code of the elements that this node decided as the controller."""
        self.would_be_refused: Counter[tuple[str, str]] = Counter()
        """Counts by policy and rule of those that would be refused if these were enforced."""
        self.authorization = AuthorizationMetrics()
        self.audit = audit

    def session_changed(self, session: SessionState) -> None:
        self.session_changes[session.value] += 1

"""What is counted while requests are answered: plain numbers, made into Prometheus' form only when
somebody asks (`http/exposition.py`).

Rule: to count costs a dictionary entry or a list element, never a lock, a label lookup or an
allocation that stays. Nothing that a stranger chooses (client ids, software, topics, principals) is
ever a label: what they can make us remember is bounded by our own tables.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable
from typing import Protocol

from ...policies.verdict import Finding
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ..store.base import SessionState

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
"""Upper bounds of the latency buckets, in seconds: from a read out of the image to Kafka's default
timeout.
"""
NEWER_THAN_OURS = -1
"""Stands for every version of ApiVersions that we do not speak (KIP-511): the client chose it."""


class Latencies:
    """A histogram of durations: how many took at most so long, and their sum."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        """The last one is for what took longer than all bounds."""
        self.seconds = 0.0

    def observe(self, seconds: float) -> None:
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class RequestMetrics:
    """Counts the requests that a node answered."""

    __slots__ = ("latencies", "outcomes")

    def __init__(self) -> None:
        self.outcomes: dict[tuple[int, int, int], int] = {}
        """By API, version and error code."""
        self.latencies: dict[int, Latencies] = {}
        """By API, from the frame's arrival until its answer is encoded."""

    def answered(self, api_key: int, version: int, error_code: int, seconds: float) -> None:
        """Count an answered request by the first error code of its response, 0 if there is none."""
        key, outcomes = (api_key, version, error_code), self.outcomes
        try:
            outcomes[key] += 1
        except KeyError:
            outcomes[key] = 1
        latencies = self.latencies.get(api_key)
        if latencies is None:
            latencies = self.latencies[api_key] = Latencies()
        latencies.observe(seconds)

    def refused_version(self) -> None:
        """Count an ApiVersions request newer than ours, which is answered in the oldest form."""
        key = (int(ApiKey.API_VERSIONS), NEWER_THAN_OURS, int(ErrorCode.UNSUPPORTED_VERSION))
        self.outcomes[key] = self.outcomes.get(key, 0) + 1


FAILED = "failed"
"""In the place of an action, for a rule that could not be evaluated."""


class VerdictMetrics:
    """Counts what a node's policy said. Of rules only those in force are remembered: files may name
    others every day.
    """

    def __init__(self) -> None:
        self.verdicts: Counter[tuple[str, str, str]] = Counter()
        """By policy, rule (empty where the policy has none) and decision."""
        self.findings: Counter[tuple[str, str]] = Counter()
        """By rule and action: all that rules had against requests, also where another one decided,
        or none.
        """
        self.latencies = Latencies()

    def found(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            self.findings[finding.rule, finding.action.value if finding.error is None else FAILED] += 1

    def keep(self, rules: Container[str]) -> None:
        """Forget what was counted of rules that are not in force any more."""
        self.findings = Counter({key: count for key, count in self.findings.items() if key[0] in rules})
        self.verdicts = Counter({key: count for key, count in self.verdicts.items() if not key[1] or key[1] in rules})


class AuditState(Protocol):
    """The figures of an audit log."""

    @property
    def written_events(self) -> int: ...

    @property
    def waiting_events(self) -> int:
        """How many events were decided and are not durable yet."""

    @property
    def lag_seconds(self) -> float:
        """The age of the oldest event that waits."""

    @property
    def dropped_events(self) -> int: ...

    @property
    def failed_writes(self) -> int: ...

    @property
    def refused_requests(self) -> int:
        """How many requests were refused because the log could not be written."""

    @property
    def syncs(self) -> int:
        """How often events were forced to the disk."""


class NodeMetrics:
    """What a node counts that belongs to none of its parts alone."""

    def __init__(self) -> None:
        self.elections_won = 0
        self.commits = 0
        """Commits that took effect while this node was the controller."""
        self.committed_elements = 0
        self.session_changes: Counter[str] = Counter()
        """By the store's new state."""
        self.decisions: Counter[tuple[int, int]] = Counter()
        """Elements of requests that this node decided as the controller, by API and error code."""
        self.audit: AuditState | None = None

    def session_changed(self, session: SessionState) -> None:
        self.session_changes[session.value] += 1

"""What is counted while requests are answered: plain numbers, made into Prometheus' form only when
somebody asks (`http/exposition.py`).

Rule: to count costs a dictionary entry or a list element, never a lock, a label lookup or an
allocation that stays. Nothing that a stranger chooses (client ids, software, topics, principals) is
ever a label: what they can make us remember is bounded by our own tables.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

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
LOOKED_AT = 16
"""Rows of a read's answer that are looked at for its outcome: whoever makes more notes the first
error (`long_answers.py`).
"""
NEWER_THAN_OURS = -1
"""Stands for every version of ApiVersions that we do not speak (KIP-511): the client chose it."""

_READ_ROWS: dict[int, str] = {
    ApiKey.METADATA: "topics",
    ApiKey.DESCRIBE_CONFIGS: "results",
    ApiKey.DESCRIBE_GROUPS: "groups",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: "topics",
    ApiKey.FIND_COORDINATOR: "coordinators",
}
"""The field of a read's response that holds its rows."""


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

    __slots__ = ("_entities", "_readers", "latencies", "outcomes")

    def __init__(self, entities: Mapping[int, str]) -> None:
        """`entities` names the field of a response to a change that holds its rows, by API. The
        responses that have no rows carry an error code of their own.
        """
        self._entities = entities
        self.outcomes: dict[tuple[int, int, int], int] = {}
        """By API, version and error code."""
        self.latencies: dict[int, Latencies] = {}
        """By API, from the frame's arrival until its answer is encoded."""
        self._readers: dict[int, Callable[[Any], int]] = {}

    def answered(self, api_key: int, version: int, response: Any, seconds: float, first_error: int = 0) -> None:
        """Count an answered request; `first_error` is that of its rows, if it is known already."""
        reader = self._readers.get(api_key)
        if reader is None:
            reader = self._readers[api_key] = self._outcome_reader(api_key)
            self.latencies[api_key] = Latencies()
        key = (api_key, version, first_error or reader(response))
        outcomes = self.outcomes
        try:
            outcomes[key] += 1
        except KeyError:
            outcomes[key] = 1
        self.latencies[api_key].observe(seconds)

    def refused_version(self) -> None:
        """Count an ApiVersions request newer than ours, which is answered in the oldest form."""
        key = (int(ApiKey.API_VERSIONS), NEWER_THAN_OURS, int(ErrorCode.UNSUPPORTED_VERSION))
        self.outcomes[key] = self.outcomes.get(key, 0) + 1

    def _outcome_reader(self, api_key: int) -> Callable[[Any], int]:
        """Make a function that returns the first error code of this API's responses, or 0."""
        if api_key in self._entities:
            return partial(_first_error, attrgetter(self._entities[api_key]))
        if api_key in _READ_ROWS:
            return partial(_error_among_first_rows, attrgetter(_READ_ROWS[api_key]))
        return _own_code


def _first_error(rows: Callable[[Any], Iterable[Any]], response: Any) -> int:
    for row in rows(response):
        code: int = getattr(row, "error_code", 0)  # one that is encoded already had its error noted, if any
        if code:
            return code
    return 0


def _error_among_first_rows(rows: Callable[[Any], Sequence[Any]], response: Any) -> int:
    code = _own_code(response)
    for row in rows(response)[:LOOKED_AT]:
        if code:
            break
        code = getattr(row, "error_code", 0)  # a row that is encoded already tells none
    return code


def _own_code(response: Any) -> int:
    code: int = getattr(response, "error_code", 0)
    return code


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

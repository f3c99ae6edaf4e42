"""The interface of a timeline, which a back-test replays: the recorded one or the counterfactual
one, and what it answers about a request.
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from ...audit.event import AuditEvent, Decision, RecordedState, Requested
from ...policies.interface import ClusterState, JudgedRequest


class CandidateQuestion(msgspec.Struct, frozen=True):
    """A request, and the cluster, that a candidate is asked about."""

    request: JudgedRequest
    cluster: ClusterState
    before: RecordedState | None = None
    """The topic before the request, where it is not as recorded."""
    requested: Requested | None = None


class NotApplicable(msgspec.Struct, frozen=True):
    """The reason why a recorded request is impossible in the counterfactual timeline (moot)."""

    why: str
    """`no-topic`, `topic-exists`, `partitions`, `no-partition` or `unknown-request`."""
    text: str


class Timeline(Protocol):
    """The states of a cluster's topics, event by event, as the candidate sees them."""

    @property
    def is_known(self) -> bool: ...

    def question(self, event: Decision) -> CandidateQuestion | NotApplicable | None:
        """Return what to ask about a decision that has not been applied yet; None if the policy is
        not asked about it.
        """

    def decided(self, event: Decision, *, allowed: bool | None) -> None:
        """Take the candidate's verdict on a decision, before the decision is applied; None if it
        was not asked, because its verdict does not count at that time.
        """

    def fits(self, topic: str, before: bytes) -> bool:
        """Whether it is certain that a topic is as this JSON says."""

    def takes(self, topic: str, after: bytes) -> None:
        """Take a change that fits, by the JSON of the topic's new state."""

    def wrote(self, topic: str, after: bytes) -> None:
        """Note the JSON of what the event that was applied last made of its topic."""

    def apply(self, event: AuditEvent) -> Iterator[str]:
        """Apply the next event, and yield a sentence for each contradiction."""

    def lost(self) -> None:
        """Note that events are missing at this point."""

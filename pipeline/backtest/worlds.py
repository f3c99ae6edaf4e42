"""The questions that a back-test asks of the course of events, recorded or counterfactual.

Rule: the same questions for history as it was and for history as it would have been.
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from ...audit.event import AuditEvent, Decision, RecordedState, Requested
from ...policies.interface import ClusterState, JudgedRequest


class Asked(msgspec.Struct, frozen=True):
    """A request, and the cluster, that a candidate is asked about."""

    request: JudgedRequest
    cluster: ClusterState
    before: RecordedState | None = None
    """The topic before the request, where it is not as recorded."""
    requested: Requested | None = None


class Moot(msgspec.Struct, frozen=True):
    """The reason why a recorded request would be impossible, or another one, in this world."""

    why: str
    """`no-topic`, `topic-exists`, `partitions`, `no-partition` or `unknown-request`."""
    text: str


class World(Protocol):
    """The course of events, as far as a candidate can see it."""

    @property
    def is_known(self) -> bool:
        """Whether all topics are known."""

    def question(self, event: Decision) -> Asked | Moot | None:
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
        """Go on to the moment after the event, and yield sentences about what contradicts what is
        known.
        """

    def lost(self) -> None:
        """Note that events are missing at this point."""

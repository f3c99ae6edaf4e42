"""The recorded timeline: each topic takes its next state from the log.

Most events need no decoding of states: the JSON of the state before the event is compared with the
JSON after the previous one. A state is decoded when a policy reads it. An event whose states cannot
be compared in this way is decoded and replayed.
"""

from collections.abc import Iterator, Mapping

from immutables import Map

from ...audit.event import AuditEvent, Decision, RecordedState
from ...audit.replay import Replay
from ...audit.replayed_topics import ReplayedCluster
from ...policies.interface import ClusterState, TopicState
from ...policies.topic_counts import TopicCounts
from .lines import state_of
from .timelines import CandidateQuestion

NONE = b"null"


class RecordedTimeline:
    """The topics as they were, event by event."""

    def __init__(self, topics: Mapping[str, RecordedState] | None = None) -> None:
        self._replay = Replay(topics)
        self._told: dict[str, bytes] = {}
        """The JSON of the states that the replay knows, by topic, as the log wrote it."""
        self.untold: Map[str, bytes] = Map()
        """The JSON of newer states that the replay has not taken yet, by topic."""
        self.moment = 0
        """How many events were taken."""

    @property
    def is_known(self) -> bool:
        return self._replay.is_known

    def fits(self, topic: str, before: bytes) -> bool:
        if not self._replay.is_known:
            return False
        known = self.untold.get(topic) or self._told.get(topic)
        if known is not None:
            return before == known
        state = self._replay.topics.get(topic)
        return before == NONE if state is None else before != NONE and state_of(before) == state

    def takes(self, topic: str, after: bytes) -> None:
        """Take a change that fits, by the JSON of the topic's new state."""
        self.moment += 1
        if after != NONE or topic in self._replay.topics:
            self.untold = self.untold.set(topic, after)
        elif topic in self.untold:
            self.untold = self.untold.delete(topic)

    def question(self, event: Decision) -> CandidateQuestion | None:
        """Return what a policy was asked, or would have been."""
        if event.assumed:
            self.catch_up(*(each.topic for each in event.assumed))
        question = self._replay.question(event)
        if question is None:
            return None
        request, cluster = question
        untold = self.untold
        for topic in filter(untold.__contains__, self._replay.validated):
            untold = untold.delete(topic)
        return CandidateQuestion(request, _LazyCluster(self, event, cluster, untold) if untold else cluster)

    def decided(self, event: Decision, *, allowed: bool | None) -> None:
        """Ignore the candidate's verdict."""

    def apply(self, event: AuditEvent) -> Iterator[str]:
        self.moment += 1
        topic = event.name if isinstance(event, Decision) else getattr(event, "topic", None)
        if topic is not None:
            self.catch_up(topic)
            self._told.pop(topic, None)
        else:  # a snapshot compares all topics
            self.catch_up(*self.untold)
            self._told.clear()
        yield from self._replay.apply(event)

    def wrote(self, topic: str, after: bytes) -> None:
        """Note how the log wrote what the event that was applied last made of its topic."""
        if after != NONE:
            self._told[topic] = after

    def lost(self) -> None:
        self._replay.lost()

    def cluster(self, event: Decision, *topics: str) -> ReplayedCluster:
        """Return the cluster that `question` shows, these topics up to date."""
        self.catch_up(*topics)
        return self._replay.cluster(event)

    def catch_up(self, *topics: str) -> None:
        """Tell the replay the newest states of topics."""
        for topic in topics:
            text = self.untold.get(topic)
            if text is None:
                continue
            self.untold = self.untold.delete(topic)
            self._replay.becomes(topic, state_of(text))
            if text == NONE:
                self._told.pop(topic, None)
            else:
                self._told[topic] = text


class _LazyCluster(ClusterState):
    """A cluster whose topics are read when they are looked at. A policy that keeps it sees the same
    ones after the next event, too.
    """

    def __init__(
        self, timeline: RecordedTimeline, event: Decision, cluster: ReplayedCluster, untold: Map[str, bytes]
    ) -> None:
        """Show `cluster` with the states of `untold`, the JSON of what it does not have yet."""
        self._timeline, self._moment = timeline, timeline.moment
        self._event = event
        self._cluster = cluster
        self._untold = untold

    @property
    def cluster_size(self) -> int:
        return self._event.cluster_size

    @property
    def counts(self) -> TopicCounts:
        return self._with(*self._untold).counts

    def topic_state(self, topic: str) -> TopicState | None:
        return self._with(topic).topic_state(topic)

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        return self._with(*self._untold).topics(
            include_internal=include_internal, include_marked_for_deletion=include_marked_for_deletion
        )

    def _with(self, *topics: str) -> ReplayedCluster:
        """Return the cluster with these topics up to date. As long as no event followed, the
        timeline is brought up to date, too.
        """
        states = {topic: text for topic in topics if (text := self._untold.get(topic)) is not None}
        for topic in states:
            self._untold = self._untold.delete(topic)
        if states and self._timeline.moment == self._moment:
            self._cluster = self._timeline.cluster(self._event, *states)
        elif states:
            self._cluster = self._cluster.changed({topic: state_of(text) for topic, text in states.items()})
        return self._cluster

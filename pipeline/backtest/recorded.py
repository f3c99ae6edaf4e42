"""The world in which history stays as it was, whatever a candidate says.

Rule: of most events it matters only that they fit what was before, and that is seen by comparing
how the log wrote the two states. A state is read when somebody asks for it; until then the replay
is not told of the change. What is not certain by this comparison is replayed as a whole.
"""

from collections.abc import Iterator, Mapping

import msgspec

from ...audit.event import AuditEvent, Decision, RecordedState
from ...audit.replay import Replay
from ...audit.replayed_topics import ReplayedCluster
from ...policies.interface import ClusterState, TopicState
from ...policies.topic_counts import TopicCounts
from .worlds import Asked

NONE = b"null"
_decoded = msgspec.json.Decoder(RecordedState | None).decode


class AsRecorded:
    """The topics as they were."""

    def __init__(self, topics: Mapping[str, RecordedState] | None = None) -> None:
        self._replay = Replay(topics)
        self._told: dict[str, bytes] = {}
        """How the log wrote states that the replay knows."""
        self._untold: dict[str, bytes] = {}
        """How it wrote newer ones that the replay was not told yet."""

    @property
    def is_known(self) -> bool:
        return self._replay.is_known

    def follows(self, topic: str, before: bytes, after: bytes) -> bool:
        """Take a change of a topic by the JSON of its states. Return False, and take nothing, if it
        is not certain that the change fits what was before.
        """
        if not self.is_known or not self._is(topic, before):
            return False
        if after == NONE and topic not in self._replay.topics:
            self._untold.pop(topic, None)
        else:
            self._untold[topic] = after
        return True

    def _is(self, topic: str, text: bytes) -> bool:
        known = self._untold.get(topic) or self._told.get(topic)
        if known is not None:
            return text == known
        state = self._replay.topics.get(topic)
        return text == NONE if state is None else text != NONE and _decoded(text) == state

    def question(self, event: Decision) -> Asked | None:
        """Return what a policy was asked, or would have been."""
        if event.validate_only or event.assumed:
            self._catch_up(*self._untold)
        else:
            self._catch_up(event.name)
        question = self._replay.question(event)
        if question is None:
            return None
        request, cluster = question
        return Asked(request, _Cluster(self, event, cluster) if self._untold else cluster)

    def decided(self, event: Decision, *, allowed: bool | None) -> None:
        """Ignore the candidate's verdict."""

    def apply(self, event: AuditEvent) -> Iterator[str]:
        """Apply the next event, and yield a sentence for each contradiction."""
        topic = event.name if isinstance(event, Decision) else getattr(event, "topic", None)
        if topic is not None:
            self._catch_up(topic)
            self._told.pop(topic, None)
        else:  # a snapshot compares all topics
            self._catch_up(*self._untold)
            self._told.clear()
        yield from self._replay.apply(event)

    def wrote(self, topic: str, after: bytes) -> None:
        """Note how the log wrote what the event that was applied last made of its topic."""
        if after != NONE:
            self._told[topic] = after

    def lost(self) -> None:
        """Note that events are missing."""
        self._replay.lost()

    def whole(self, event: Decision) -> ReplayedCluster:
        """Return the cluster that `question` shows, all topics up to date."""
        self._catch_up(*self._untold)
        return self._replay.cluster(event)

    def _catch_up(self, *topics: str) -> None:
        """Tell the replay the newest states of topics."""
        for topic in topics:
            text = self._untold.pop(topic, None)
            if text is None:
                continue
            self._replay.becomes(topic, _decoded(text))
            if text == NONE:
                self._told.pop(topic, None)
            else:
                self._told[topic] = text


class _Cluster(ClusterState):
    """A cluster of which the topic that a question is about is up to date, and the others when they
    are looked at. It holds until the next event.
    """

    def __init__(self, world: AsRecorded, event: Decision, cluster: ReplayedCluster) -> None:
        self._world = world
        self._event = event
        self._cluster = cluster
        self._is_whole = False

    @property
    def cluster_size(self) -> int:
        return self._event.cluster_size

    @property
    def counts(self) -> TopicCounts:
        return self._whole().counts

    def topic_state(self, topic: str) -> TopicState | None:
        return (self._cluster if topic == self._event.name else self._whole()).topic_state(topic)

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        return self._whole().topics(
            include_internal=include_internal, include_marked_for_deletion=include_marked_for_deletion
        )

    def _whole(self) -> ReplayedCluster:
        if not self._is_whole:
            self._cluster, self._is_whole = self._world.whole(self._event), True
        return self._cluster

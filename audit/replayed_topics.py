"""The topics at one point of an audit log, as a policy sees them.

Rule: topics never change and are never copied. The topics at the next point share everything that
stayed the same, and a state is made when a policy asks for it, once for each version of a topic. So
judging history costs the same with ten topics as with ten thousand.
"""

from collections.abc import Mapping

from immutables import Map

from ..policies.interface import TopicState
from ..policies.states import RememberedStates, topic_state
from ..policies.topic_counts import TopicCounts
from .event import Decision, RecordedState

UNASKED = 256
"""After so many changes since counts were last used, they are computed again at their next use.
"""
MOST_OPEN_REQUESTS = 1_000
"""The most requests whose validated elements are kept. Elements that were not begun in time have no
events, so that some requests never end.
"""


class ReplayedTopics:
    """The topics at one point of a replay. It never changes. Counts are made when they are asked
    for, from the last ones that were made.
    """

    __slots__ = ("_changes", "_counts", "_names", "states")

    def __init__(self, states: Map[str, RecordedState] = Map()) -> None:  # noqa: B008 - immutable
        self.states = states
        self._counts: TopicCounts | None = None
        """The counts before `_changes`; None if they have to be computed again."""
        self._changes: tuple[tuple[str, int | None], ...] = ()
        """Names with their numbers of partitions now; None if a topic is not counted any more."""
        self._names: dict[tuple[bool, bool], frozenset[str]] = {}

    @classmethod
    def of(cls, states: Mapping[str, RecordedState]) -> "ReplayedTopics":
        return cls(Map(states))

    @property
    def counts(self) -> TopicCounts:
        """The counts of the topics that are neither internal nor marked for deletion."""
        counts = self._counts
        if counts is None:
            counts = TopicCounts.of(
                (name, len(state.replicas)) for name, state in self.states.items() if is_visible(state)
            )
        for name, partitions in self._changes:
            counts = counts.without(name) if partitions is None else counts.with_topic(name, partitions)
        self._counts, self._changes = counts, ()
        return counts

    def changed(self, name: str, state: RecordedState | None) -> "ReplayedTopics":
        before = self.states.get(name)
        if state is None and before is None:
            return self
        after = ReplayedTopics(self.states.delete(name) if state is None else self.states.set(name, state))
        partitions = None if state is None or not is_visible(state) else len(state.replicas)
        if self._counts is not None and len(self._changes) < UNASKED:
            after._counts, after._changes = self._counts, (*self._changes, (name, partitions))
        was_counted = before is not None and is_visible(before)
        if was_counted == (partitions is not None) and (False, False) in self._names:
            after._names[False, False] = self._names[False, False]  # no name came or went
        return after

    def names(self, *, include_internal: bool, include_marked_for_deletion: bool) -> frozenset[str]:
        key = include_internal, include_marked_for_deletion
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = frozenset(
                self.counts
                if not (include_internal or include_marked_for_deletion)
                else (
                    name
                    for name, state in self.states.items()
                    if (include_internal or not state.internal)
                    and (include_marked_for_deletion or not state.marked_for_deletion)
                )
            )
        return names


def is_visible(state: RecordedState) -> bool:
    return not (state.internal or state.marked_for_deletion)


def seen_by_policies(state: RecordedState) -> TopicState:
    return topic_state(
        state.replicas, state.configs, marked_for_deletion=state.marked_for_deletion, internal=state.internal
    )


class SeenStates(RememberedStates[RecordedState]):
    def __init__(self) -> None:
        super().__init__(seen_by_policies)


class ReplayedCluster:
    """A `ClusterState` at one point of a replay. It does not change while the replay goes on."""

    __slots__ = ("_seen", "_topics", "cluster_size")

    def __init__(self, topics: ReplayedTopics, cluster_size: int, seen: SeenStates) -> None:
        self._topics = topics
        self.cluster_size = cluster_size
        self._seen = seen

    def changed(self, states: Mapping[str, RecordedState | None]) -> "ReplayedCluster":
        topics = self._topics
        for name, state in states.items():
            topics = topics.changed(name, state)
        return ReplayedCluster(topics, self.cluster_size, self._seen)

    @property
    def counts(self) -> TopicCounts:
        return self._topics.counts

    def topic_state(self, topic: str) -> TopicState | None:
        state = self._topics.states.get(topic)
        return None if state is None else self._seen.of(topic, state)

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        return self._topics.names(
            include_internal=include_internal, include_marked_for_deletion=include_marked_for_deletion
        )


class ValidatedElements:
    """The topics as the validated elements of each request would have made them. A request may be
    decided in parts, with other requests in between, so several are open at once.
    """

    def __init__(self) -> None:
        self._epoch = -1
        self._open: dict[int, dict[str, RecordedState]] = {}
        """By the number of a request whose last element was not decided yet."""

    def of(self, event: Decision) -> dict[str, RecordedState]:
        """Return the topics as the earlier elements of a decision's request would have made them;
        what is added is there for its later elements.
        """
        if not event.validate_only:
            return {}
        if event.epoch != self._epoch:
            self._epoch = event.epoch
            self._open.clear()
        found = self._open.pop(event.request, None)
        if found is None:
            found = {}
        if event.element + 1 < event.elements:
            self._open[event.request] = found
            if len(self._open) > MOST_OPEN_REQUESTS:
                del self._open[next(iter(self._open))]
        return found

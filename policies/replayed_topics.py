"""The topics at one point of an audit log, as a policy sees them.

Rule: never changes and never copies the cluster: the next point's topics share all that stayed the same, and a state is made when a policy
asks for it, once for each version of a topic. So it costs the same to judge history of ten topics as of ten thousand.
"""

from collections.abc import Mapping

from immutables import Map

from .audit_event import State
from .interface import TopicState
from .states import RememberedStates, topic_state
from .topic_counts import TopicCounts


class ReplayedTopics:
    """Immutable."""

    __slots__ = ("_names", "counts", "states")

    def __init__(self, states: Map[str, State] = Map(), counts: TopicCounts = TopicCounts()) -> None:  # noqa: B008 - immutable
        self.states = states
        self.counts = counts
        """Of those that a policy is shown unasked: neither internal nor marked for deletion."""
        self._names: dict[tuple[bool, bool], frozenset[str]] = {}

    @classmethod
    def of(cls, states: Mapping[str, State]) -> "ReplayedTopics":
        found = Map(states)
        counts = TopicCounts.of((name, len(state.replicas)) for name, state in found.items() if is_visible(state))
        return cls(found, counts)

    def changed(self, name: str, state: State | None) -> "ReplayedTopics":
        """With the topic in this state, or without it."""
        if state is None:
            if name not in self.states:
                return self
            return self._followed_by(self.states.delete(name), self.counts.without(name))
        visible = is_visible(state)
        counts = self.counts.with_topic(name, len(state.replicas)) if visible else self.counts.without(name)
        return self._followed_by(self.states.set(name, state), counts)

    def _followed_by(self, states: Map[str, State], counts: TopicCounts) -> "ReplayedTopics":
        after = ReplayedTopics(states, counts)
        if counts is self.counts and (False, False) in self._names:
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


def is_visible(state: State) -> bool:
    return not (state.internal or state.marked_for_deletion)


def seen_by_policies(state: State) -> TopicState:
    return topic_state(
        state.replicas, state.configs, marked_for_deletion=state.marked_for_deletion, internal=state.internal
    )


class SeenStates(RememberedStates[State]):
    def __init__(self) -> None:
        super().__init__(seen_by_policies)


class ReplayedCluster:
    """A `ClusterState`. Stays as it is while the replay goes on."""

    __slots__ = ("_seen", "_topics", "cluster_size")

    def __init__(self, topics: ReplayedTopics, cluster_size: int, seen: SeenStates) -> None:
        self._topics = topics
        self.cluster_size = cluster_size
        self._seen = seen

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

"""Snapshots from plain values: what the controller, a back-test and the tests of a policy build
their states with.

Rule: pure, and frozen all the way down. Rows of replicas go in, partition by partition, as the
controller keeps them, and configs as they were written; counts and canonical values are derived
from them in this one place, so that a state cannot contradict itself.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

import msgspec

from .configs.canonical import canonical_configs
from .interface import NO_CONFIGS, ClusterState, RequestedTopicState, TopicState

__all__ = [
    "NO_CONFIGS",
    "ClusterSnapshot",
    "RememberedStates",
    "ReplicaAssignments",
    "VersionedCluster",
    "requested_state",
    "topic_state",
]


class ReplicaAssignments(Mapping[int, Sequence[int]]):
    """Maps partitions, in order, to broker ids, over rows that somebody else keeps:
    free to make.
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: tuple[tuple[int, ...], ...]) -> None:
        self._rows = rows

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """The broker ids of all partitions; row i is partition i."""
        return self._rows

    def __getitem__(self, partition: object) -> Sequence[int]:
        if isinstance(partition, int) and 0 <= partition < len(self._rows):
            return self._rows[partition]
        raise KeyError(partition)

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self._rows)))

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(dict(enumerate(self._rows)))


def topic_state(
    replicas: Sequence[Sequence[int]],
    configs: Mapping[str, str] = NO_CONFIGS,
    *,
    marked_for_deletion: bool = False,
    internal: bool = False,
) -> TopicState:
    """Make the state of a topic as it is; row i holds the broker ids of partition i, the preferred
    leader first.
    """
    rows = tuple(map(tuple, replicas))
    return TopicState(
        num_partitions=len(rows),
        replication_factor=len(rows[0]) if rows else 0,
        replica_assignments=ReplicaAssignments(rows),
        configs=canonical_configs(configs),
        raw_configs=configs,
        marked_for_deletion=marked_for_deletion,
        internal=internal,
    )


def requested_state(
    replicas: Sequence[Sequence[int]],
    configs: Mapping[str, str] = NO_CONFIGS,
    *,
    generated_replica_assignments: bool = True,
    marked_for_deletion: bool = False,
    internal: bool = False,
    default_configs: Mapping[str, str] = NO_CONFIGS,
) -> RequestedTopicState:
    """Make the state of a topic as it will be. `generated_replica_assignments` is false if the
    request itself named the replicas. `default_configs` are the cluster's defaults for topics where
    they are not Kafka's.
    """
    rows = tuple(map(tuple, replicas))
    return RequestedTopicState(
        num_partitions=len(rows),
        replication_factor=len(rows[0]) if rows else 0,
        replica_assignments=ReplicaAssignments(rows),
        configs=canonical_configs(configs),
        raw_configs=configs,
        marked_for_deletion=marked_for_deletion,
        internal=internal,
        generated_replica_assignments=generated_replica_assignments,
        default_configs=default_configs,
    )


Version = TypeVar("Version")


class RememberedStates(Generic[Version]):
    """The states of topics as a policy is shown them, each made once and kept for as long as the
    topic is the same object.
    """

    __slots__ = ("_known", "_make")

    def __init__(self, make: Callable[[Version], TopicState]) -> None:
        self._make = make
        self._known: dict[str, tuple[Version, TopicState]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def of(self, name: str, version: Version) -> TopicState:
        known = self._known.get(name)
        if known is not None and known[0] is version:
            return known[1]
        state = self._make(version)
        self._known[name] = version, state
        return state

    def forget_beyond(self, topics: int) -> None:
        """Forget all states when too many have gathered: deleted topics are not forgotten one by
        one.
        """
        if len(self._known) > 2 * topics + 1000:
            self._known.clear()


class VersionedCluster(ClusterState, Protocol):
    """A cluster whose topics can be compared with those of before without a look at them."""

    @property
    def versions(self) -> Mapping[str, object]:
        """All topics, each as an object that is another one whenever the topic has changed."""


class ClusterSnapshot(msgspec.Struct, frozen=True):
    """A `ClusterState` of topics given one by one: for the tests of a policy, and for judging
    recorded history.
    """

    known_topics: Mapping[str, TopicState] = MappingProxyType({})
    cluster_size: int = 1

    @property
    def versions(self) -> Mapping[str, object]:
        return self.known_topics

    def topic_state(self, topic: str) -> TopicState | None:
        return self.known_topics.get(topic)

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        return frozenset(
            name
            for name, state in self.known_topics.items()
            if (include_internal or not state.internal)
            and (include_marked_for_deletion or not state.marked_for_deletion)
        )

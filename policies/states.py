"""Snapshots for policies, made of plain values by the controller, by a back-test and by the tests
of a policy.

Rule: snapshots are immutable, also what is in them. Their input is the rows of replicas, partition
by partition, and the configs as they were written; counts and canonical values are derived only
here, so that a state cannot contradict itself.
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
    """Maps partitions to broker ids without a copy of the rows that it is given."""

    __slots__ = ("_rows",)

    def __init__(self, rows: tuple[tuple[int, ...], ...]) -> None:
        self._rows = rows

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """The broker ids of all partitions, in the order of partitions."""
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
    """Make the state of a topic as it is. `replicas` has the broker ids of each partition, the
    preferred leader first.
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
    request itself named the replicas. `default_configs` are the cluster's defaults for topics that
    differ from Kafka's own.
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
    """Makes the state of each topic that a policy looks at once, and keeps it while the topic is
    the same object.
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
        """Forget all states if there are far more than `topics`. States of deleted topics are not
        forgotten one by one.
        """
        if len(self._known) > 2 * topics + 1000:
            self._known.clear()


class VersionedCluster(ClusterState, Protocol):
    """A cluster whose topics can be compared with earlier ones by identity."""

    @property
    def versions(self) -> Mapping[str, object]:
        """Maps each topic's name to an object, which is another object whenever the topic has
        changed.
        """


class ClusterSnapshot(msgspec.Struct, frozen=True):
    """A `ClusterState` of given topics, for the tests of a policy."""

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

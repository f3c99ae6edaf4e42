"""Shows the image of a cluster to policies.

Rule: a view is immutable and does not copy the cluster. It shows the image that the next change is
planned against, including changes that are accepted and not yet committed. The state of a topic is
computed when a policy reads it, once for each version of the topic.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ...cluster.entities import Topic
from ...cluster.image import Image
from ...policies.interface import RequestedTopicState, TopicState
from ...policies.states import NO_CONFIGS, RememberedStates, VersionedCluster, requested_state, topic_state
from ...policies.topic_counts import TopicCounts
from ...process.observe.secrets import configs_for_policies


class TopicStates(RememberedStates[Topic]):
    """The states of topics as policies see them, for all views of a controller."""

    def __init__(self) -> None:
        super().__init__(_state)


def _state(topic: Topic) -> TopicState:
    return topic_state(
        [partition.replicas for partition in topic.partitions],
        configs_for_policies(topic.configs),
        marked_for_deletion=topic.marked_for_deletion,
        internal=topic.is_internal,
    )


class ImageView(msgspec.Struct, frozen=True):
    """A `VersionedCluster` of an image, which never changes and shares its topics with the one
    before.
    """

    image: Image
    states: TopicStates

    @property
    def versions(self) -> Mapping[str, object]:
        return self.image.topics

    def topic_state(self, topic: str) -> TopicState | None:
        found = self.image.topics.get(topic)
        return None if found is None else self.states.of(topic, found)

    def topics(self, *, include_internal: bool = False, include_marked_for_deletion: bool = False) -> frozenset[str]:
        return frozenset(
            name
            for name, topic in self.image.topics.items()
            if (include_marked_for_deletion or not topic.marked_for_deletion)
            and (include_internal or not topic.is_internal)
        )

    @property
    def counts(self) -> TopicCounts | None:
        return self.image.counts

    @property
    def cluster_size(self) -> int:
        return len(self.image.replica_brokers())


def view(image: Image, states: TopicStates) -> VersionedCluster:
    """Return the cluster of `image` as it is before the request that is about to be judged."""
    states.forget_beyond(len(image.topics))
    return ImageView(image, states)


def requested(
    topic: Topic, *, defaults: Mapping[str, str] = NO_CONFIGS, generated_replica_assignments: bool = False
) -> RequestedTopicState:
    """Return the topic as it will be. `defaults` are those that are not Kafka's own;
    `generated_replica_assignments` tells whether the controller chose replicas.
    """
    return requested_state(
        [partition.replicas for partition in topic.partitions],
        configs_for_policies(topic.configs),
        generated_replica_assignments=generated_replica_assignments,
        default_configs=defaults,
        marked_for_deletion=topic.marked_for_deletion,
        internal=topic.is_internal,
    )


def requested_reassignment(
    topic: Topic, reassignments: Mapping[int, Sequence[int] | None], *, defaults: Mapping[str, str] = NO_CONFIGS
) -> RequestedTopicState:
    """Return the topic as it will be once these partitions have the replicas that they are to have.
    A reassignment that is cancelled leaves the replicas of before it. Replicas of partitions that
    the topic does not have come after those of the others.
    """
    rows: list[Sequence[int]] = [partition.replicas for partition in topic.partitions]
    unknown: list[Sequence[int]] = []
    for index, replicas in reassignments.items():
        partition = topic.partition(index)
        if partition is None:
            unknown += [replicas] if replicas else []
        elif replicas is None:
            rows[index] = tuple(each for each in partition.replicas if each not in partition.adding_replicas)
        else:
            rows[index] = replicas
    return requested_state(
        [*rows, *unknown],
        configs_for_policies(topic.configs),
        generated_replica_assignments=False,
        default_configs=defaults,
        marked_for_deletion=topic.marked_for_deletion,
        internal=topic.is_internal,
    )

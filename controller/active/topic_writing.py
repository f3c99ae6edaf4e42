"""Stages the writes of topics: creation, more partitions, and the mark of those to be deleted.

Rule: what a delta adds to a topic is one commit, so no reader sees half of it. If it is too large
for one commit, the first ones write a topic that a later controller can complete.
"""

from ...cluster.delta import PartitionsChanged, TopicBecomes, TopicMarked
from ...cluster.entities import Topic
from ...cluster.znodes import layout
from ...cluster.znodes.configs import encode_config
from ...cluster.znodes.topics import encode_partition_state, encode_topic
from ...process.steps import Steps
from ...store.base import Create, Operation, SetData
from .jobs import Draft, StagedElement
from .partition_states import missing_parent


def stage_creation(draft: Draft, created: TopicBecomes) -> Steps[StagedElement]:
    """Stage a topic with its leaders. Configs that an earlier topic of this name left are
    overwritten (Kafka: AdminZkClient.writeTopicPartitionAssignment). Raises Refusal.
    """
    topic = created.topic
    leftover = draft.image.leftover_configs.get(topic.name)
    path, configs = layout.topic_config_path(topic.name), encode_config(topic.configs)
    operations: list[Operation] = [
        Create(path, configs) if leftover is None else SetData(path, configs, leftover),
        Create(layout.topic_path(topic.name), encode_topic(topic)),
        Create(layout.partitions_path(topic.name)),
        *(yield from _partition_znodes(topic)),
    ]
    return draft.stage(created, operations)


def stage_growth(draft: Draft, after: Topic, grown: PartitionsChanged) -> Steps[StagedElement]:
    """Stage more partitions of a topic, which keeps its id. Raises Refusal."""
    before = draft.image.topics[after.name]
    operations: list[Operation] = [
        SetData(layout.topic_path(after.name), encode_topic(after), before.version),
        *missing_parent(before),
        *(yield from _partition_znodes(after, len(before.partitions))),
    ]
    return draft.stage(grown, operations)


def stage_mark(draft: Draft, marked: TopicMarked) -> StagedElement:
    """Stage the mark of a topic to be deleted. What another request has marked already completes
    with that (K4-D3).
    """
    is_marked = draft.image.topics[marked.name].marked_for_deletion
    return draft.stage(marked, () if is_marked else [Create(layout.delete_topic_path(marked.name))])


def _partition_znodes(topic: Topic, first: int = 0) -> Steps[list[Operation]]:
    """Return the operations that create the znodes of the partitions from `first` on. A partition
    without a leader gets no znode.
    """
    operations: list[Operation] = []
    for index in range(first, len(topic.partitions)):
        partition = topic.partitions[index]
        if partition.has_state:
            path, state = layout.partition_state_path(topic.name, index), encode_partition_state(partition)
            operations += [Create(layout.partition_path(topic.name, index)), Create(path, state)]
        yield
    return operations

"""CreatePartitions (37) adds partitions to topics, by count or by a manual assignment.

The order of the checks is Kafka's (ZkAdminManager.createPartitions). A requested count is the new
total.
"""

from collections.abc import Sequence
from random import Random

import msgspec

from ..cluster import leadership
from ..cluster.delta import PartitionsChanged
from ..cluster.entities import Topic
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..cluster.placement import Assignment, assign_replicas, placed_brokers, start_for_new_partitions
from ..cluster.znodes.topics import refuse_damaged, refuse_unstorable
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from .permissions import Permission
from .requested_changes import named_topics
from .spec import Changes, Rows, Spec, copied

ALTER_TOPIC = Permission(AclOperation.ALTER, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for the topic")


def growth(
    image: Image, wanted: CreatePartitionsTopic, *, max_bytes: int, random: Random
) -> tuple[Topic, PartitionsChanged]:
    """Return a topic as a request makes it, and the change of it. Its znode may have `max_bytes`.
    Raises Refusal.
    """
    before = _existing(image, wanted.name)
    added = leadership.new_partitions(image, _added(image, before, wanted, max_bytes, random))
    after = msgspec.structs.replace(before, partitions=before.partitions + added, version=before.version + 1)
    return after, PartitionsChanged(
        after.name,
        after.topic_id,
        partitions=dict(enumerate(added, len(before.partitions))),
        version=after.version,
        count=len(after.partitions),
        has_parent=True,
    )


def _existing(image: Image, name: str) -> Topic:
    topic = image.topic(name)
    if topic is None:
        raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if topic.marked_for_deletion:
        raise Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
    refuse_damaged(topic)
    if topic.is_moving:
        raise Refusal(
            ErrorCode.REASSIGNMENT_IN_PROGRESS, f"A partition reassignment is in progress for the topic '{name}'."
        )
    return topic


def _added(image: Image, topic: Topic, wanted: CreatePartitionsTopic, max_bytes: int, random: Random) -> Assignment:
    current = len(topic.partitions)
    if not current:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS, "The topic has no partitions, so its replication factor is unknown."
        )
    if wanted.count < current:
        raise Refusal(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {current} partitions, which is higher than the requested {wanted.count}.",
        )
    if wanted.count == current:
        raise Refusal(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partitions.")
    if wanted.assignments is not None:
        return manual_rows(image, topic, wanted.assignments, wanted.count - current)
    refuse_unstorable(wanted.count, topic.replication_factor, max_bytes)
    brokers = placed_brokers(image)
    return assign_replicas(
        brokers,
        wanted.count - current,
        topic.replication_factor,
        start=start_for_new_partitions(brokers, topic.partitions[0].replicas[0]),
        first_partition=current,
        random=random.randrange,
    )


def manual_rows(image: Image, topic: Topic, rows: Sequence[CreatePartitionsAssignment], increment: int) -> Assignment:
    """Check and return the replicas that the request names. Row i belongs to partition
    current + i.
    """
    unknown = sorted({broker for row in rows for broker in row.broker_ids}.difference(image.replica_brokers()))
    if unknown:
        raise _wrong(f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}.")
    if len(rows) != increment:
        raise _wrong(f"Increasing the number of partitions by {increment} but {len(rows)} assignments provided.")
    for index, row in enumerate(rows, start=len(topic.partitions)):
        if not row.broker_ids:
            raise _wrong(f"Cannot have replication factor of 0 for partition id {index}.")
        if len(set(row.broker_ids)) != len(row.broker_ids):
            raise _wrong(
                f"Duplicate brokers not allowed in replica assignment: {', '.join(map(str, row.broker_ids))} for partition id {index}."
            )
    factors = {index: len(row.broker_ids) for index, row in enumerate(rows, start=len(topic.partitions))}
    others = {index: factor for index, factor in factors.items() if factor != topic.replication_factor}
    if others:
        raise _wrong(
            f"Inconsistent replication factor between partitions, partition 0 has {topic.replication_factor} while "
            f"partitions {list(others)} have replication factors {list(others.values())}, respectively."
        )
    return tuple(tuple(row.broker_ids) for row in rows)


def _wrong(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


SPEC = Spec(
    key=ApiKey.CREATE_PARTITIONS,
    at_controller=True,
    permissions=(ALTER_TOPIC,),
    rows=Rows("results", CreatePartitionsTopicResult, {"topics": copied("name")}),
    changes=Changes("create_partitions", named_topics),
)

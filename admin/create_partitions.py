"""CreatePartitions (37) adds partitions to topics, by count or by a manual assignment."""

from collections.abc import Sequence

from ..cluster.entities import Topic
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsTopicResult,
)
from .permissions import Permission
from .requested_changes import named_topics
from .spec import Changes, Rows, Spec, copied

ALTER_TOPIC = Permission(AclOperation.ALTER, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for the topic")
Assignment = tuple[tuple[int, ...], ...]


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

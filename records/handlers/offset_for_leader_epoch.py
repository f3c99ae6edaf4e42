"""OffsetForLeaderEpoch (23) returns where the records of a leader epoch end, by which a consumer
sees whether its log was cut (KIP-320).
"""

from ...admin.permissions import Permission
from ...admin.spec import InnerRows, Rows, copied
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)
from ..serving.partitions import code_of, found
from ..serving.plane import DataPlane

DESCRIBE_TOPIC = Permission(
    AclOperation.DESCRIBE, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for its partitions, after the others"
)


def handle(
    plane: DataPlane, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    denied = context.without(DESCRIBE_TOPIC, [topic.topic for topic in request.topics])
    asked = sorted(request.topics, key=lambda topic: topic.topic in denied)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _denied(each) if topic.topic in denied else _partition(plane, topic.topic, each)
                    for each in topic.partitions
                ],
            )
            for topic in asked
        ]
    )


def _denied(asked: OffsetForLeaderPartition) -> EpochEndOffset:
    return EpochEndOffset(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, partition=asked.partition)


def _partition(plane: DataPlane, name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    place = found(plane.view.cache.image.topics.get(name), asked.partition)
    if place is None:
        return EpochEndOffset(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partition=asked.partition)
    topic, partition = place
    code = code_of(partition, plane.view, asked.current_leader_epoch)
    if code:
        return EpochEndOffset(error_code=code, partition=asked.partition)
    end = plane.logs.seen(topic, asked.partition).epoch_end(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=end.epoch, end_offset=end.offset)


def _indexes(topic: OffsetForLeaderTopic) -> list[dict[str, int]]:
    return [{"partition": each.partition} for each in topic.partitions]


API = ServedApi(
    key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_TOPIC,),
    rows=Rows(
        "topics",
        OffsetForLeaderTopicResult,
        {"topics": copied("topic")},
        inner=InnerRows("partitions", EpochEndOffset, _indexes),
    ),
)

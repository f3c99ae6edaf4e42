"""Makes requests that delete records, and results of their responses; pure."""

from collections.abc import Mapping, Sequence

from ..protocol.dry_runs import packed
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ..protocol.messages.metadata import MetadataResponse
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import Results, TopicPartition, result_of

ELSEWHERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE})
"""The errors of a partition that another node leads, or none yet."""


def leaders(
    metadata: MetadataResponse, partitions: Sequence[TopicPartition]
) -> tuple[Mapping[int, list[TopicPartition]], dict[TopicPartition, AdminError]]:
    """Divide partitions by the broker ids of their leaders. Those that have none, or do not exist,
    have an error instead.
    """
    errors = {topic.name: topic.error_code for topic in metadata.topics}
    leader_of = {
        TopicPartition(topic.name or "", each.partition_index): each.leader_id
        for topic in metadata.topics
        for each in topic.partitions
    }
    by_leader: dict[int, list[TopicPartition]] = {}
    refused: dict[TopicPartition, AdminError] = {}
    for partition in partitions:
        leader = leader_of.get(partition)
        if leader is None:
            code = errors.get(partition.topic)
            absent = AdminError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition")
            refused[partition] = AdminError(code) if code else absent
        elif leader < 0:
            refused[partition] = AdminError(ErrorCode.LEADER_NOT_AVAILABLE)
        else:
            by_leader.setdefault(leader, []).append(partition)
    return by_leader, refused


def has_moved(result: object) -> bool:
    """Return whether a partition has to be asked for at another node, or later."""
    return isinstance(result, AdminError) and result.code in ELSEWHERE


def deletion(
    offsets: Mapping[TopicPartition, int], part: Sequence[TopicPartition], *, timeout_ms: int, validate_only: bool
) -> DeleteRecordsRequest:
    topics: dict[str, list[DeleteRecordsPartition]] = {}
    for each in part:
        row = DeleteRecordsPartition(partition_index=each.partition, offset=offsets[each])
        topics.setdefault(each.topic, []).append(row)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=name, partitions=rows) for name, rows in topics.items()], timeout_ms=timeout_ms
    )
    return packed(request) if validate_only else request


def deleted(answer: WireStruct) -> Results[TopicPartition, int]:
    assert isinstance(answer, DeleteRecordsResponse)
    return {
        TopicPartition(topic.name, row.partition_index): result_of(row.error_code, None, row.low_watermark)
        for topic in answer.topics
        for row in topic.partitions
    }

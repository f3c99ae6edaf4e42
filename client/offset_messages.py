"""Makes requests for offsets of partitions, and results of their responses; pure."""

from collections.abc import Mapping, Sequence

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import ListedOffset, OffsetSpec, Results, TopicPartition, result_of

MAX_TIMESTAMP_SINCE = 7
NO_REPLICA = -1


def question(
    specs: Mapping[TopicPartition, OffsetSpec | int], part: Sequence[TopicPartition], version: int
) -> ListOffsetsRequest:
    """Raise AdminError for a highest timestamp in a version that has none."""
    if version < MAX_TIMESTAMP_SINCE and any(specs[each] == OffsetSpec.MAX_TIMESTAMP for each in part):
        raise AdminError(ErrorCode.UNSUPPORTED_VERSION, "the node is too old to find the highest timestamp")
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for each in part:
        row = ListOffsetsPartition(partition_index=each.partition, timestamp=int(specs[each]))
        topics.setdefault(each.topic, []).append(row)
    named = [ListOffsetsTopic(name=name, partitions=rows) for name, rows in topics.items()]
    return ListOffsetsRequest(replica_id=NO_REPLICA, topics=named)


def listed(answer: WireStruct) -> Results[TopicPartition, ListedOffset]:
    assert isinstance(answer, ListOffsetsResponse)
    return {
        TopicPartition(topic.name, row.partition_index): result_of(
            row.error_code, None, ListedOffset(row.offset, row.timestamp, row.leader_epoch)
        )
        for topic in answer.topics
        for row in topic.partitions
    }

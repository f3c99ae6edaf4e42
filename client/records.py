"""The records of partitions, which are deleted, and the offsets of the first and the last ones;
both are asked of the partitions' leaders.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum

import msgspec

from ..protocol.error_codes import ErrorCode
from ..protocol.schema import WireStruct
from .calls import Calls
from .errors import AdminError, Results, result_of
from .topic_partition import TopicPartition, by_topic

MAX_TIMESTAMP_SINCE = 7
"""The first ListOffsets that finds the highest timestamp."""
NO_REPLICA = -1


class OffsetSpec(IntEnum):
    """The offsets of a partition that have no timestamp."""

    LATEST = -1
    """The offset behind the last record."""
    EARLIEST = -2
    """The offset of the first record."""
    MAX_TIMESTAMP = -3
    """The offset of the record with the highest timestamp (KIP-734)."""


class ListedOffset(msgspec.Struct, frozen=True):
    offset: int
    """-1 if there is no such record."""
    timestamp_ms: int
    """The record's timestamp in milliseconds since 1970; -1 if no record was looked for."""
    leader_epoch: int
    """The epoch of the leader that wrote the record; -1 if it is unknown."""


class RecordCalls(Calls):
    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, validate_only: bool = False
    ) -> Results[TopicPartition, int]:
        """Delete the records of partitions before these offsets, -1 for all, and return the offset
        of the first record that is left, by partition (KIP-107). With `validate_only` the leaders
        only check whether they would, which nodes of minicontroller can alone.
        """
        from ..protocol.dry_runs import packed
        from ..protocol.messages import delete_records as messages

        def request(part: Sequence[TopicPartition], _version: int) -> WireStruct:
            topics = [
                messages.DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        messages.DeleteRecordsPartition(partition_index=each.partition, offset=offsets[each])
                        for each in partitions
                    ],
                )
                for name, partitions in by_topic(part).items()
            ]
            message = messages.DeleteRecordsRequest(topics=topics, timeout_ms=self._batches.timeout_ms)
            return packed(message) if validate_only else message

        def read(answer: messages.DeleteRecordsResponse) -> Results[TopicPartition, int]:
            return {
                TopicPartition(topic.name, row.partition_index): result_of(row.error_code, None, row.low_watermark)
                for topic in answer.topics
                for row in topic.partitions
            }

        check = self._batches.check_dry_runs if validate_only else None
        return await self._batches.by_leader(list(offsets), messages.DeleteRecordsResponse, request, read, check)

    async def list_offsets(
        self, specs: Mapping[TopicPartition, OffsetSpec | int]
    ) -> Results[TopicPartition, ListedOffset]:
        """Return an offset of each partition (KIP-396): the first, the last, that of the record
        with the highest timestamp, or that of the first record with at least this timestamp, in
        milliseconds since 1970.
        """
        from ..protocol.messages import list_offsets as messages

        def request(part: Sequence[TopicPartition], version: int) -> WireStruct:
            if version < MAX_TIMESTAMP_SINCE and any(specs[each] == OffsetSpec.MAX_TIMESTAMP for each in part):
                raise AdminError(ErrorCode.UNSUPPORTED_VERSION, "the node is too old to find the highest timestamp")
            topics = [
                messages.ListOffsetsTopic(
                    name=name,
                    partitions=[
                        messages.ListOffsetsPartition(partition_index=each.partition, timestamp=int(specs[each]))
                        for each in partitions
                    ],
                )
                for name, partitions in by_topic(part).items()
            ]
            return messages.ListOffsetsRequest(replica_id=NO_REPLICA, topics=topics)

        def read(answer: messages.ListOffsetsResponse) -> Results[TopicPartition, ListedOffset]:
            return {
                TopicPartition(topic.name, row.partition_index): result_of(
                    row.error_code, None, ListedOffset(row.offset, row.timestamp, row.leader_epoch)
                )
                for topic in answer.topics
                for row in topic.partitions
            }

        return await self._batches.by_leader(list(specs), messages.ListOffsetsResponse, request, read)

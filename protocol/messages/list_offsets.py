"""ListOffsets (2) returns the first or last offsets of partitions, or those at a time."""

from typing import Annotated

from ..schema import Int8, Int16, Int32, Int64, WireStruct, ignorable, message, since, until

LATEST_TIMESTAMP = -1
"""Asks for the offset after the last record."""
EARLIEST_TIMESTAMP = -2
"""Asks for the offset of the first record."""
MAX_TIMESTAMP = -3
"""Asks for the record with the highest timestamp (KIP-734)."""
EARLIEST_LOCAL_TIMESTAMP = -4
"""Asks for the first record that is not in remote storage only (KIP-405)."""
LATEST_TIERED_TIMESTAMP = -5
"""Asks for the last record in remote storage (KIP-1005)."""


class ListOffsetsPartition(WireStruct):
    partition_index: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(4), ignorable] = -1
    timestamp: Int64 = 0
    max_num_offsets: Annotated[Int32, until(0)] = 1


class ListOffsetsTopic(WireStruct):
    name: str = ""
    partitions: list[ListOffsetsPartition] = []


@message(2, "request", versions=(0, 9), flexible=6)
class ListOffsetsRequest(WireStruct):
    replica_id: Int32 = 0
    isolation_level: Annotated[Int8, since(2)] = 0
    topics: list[ListOffsetsTopic] = []


class ListOffsetsPartitionResponse(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    old_style_offsets: Annotated[list[Int64], until(0)] = []
    timestamp: Annotated[Int64, since(1)] = -1
    offset: Annotated[Int64, since(1)] = -1
    leader_epoch: Annotated[Int32, since(4)] = -1


class ListOffsetsTopicResponse(WireStruct):
    name: str = ""
    partitions: list[ListOffsetsPartitionResponse] = []


@message(2, "response", versions=(0, 9), flexible=6)
class ListOffsetsResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: list[ListOffsetsTopicResponse] = []

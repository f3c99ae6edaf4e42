"""OffsetFetch (9) returns the stored offsets of a group, from version 8 on of several groups."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, nullable_since, since, until


class OffsetFetchTopic(WireStruct):
    name: str = ""
    partition_indexes: list[Int32] = []


class OffsetFetchGroup(WireStruct):
    group_id: str = ""
    member_id: Annotated[str | None, since(9), ignorable] = None
    member_epoch: Annotated[Int32, since(9), ignorable] = -1
    topics: list[OffsetFetchTopic] | None = []


@message(9, "request", versions=(0, 9), flexible=6)
class OffsetFetchRequest(WireStruct):
    group_id: Annotated[str, until(7)] = ""
    topics: Annotated[list[OffsetFetchTopic] | None, until(7), nullable_since(2)] = []
    groups: Annotated[list[OffsetFetchGroup], since(8)] = []
    require_stable: Annotated[bool, since(7)] = False


class FetchedOffset(WireStruct):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(5), ignorable] = -1
    metadata: str | None = ""
    error_code: Int16 = 0


class FetchedOffsetsOfTopic(WireStruct):
    name: str = ""
    partitions: list[FetchedOffset] = []


class FetchedOffsetsOfGroup(WireStruct):
    group_id: str = ""
    topics: list[FetchedOffsetsOfTopic] = []
    error_code: Int16 = 0


@message(9, "response", versions=(0, 9), flexible=6)
class OffsetFetchResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    topics: Annotated[list[FetchedOffsetsOfTopic], until(7)] = []
    error_code: Annotated[Int16, since(2), until(7), ignorable] = 0
    groups: Annotated[list[FetchedOffsetsOfGroup], since(8)] = []

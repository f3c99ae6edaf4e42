"""OffsetDelete (47) removes stored offsets of a group."""

from ..schema import Int16, Int32, WireStruct, message


class OffsetDeletePartition(WireStruct):
    partition_index: Int32 = 0


class OffsetDeleteTopic(WireStruct):
    name: str = ""
    partitions: list[OffsetDeletePartition] = []


@message(47, "request", versions=(0, 0), flexible=None)
class OffsetDeleteRequest(WireStruct):
    group_id: str = ""
    topics: list[OffsetDeleteTopic] = []


class DeletedOffsetResult(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetDeleteTopicResult(WireStruct):
    name: str = ""
    partitions: list[DeletedOffsetResult] = []


@message(47, "response", versions=(0, 0), flexible=None)
class OffsetDeleteResponse(WireStruct):
    error_code: Int16 = 0
    throttle_time_ms: Int32 = 0
    topics: list[OffsetDeleteTopicResult] = []

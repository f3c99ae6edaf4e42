"""DeleteRecords (21) deletes the records of partitions before an offset. It goes to the leaders of
the partitions.
"""

from ..schema import Int16, Int32, Int64, WireStruct, message


class DeleteRecordsPartition(WireStruct):
    partition_index: Int32 = 0
    offset: Int64 = 0


class DeleteRecordsTopic(WireStruct):
    name: str = ""
    partitions: list[DeleteRecordsPartition] = []


@message(21, "request", versions=(0, 2), flexible=2)
class DeleteRecordsRequest(WireStruct):
    topics: list[DeleteRecordsTopic] = []
    timeout_ms: Int32 = 0


class DeleteRecordsPartitionResult(WireStruct):
    partition_index: Int32 = 0
    low_watermark: Int64 = 0
    error_code: Int16 = 0


class DeleteRecordsTopicResult(WireStruct):
    name: str = ""
    partitions: list[DeleteRecordsPartitionResult] = []


@message(21, "response", versions=(0, 2), flexible=2)
class DeleteRecordsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    topics: list[DeleteRecordsTopicResult] = []

"""DescribeLogDirs (35) returns the directories of a broker and the replicas in them."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since


class DescribableLogDirTopic(WireStruct):
    topic: str = ""
    partitions: list[Int32] = []


@message(35, "request", versions=(0, 4), flexible=2)
class DescribeLogDirsRequest(WireStruct):
    topics: list[DescribableLogDirTopic] | None = []


class DescribeLogDirsPartition(WireStruct):
    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(WireStruct):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(WireStruct):
    error_code: Int16 = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[Int64, since(4), ignorable] = -1
    usable_bytes: Annotated[Int64, since(4), ignorable] = -1


@message(35, "response", versions=(0, 4), flexible=2)
class DescribeLogDirsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(3), ignorable] = 0
    results: list[DescribeLogDirsResult] = []

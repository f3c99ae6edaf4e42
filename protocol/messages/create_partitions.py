"""CreatePartitions (37) adds partitions to topics."""

from ..schema import Int16, Int32, WireStruct, message


class CreatePartitionsAssignment(WireStruct):
    broker_ids: list[Int32] = []


class CreatePartitionsTopic(WireStruct):
    name: str = ""
    count: Int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


@message(37, "request", versions=(0, 3), flexible=2)
class CreatePartitionsRequest(WireStruct):
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: Int32 = 0
    validate_only: bool = False


class CreatePartitionsTopicResult(WireStruct):
    name: str = ""
    error_code: Int16 = 0
    error_message: str | None = None


@message(37, "response", versions=(0, 3), flexible=2)
class CreatePartitionsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []

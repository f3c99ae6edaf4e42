"""AlterPartitionReassignments (45) moves the replicas of partitions, or cancels such moves."""

from ..schema import Int16, Int32, WireStruct, message


class ReassignablePartition(WireStruct):
    partition_index: Int32 = 0
    replicas: list[Int32] | None = None
    """The wanted broker ids, the preferred leader first; None cancels a reassignment."""


class ReassignableTopic(WireStruct):
    name: str = ""
    partitions: list[ReassignablePartition] = []


@message(45, "request", versions=(0, 0), flexible=0)
class AlterPartitionReassignmentsRequest(WireStruct):
    timeout_ms: Int32 = 60000
    topics: list[ReassignableTopic] = []


class ReassignablePartitionResponse(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""


class ReassignableTopicResponse(WireStruct):
    name: str = ""
    partitions: list[ReassignablePartitionResponse] = []


@message(45, "response", versions=(0, 0), flexible=0)
class AlterPartitionReassignmentsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
    responses: list[ReassignableTopicResponse] = []

"""ListPartitionReassignments (46) returns the partitions whose replicas are being moved."""

from ..schema import Int16, Int32, WireStruct, message


class RequestedTopic(WireStruct):
    name: str = ""
    partition_indexes: list[Int32] = []


@message(46, "request", versions=(0, 0), flexible=0)
class ListPartitionReassignmentsRequest(WireStruct):
    timeout_ms: Int32 = 60000
    topics: list[RequestedTopic] | None = None


class OngoingReassignment(WireStruct):
    partition_index: Int32 = 0
    replicas: list[Int32] = []
    adding_replicas: list[Int32] = []
    removing_replicas: list[Int32] = []


class TopicReassignment(WireStruct):
    name: str = ""
    partitions: list[OngoingReassignment] = []


@message(46, "response", versions=(0, 0), flexible=0)
class ListPartitionReassignmentsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
    topics: list[TopicReassignment] = []

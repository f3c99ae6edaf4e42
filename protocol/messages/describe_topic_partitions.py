"""DescribeTopicPartitions (75) returns the partitions of topics, page by page."""

from ..acls import NO_OPERATIONS
from ..schema import ZERO_UUID, Int16, Int32, Uuid, WireStruct, message


class Cursor(WireStruct):
    topic_name: str = ""
    partition_index: Int32 = 0


class TopicRequest(WireStruct):
    name: str = ""


@message(75, "request", versions=(0, 0), flexible=0)
class DescribeTopicPartitionsRequest(WireStruct):
    topics: list[TopicRequest] = []
    response_partition_limit: Int32 = 2000
    cursor: Cursor | None = None


class DescribeTopicPartitionsResponsePartition(WireStruct):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    eligible_leader_replicas: list[Int32] | None = None
    last_known_elr: list[Int32] | None = None
    offline_replicas: list[Int32] = []


class DescribeTopicPartitionsResponseTopic(WireStruct):
    error_code: Int16 = 0
    name: str | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[DescribeTopicPartitionsResponsePartition] = []
    topic_authorized_operations: Int32 = NO_OPERATIONS


@message(75, "response", versions=(0, 0), flexible=0)
class DescribeTopicPartitionsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor: Cursor | None = None

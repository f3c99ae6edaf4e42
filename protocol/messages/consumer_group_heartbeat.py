"""ConsumerGroupHeartbeat (68): a member of a group of KIP-848 says that it lives."""

from ..schema import ZERO_UUID, Int16, Int32, Uuid, WireStruct, message


class OwnedPartitions(WireStruct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


@message(68, "request", versions=(0, 0), flexible=0)
class ConsumerGroupHeartbeatRequest(WireStruct):
    group_id: str = ""
    member_id: str = ""
    member_epoch: Int32 = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: list[str] | None = None
    server_assignor: str | None = None
    topic_partitions: list[OwnedPartitions] | None = None


class AssignedPartitions(WireStruct):
    topic_id: Uuid = ZERO_UUID
    partitions: list[Int32] = []


class MemberAssignment(WireStruct):
    topic_partitions: list[AssignedPartitions] = []


@message(68, "response", versions=(0, 0), flexible=0)
class ConsumerGroupHeartbeatResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    member_id: str | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: MemberAssignment | None = None

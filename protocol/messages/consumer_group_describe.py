"""ConsumerGroupDescribe (69) returns the state and the members of groups of KIP-848."""

import msgspec

from ..acls import NO_OPERATIONS
from ..schema import ZERO_UUID, Int16, Int32, Uuid, WireStruct, message


@message(69, "request", versions=(0, 0), flexible=0)
class ConsumerGroupDescribeRequest(WireStruct):
    group_ids: list[str] = []
    include_authorized_operations: bool = False


class PartitionsOfTopic(WireStruct):
    topic_id: Uuid = ZERO_UUID
    topic_name: str = ""
    partitions: list[Int32] = []


class ConsumerAssignment(WireStruct):
    topic_partitions: list[PartitionsOfTopic] = []


class ConsumerGroupMember(WireStruct):
    member_id: str = ""
    instance_id: str | None = None
    rack_id: str | None = None
    member_epoch: Int32 = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = None
    assignment: ConsumerAssignment = msgspec.field(default_factory=ConsumerAssignment)
    target_assignment: ConsumerAssignment = msgspec.field(default_factory=ConsumerAssignment)


class DescribedConsumerGroup(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: str = ""
    members: list[ConsumerGroupMember] = []
    authorized_operations: Int32 = NO_OPERATIONS


@message(69, "response", versions=(0, 0), flexible=0)
class ConsumerGroupDescribeResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    groups: list[DescribedConsumerGroup] = []

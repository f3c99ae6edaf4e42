"""LeaderAndIsr (4): the controller sends a broker the partitions that it leads or follows, and
their ISR.
"""

from typing import Annotated

from ..schema import ZERO_UUID, Int8, Int16, Int32, Int64, Uuid, WireStruct, ignorable, message, since, until


class LeaderAndIsrLiveLeader(WireStruct):
    broker_id: Int32 = 0
    host_name: str = ""
    port: Int32 = 0


class LeaderAndIsrPartitionState(WireStruct):
    topic_name: Annotated[str, until(1), ignorable] = ""
    partition_index: Int32 = 0
    controller_epoch: Int32 = 0
    leader: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    partition_epoch: Int32 = 0
    replicas: list[Int32] = []
    adding_replicas: Annotated[list[Int32], since(3), ignorable] = []
    removing_replicas: Annotated[list[Int32], since(3), ignorable] = []
    is_new: Annotated[bool, since(1), ignorable] = False
    leader_recovery_state: Annotated[Int8, since(6)] = 0


class LeaderAndIsrTopicState(WireStruct):
    topic_name: str = ""
    topic_id: Annotated[Uuid, since(5), ignorable] = ZERO_UUID
    partition_states: list[LeaderAndIsrPartitionState] = []


@message(4, "request", versions=(0, 7), flexible=4)
class LeaderAndIsrRequest(WireStruct):
    controller_id: Int32 = 0
    is_kraft_controller: Annotated[bool, since(7)] = False
    controller_epoch: Int32 = 0
    broker_epoch: Annotated[Int64, since(2), ignorable] = -1
    type: Annotated[Int8, since(5)] = 0
    ungrouped_partition_states: Annotated[list[LeaderAndIsrPartitionState], until(1)] = []
    topic_states: Annotated[list[LeaderAndIsrTopicState], since(2)] = []
    live_leaders: list[LeaderAndIsrLiveLeader] = []


class LeaderAndIsrPartitionError(WireStruct):
    topic_name: Annotated[str, until(4), ignorable] = ""
    partition_index: Int32 = 0
    error_code: Int16 = 0


class LeaderAndIsrTopicError(WireStruct):
    topic_id: Uuid = ZERO_UUID
    partition_errors: list[LeaderAndIsrPartitionError] = []


@message(4, "response", versions=(0, 7), flexible=4)
class LeaderAndIsrResponse(WireStruct):
    error_code: Int16 = 0
    partition_errors: Annotated[list[LeaderAndIsrPartitionError], until(4)] = []
    topics: Annotated[list[LeaderAndIsrTopicError], since(5)] = []

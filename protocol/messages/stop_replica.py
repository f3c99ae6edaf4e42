"""StopReplica (5): the controller has a broker stop following partitions, or delete them."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since, until


class StopReplicaPartitionState(WireStruct):
    partition_index: Int32 = 0
    leader_epoch: Int32 = -1
    delete_partition: bool = False


class StopReplicaTopicState(WireStruct):
    topic_name: str = ""
    partition_states: list[StopReplicaPartitionState] = []


class StopReplicaTopicV1(WireStruct):
    name: str = ""
    partition_indexes: list[Int32] = []


class StopReplicaPartitionV0(WireStruct):
    topic_name: str = ""
    partition_index: Int32 = 0


@message(5, "request", versions=(0, 4), flexible=2)
class StopReplicaRequest(WireStruct):
    controller_id: Int32 = 0
    is_kraft_controller: Annotated[bool, since(4)] = False
    controller_epoch: Int32 = 0
    broker_epoch: Annotated[Int64, since(1), ignorable] = -1
    delete_partitions: Annotated[bool, until(2)] = False
    ungrouped_partitions: Annotated[list[StopReplicaPartitionV0], until(0)] = []
    topics: Annotated[list[StopReplicaTopicV1], since(1), until(2)] = []
    topic_states: Annotated[list[StopReplicaTopicState], since(3)] = []


class StopReplicaPartitionError(WireStruct):
    topic_name: str = ""
    partition_index: Int32 = 0
    error_code: Int16 = 0


@message(5, "response", versions=(0, 4), flexible=2)
class StopReplicaResponse(WireStruct):
    error_code: Int16 = 0
    partition_errors: list[StopReplicaPartitionError] = []

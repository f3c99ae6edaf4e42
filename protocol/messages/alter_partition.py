"""AlterPartition (56): a leader asks the controller to change the ISR of partitions."""

from typing import Annotated

from ..schema import ZERO_UUID, Int8, Int16, Int32, Int64, Uuid, WireStruct, ignorable, message, since, until


class BrokerState(WireStruct):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


class PartitionData(WireStruct):
    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: Annotated[list[Int32], until(2)] = []
    new_isr_with_epochs: Annotated[list[BrokerState], since(3)] = []
    leader_recovery_state: Annotated[Int8, since(1)] = 0
    partition_epoch: Int32 = 0


class TopicData(WireStruct):
    topic_name: Annotated[str, until(1), ignorable] = ""
    topic_id: Annotated[Uuid, since(2), ignorable] = ZERO_UUID
    partitions: list[PartitionData] = []


@message(56, "request", versions=(0, 3), flexible=0)
class AlterPartitionRequest(WireStruct):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: list[TopicData] = []


class AlterPartitionResult(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    leader_recovery_state: Annotated[Int8, since(1), ignorable] = 0
    partition_epoch: Int32 = 0


class TopicResult(WireStruct):
    topic_name: Annotated[str, until(1), ignorable] = ""
    topic_id: Annotated[Uuid, since(2), ignorable] = ZERO_UUID
    partitions: list[AlterPartitionResult] = []


@message(56, "response", versions=(0, 3), flexible=0)
class AlterPartitionResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[TopicResult] = []

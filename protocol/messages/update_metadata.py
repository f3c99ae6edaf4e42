"""UpdateMetadata (6): the controller sends every broker the brokers of the cluster, which replace
those known before, and changed partitions, which are merged in.
"""

from typing import Annotated

from ..schema import ZERO_UUID, Int8, Int16, Int32, Int64, Uuid, WireStruct, ignorable, message, since, tagged, until


class UpdateMetadataEndpoint(WireStruct):
    port: Int32 = 0
    host: str = ""
    listener: Annotated[str, since(3), ignorable] = ""
    security_protocol: Int16 = 0


class UpdateMetadataBroker(WireStruct):
    id: Int32 = 0
    v0_host: Annotated[str, until(0), ignorable] = ""
    v0_port: Annotated[Int32, until(0), ignorable] = 0
    endpoints: Annotated[list[UpdateMetadataEndpoint], since(1), ignorable] = []
    rack: Annotated[str | None, since(2), ignorable] = ""


class UpdateMetadataPartitionState(WireStruct):
    topic_name: Annotated[str, until(4), ignorable] = ""
    partition_index: Int32 = 0
    controller_epoch: Int32 = 0
    leader: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    zk_version: Int32 = 0
    replicas: list[Int32] = []
    offline_replicas: Annotated[list[Int32], since(4), ignorable] = []


class UpdateMetadataTopicState(WireStruct):
    topic_name: str = ""
    topic_id: Annotated[Uuid, since(7), ignorable] = ZERO_UUID
    partition_states: list[UpdateMetadataPartitionState] = []


@message(6, "request", versions=(0, 8), flexible=6)
class UpdateMetadataRequest(WireStruct):
    controller_id: Int32 = 0
    is_kraft_controller: Annotated[bool, since(8)] = False
    type: Annotated[Int8, since(8), tagged(0)] = 0
    controller_epoch: Int32 = 0
    broker_epoch: Annotated[Int64, since(5), ignorable] = -1
    ungrouped_partition_states: Annotated[list[UpdateMetadataPartitionState], until(4)] = []
    topic_states: Annotated[list[UpdateMetadataTopicState], since(5)] = []
    live_brokers: list[UpdateMetadataBroker] = []


@message(6, "response", versions=(0, 8), flexible=6)
class UpdateMetadataResponse(WireStruct):
    error_code: Int16 = 0

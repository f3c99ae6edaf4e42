"""Produce (0) appends record batches to partitions. With `acks` 0 it has no response."""

from typing import Annotated

import msgspec

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since, tagged

NO_ACKS, LEADER_ACKS, ALL_ACKS = 0, 1, -1
"""`acks`: the client waits for nothing, for the leader, or for all replicas in sync."""


class PartitionProduceData(WireStruct):
    index: Int32 = 0
    records: bytes | None = None


class TopicProduceData(WireStruct):
    name: str = ""
    partition_data: list[PartitionProduceData] = []


@message(0, "request", versions=(0, 11), flexible=9)
class ProduceRequest(WireStruct):
    transactional_id: Annotated[str | None, since(3)] = None
    acks: Int16 = 0
    timeout_ms: Int32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(WireStruct):
    batch_index: Int32 = 0
    batch_index_error_message: str | None = None


class LeaderIdAndEpoch(WireStruct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class ProduceLeaderEndpoint(WireStruct):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None


class PartitionProduceResponse(WireStruct):
    index: Int32 = 0
    error_code: Int16 = 0
    base_offset: Int64 = 0
    log_append_time_ms: Annotated[Int64, since(2), ignorable] = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], since(8), ignorable] = []
    error_message: Annotated[str | None, since(8), ignorable] = None
    current_leader: Annotated[LeaderIdAndEpoch, since(10), tagged(0), ignorable] = msgspec.field(
        default_factory=LeaderIdAndEpoch
    )


class TopicProduceResponse(WireStruct):
    name: str = ""
    partition_responses: list[PartitionProduceResponse] = []


@message(0, "response", versions=(0, 11), flexible=9)
class ProduceResponse(WireStruct):
    responses: list[TopicProduceResponse] = []
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    node_endpoints: Annotated[list[ProduceLeaderEndpoint], since(10), tagged(0), ignorable] = []

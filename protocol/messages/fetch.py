"""Fetch (1) reads record batches of partitions, within a fetch session (KIP-227) or without one."""

from typing import Annotated

import msgspec

from ..schema import ZERO_UUID, Int8, Int16, Int32, Int64, Uuid, WireStruct, ignorable, message, since, tagged, until

READ_UNCOMMITTED, READ_COMMITTED = 0, 1


class FetchPartition(WireStruct):
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(9), ignorable] = -1
    fetch_offset: Int64 = 0
    last_fetched_epoch: Annotated[Int32, since(12)] = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    partition_max_bytes: Int32 = 0
    replica_directory_id: Annotated[Uuid, since(17), tagged(0), ignorable] = ZERO_UUID


class FetchTopic(WireStruct):
    topic: Annotated[str, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(WireStruct):
    topic: Annotated[str, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[Int32] = []


class ReplicaState(WireStruct):
    replica_id: Int32 = -1
    replica_epoch: Int64 = -1


@message(1, "request", versions=(0, 17), flexible=12)
class FetchRequest(WireStruct):
    cluster_id: Annotated[str | None, since(12), tagged(0), ignorable] = None
    replica_id: Annotated[Int32, until(14)] = -1
    replica_state: Annotated[ReplicaState, since(15), tagged(1)] = msgspec.field(default_factory=ReplicaState)
    max_wait_ms: Int32 = 0
    min_bytes: Int32 = 0
    max_bytes: Annotated[Int32, since(3), ignorable] = 2**31 - 1
    isolation_level: Annotated[Int8, since(4)] = READ_UNCOMMITTED
    session_id: Annotated[Int32, since(7), ignorable] = 0
    session_epoch: Annotated[Int32, since(7), ignorable] = -1
    topics: list[FetchTopic] = []
    forgotten_topics_data: Annotated[list[ForgottenTopic], since(7)] = []
    rack_id: Annotated[str, since(11), ignorable] = ""


class DivergingEpoch(WireStruct):
    epoch: Int32 = -1
    end_offset: Int64 = -1


class CurrentLeader(WireStruct):
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1


class SnapshotId(WireStruct):
    end_offset: Int64 = -1
    epoch: Int32 = -1


class AbortedTransactionRow(WireStruct):
    producer_id: Int64 = 0
    first_offset: Int64 = 0


class FetchedPartition(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    high_watermark: Int64 = 0
    last_stable_offset: Annotated[Int64, since(4), ignorable] = -1
    log_start_offset: Annotated[Int64, since(5), ignorable] = -1
    diverging_epoch: Annotated[DivergingEpoch, since(12), tagged(0), ignorable] = msgspec.field(
        default_factory=DivergingEpoch
    )
    current_leader: Annotated[CurrentLeader, since(12), tagged(1), ignorable] = msgspec.field(
        default_factory=CurrentLeader
    )
    snapshot_id: Annotated[SnapshotId, since(12), tagged(2), ignorable] = msgspec.field(default_factory=SnapshotId)
    aborted_transactions: Annotated[list[AbortedTransactionRow] | None, since(4), ignorable] = None
    preferred_read_replica: Annotated[Int32, since(11)] = -1
    records: bytes | None = None


class FetchableTopicResponse(WireStruct):
    topic: Annotated[str, until(12), ignorable] = ""
    topic_id: Annotated[Uuid, since(13), ignorable] = ZERO_UUID
    partitions: list[FetchedPartition] = []


class LeaderEndpoint(WireStruct):
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None


@message(1, "response", versions=(0, 17), flexible=12)
class FetchResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Annotated[Int16, since(7), ignorable] = 0
    session_id: Annotated[Int32, since(7)] = 0
    responses: list[FetchableTopicResponse] = []
    node_endpoints: Annotated[list[LeaderEndpoint], since(16), tagged(0), ignorable] = []

"""TxnOffsetCommit (28) commits a group's offsets when a producer's transaction does."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since


class TxnOffsetCommitRequestPartition(WireStruct):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(2), ignorable] = -1
    committed_metadata: str | None = ""


class TxnOffsetCommitRequestTopic(WireStruct):
    name: str = ""
    partitions: list[TxnOffsetCommitRequestPartition] = []


@message(28, "request", versions=(0, 4), flexible=3)
class TxnOffsetCommitRequest(WireStruct):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    generation_id: Annotated[Int32, since(3)] = -1
    member_id: Annotated[str, since(3)] = ""
    group_instance_id: Annotated[str | None, since(3)] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class TxnOffsetCommitResponseTopic(WireStruct):
    name: str = ""
    partitions: list[TxnOffsetCommitResponsePartition] = []


@message(28, "response", versions=(0, 4), flexible=3)
class TxnOffsetCommitResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []

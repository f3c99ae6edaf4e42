"""OffsetCommit (8) stores the offsets of a group."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since, until


class OffsetCommitPartition(WireStruct):
    partition_index: Int32 = 0
    committed_offset: Int64 = 0
    committed_leader_epoch: Annotated[Int32, since(6), ignorable] = -1
    commit_timestamp: Annotated[Int64, since(1), until(1)] = -1
    committed_metadata: str | None = ""


class OffsetCommitTopic(WireStruct):
    name: str = ""
    partitions: list[OffsetCommitPartition] = []


@message(8, "request", versions=(0, 9), flexible=8)
class OffsetCommitRequest(WireStruct):
    group_id: str = ""
    generation_id_or_member_epoch: Annotated[Int32, since(1), ignorable] = -1
    member_id: Annotated[str, since(1), ignorable] = ""
    group_instance_id: Annotated[str | None, since(7)] = None
    retention_time_ms: Annotated[Int64, since(2), until(4), ignorable] = -1
    topics: list[OffsetCommitTopic] = []


class CommittedOffsetResult(WireStruct):
    partition_index: Int32 = 0
    error_code: Int16 = 0


class OffsetCommitTopicResult(WireStruct):
    name: str = ""
    partitions: list[CommittedOffsetResult] = []


@message(8, "response", versions=(0, 9), flexible=8)
class OffsetCommitResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(3), ignorable] = 0
    topics: list[OffsetCommitTopicResult] = []

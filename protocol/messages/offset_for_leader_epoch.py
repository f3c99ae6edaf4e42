"""OffsetForLeaderEpoch (23) returns where the records of a leader epoch end in partitions."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since

CONSUMER, DEBUGGER = -1, -2
"""The replica ids of those that are no replicas."""


class OffsetForLeaderPartition(WireStruct):
    partition: Int32 = 0
    current_leader_epoch: Annotated[Int32, since(2), ignorable] = -1
    leader_epoch: Int32 = 0


class OffsetForLeaderTopic(WireStruct):
    topic: str = ""
    partitions: list[OffsetForLeaderPartition] = []


@message(23, "request", versions=(0, 4), flexible=4)
class OffsetForLeaderEpochRequest(WireStruct):
    replica_id: Annotated[Int32, since(3), ignorable] = DEBUGGER
    topics: list[OffsetForLeaderTopic] = []


class EpochEndOffset(WireStruct):
    error_code: Int16 = 0
    partition: Int32 = 0
    leader_epoch: Annotated[Int32, since(1), ignorable] = -1
    end_offset: Int64 = -1


class OffsetForLeaderTopicResult(WireStruct):
    topic: str = ""
    partitions: list[EpochEndOffset] = []


@message(23, "response", versions=(0, 4), flexible=4)
class OffsetForLeaderEpochResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(2), ignorable] = 0
    topics: list[OffsetForLeaderTopicResult] = []

"""ElectLeaders (43) makes preferred replicas lead again, or replicas that are not in sync where no
in-sync one is left.
"""

from enum import IntEnum
from typing import Annotated

from ..schema import Int8, Int16, Int32, WireStruct, message, since


class ElectionType(IntEnum):
    """The kinds of elections. Version 0 knows only the first."""

    PREFERRED = 0
    UNCLEAN = 1


class TopicPartitions(WireStruct):
    topic: str = ""
    partitions: list[Int32] = []


@message(43, "request", versions=(0, 2), flexible=2)
class ElectLeadersRequest(WireStruct):
    election_type: Annotated[Int8, since(1)] = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: Int32 = 60000


class PartitionResult(WireStruct):
    partition_id: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""


class ReplicaElectionResult(WireStruct):
    topic: str = ""
    partition_result: list[PartitionResult] = []


@message(43, "response", versions=(0, 2), flexible=2)
class ElectLeadersResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(1)] = 0
    replica_election_results: list[ReplicaElectionResult] = []

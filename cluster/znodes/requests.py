"""The znodes in which tools before Kafka 2.4 ask the controller to elect preferred leaders
(`/admin/preferred_replica_election`) and to move replicas (`/admin/reassign_partitions`).
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from .content import Int, Replicas, Text, read, write


class ElectionRow(Struct):
    topic: Text
    partition: Int


class PreferredReplicaElection(Struct):
    version: Int = 1
    partitions: list[ElectionRow] = []


ELECTION_READER = msgspec.json.Decoder(PreferredReplicaElection)


def decode_elections(data: bytes | None) -> dict[str, list[int]]:
    """Decode the znode, whatever its version, as Kafka does, to the partitions by topic. Raises
    MalformedZnodeError.
    """
    content = read("the election", data, ELECTION_READER)
    partitions: dict[str, dict[int, None]] = {}
    for row in content.partitions:
        partitions.setdefault(row.topic, {})[row.partition] = None
    return {topic: list(indexes) for topic, indexes in partitions.items()}


SubmittedReassignments = dict[tuple[str, int], tuple[int, ...]]
"""The wanted replicas by topic and partition."""


class ReassignmentRow(Struct, forbid_unknown_fields=True):
    topic: Text
    partition: Int
    replicas: Replicas


class ReassignPartitions(Struct, forbid_unknown_fields=True):
    version: Int = 1
    partitions: list[ReassignmentRow] = []


REASSIGNMENT_READER = msgspec.json.Decoder(ReassignPartitions)


def decode_reassignments(data: bytes | None) -> SubmittedReassignments:
    """Decode the znode as Kafka does: its version may be any, a key that is unknown makes it
    malformed, and of two rows about one partition the last counts. Raises MalformedZnodeError.
    """
    content = read("the reassignment", data, REASSIGNMENT_READER)
    return {(row.topic, row.partition): row.replicas for row in content.partitions}


def encode_reassignments(wanted: Mapping[tuple[str, int], tuple[int, ...]]) -> bytes:
    return write(
        ReassignPartitions(partitions=[ReassignmentRow(*partition, replicas) for partition, replicas in wanted.items()])
    )

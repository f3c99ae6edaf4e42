"""`/admin/reassign_partitions`, in which tools before Kafka 2.4 ask the controller to move
replicas.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from .content import Int, Replicas, Text, read, write

SubmittedReassignments = dict[tuple[str, int], tuple[int, ...]]
"""The wanted replicas by topic and partition."""


class ReassignmentRow(Struct, forbid_unknown_fields=True):
    topic: Text
    partition: Int
    replicas: Replicas


class ReassignPartitions(Struct, forbid_unknown_fields=True):
    version: Int = 1
    partitions: list[ReassignmentRow] = []


READER = msgspec.json.Decoder(ReassignPartitions)


def decode_reassignments(data: bytes | None) -> SubmittedReassignments:
    """Decode the znode as Kafka does: its version may be any, a key that is unknown makes it
    malformed, and of two rows about one partition the last counts. Raises MalformedZnodeError.
    """
    content = read("the reassignment", data, READER)
    return {(row.topic, row.partition): row.replicas for row in content.partitions}


def encode_reassignments(wanted: Mapping[tuple[str, int], tuple[int, ...]]) -> bytes:
    return write(
        ReassignPartitions(partitions=[ReassignmentRow(*partition, replicas) for partition, replicas in wanted.items()])
    )

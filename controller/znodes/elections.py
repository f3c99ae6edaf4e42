"""`/admin/preferred_replica_election`, in which tools before Kafka 2.4 ask the controller to elect
preferred leaders.
"""

import msgspec
from msgspec import Struct

from .content import Int, MalformedZnodeError, Text, read


class Row(Struct):
    topic: Text
    partition: Int


class PreferredReplicaElection(Struct):
    version: Int = 1
    partitions: list[Row] = []


READER = msgspec.json.Decoder(PreferredReplicaElection)


def decode_elections(data: bytes | None) -> dict[str, list[int]]:
    """Decode the znode to the partitions by topic. Raises MalformedZnodeError."""
    content = read("the election", data, READER)
    if content.version != 1:
        raise MalformedZnodeError(f"version {content.version} of the election is unknown")
    partitions: dict[str, dict[int, None]] = {}
    for row in content.partitions:
        partitions.setdefault(row.topic, {})[row.partition] = None
    return {topic: list(indexes) for topic, indexes in partitions.items()}

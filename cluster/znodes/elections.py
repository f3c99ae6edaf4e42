"""`/admin/preferred_replica_election`, in which tools before Kafka 2.4 ask the controller to elect
preferred leaders.
"""

import msgspec
from msgspec import Struct

from .content import Int, Text, read


class ElectionRow(Struct):
    topic: Text
    partition: Int


class PreferredReplicaElection(Struct):
    version: Int = 1
    partitions: list[ElectionRow] = []


READER = msgspec.json.Decoder(PreferredReplicaElection)


def decode_elections(data: bytes | None) -> dict[str, list[int]]:
    """Decode the znode, whatever its version, as Kafka does, to the partitions by topic. Raises
    MalformedZnodeError.
    """
    content = read("the election", data, READER)
    partitions: dict[str, dict[int, None]] = {}
    for row in content.partitions:
        partitions.setdefault(row.topic, {})[row.partition] = None
    return {topic: list(indexes) for topic, indexes in partitions.items()}

"""The coordinator of a group or a transaction: the leader of the partition to which its name
hashes.

Rule: the arithmetic is Java's, as in Kafka's brokers.
"""

from collections.abc import Mapping
from enum import IntEnum

from .entities import NO_LEADER, Topic
from .java_hash import java_hash


class CoordinatorType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


COORDINATED_BY = {
    CoordinatorType.GROUP: "__consumer_offsets",
    CoordinatorType.TRANSACTION: "__transaction_state",
}
"""The topics whose partitions' leaders are coordinators. Clusters in ZooKeeper mode have no share
groups.
"""


def partition_for(key: str, num_partitions: int) -> int:
    """Return Kafka's `abs(hash) % partitions`, where the absolute value of the smallest integer,
    which has none, is 0.
    """
    value = java_hash(key)
    return 0 if value == -(2**31) else abs(value) % num_partitions


def coordinator_of(kind: CoordinatorType, key: str, topics: Mapping[str, Topic]) -> int:
    """Return the broker id of the leader of the partition for a group or a transactional id, or
    NO_LEADER.
    """
    topic = topics.get(COORDINATED_BY[kind])
    if topic is None or not topic.partitions:
        return NO_LEADER
    return topic.partitions[partition_for(key, len(topic.partitions))].leader

"""Who coordinates a group or a transaction: the leader of the partition to which its name hashes.

Rule: the arithmetic is Java's, since real brokers and their clients do it too.
"""

from array import array
from enum import IntEnum
from operator import mul

from .image import NO_LEADER, Topic


class CoordinatorType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


COORDINATED_BY = {
    CoordinatorType.GROUP: "__consumer_offsets",
    CoordinatorType.TRANSACTION: "__transaction_state",
}
"""The topic whose leaders coordinate. Clusters in ZooKeeper mode have no share groups."""


POWERS = [31**power & 0xFFFFFFFF for power in reversed(range(256))]
"""What each character of a piece of text counts, the last one 1: so a piece costs one sum and not a
turn of a loop for each.
"""


def partition_for(key: str, num_partitions: int) -> int:
    """Return Kafka's `abs(hash) % partitions`, where the absolute value of the smallest integer,
    which has none, is 0.
    """
    value = java_hash(key)
    return 0 if value == -(2**31) else abs(value) % num_partitions


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`: over UTF-16 units, wrapped to 32 bits with a sign."""
    units = array("H", text.encode("utf-16", "surrogatepass"))[1:]  # without the mark of the machine's byte order
    value = 0
    for start in range(0, len(units), len(POWERS)):
        part = units[start : start + len(POWERS)]
        value = (value * pow(31, len(part), 2**32) + sum(map(mul, part, POWERS[-len(part) :]))) & 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def coordinator_of(key: str, topic: Topic | None) -> int:
    """Return the broker id of the leader of a key's partition, or NO_LEADER."""
    if topic is None or not topic.partitions:
        return NO_LEADER
    return topic.partitions[partition_for(key, len(topic.partitions))].leader

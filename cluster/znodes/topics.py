"""The znodes of topics: a topic's assignments and its partitions' states."""

from base64 import urlsafe_b64decode
from binascii import b2a_base64
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ...protocol.error_codes import ErrorCode
from ..entities import NO_TOPIC_ID, Partition, Topic
from ..errors import Refusal
from ..java_hash import numbers_order, partition_order
from . import layout
from .content import Epoch, Int, Leader, MalformedZnodeError, Replicas, read, write

URL_SAFE = bytes.maketrans(b"+/", b"-_")


@lru_cache(maxsize=1024)
def uuid_text(value: bytes) -> str:
    """Return an id as Kafka prints it: 22 characters of URL-safe base64."""
    return b2a_base64(value)[:22].translate(URL_SAFE).decode()


def uuid_bytes(text: str) -> bytes:
    try:
        value = urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise MalformedZnodeError(f"{text!r} is no id") from error
    if len(value) != 16:
        raise MalformedZnodeError(f"{text!r} is no id")
    return value


class AssignmentZnode(Struct, kw_only=True):
    partitions: dict[int, Replicas]
    topic_id: str | UnsetType | None = UNSET
    adding_replicas: dict[int, Replicas] = {}
    removing_replicas: dict[int, Replicas] = {}
    version: Int = 1


ASSIGNMENT_READER = msgspec.json.Decoder(AssignmentZnode)


def encode_topic(topic: Topic) -> bytes:
    """Encode a topic in version 3. A topic without an id, from before Kafka 2.8, gets none."""
    partitions = topic.partitions
    return write(
        AssignmentZnode(
            partitions={i: partitions[i].replicas for i in partition_order(len(partitions))},
            topic_id=UNSET if topic.topic_id == NO_TOPIC_ID else uuid_text(topic.topic_id),
            adding_replicas=_moving({i: each.adding_replicas for i, each in enumerate(partitions)}),
            removing_replicas=_moving({i: each.removing_replicas for i, each in enumerate(partitions)}),
            version=3,
        )
    )


def _moving(replicas: Mapping[int, Replicas]) -> dict[int, Replicas]:
    """Return the partitions that have any of these replicas, in the order in which Kafka writes
    them.
    """
    return {i: replicas[i] for i in numbers_order([i for i, each in replicas.items() if each])}


def least_topic_bytes(partitions: int, replication_factor: int) -> int:
    """Return a lower limit of the bytes that `encode_topic` returns for this many partitions."""
    row = len('"":[],') + 2 * max(1, replication_factor) - 1  # a digit of each broker, and the commas between
    digits = partitions + sum(max(0, partitions - more) for more in (10, 100, 1_000, 10_000, 100_000))
    return partitions * row + digits


def refuse_unstorable(partitions: int, replication_factor: int, max_bytes: int) -> None:
    """Refuse a topic that is too large for its znode, before memory is spent on placing its
    replicas. Raises INVALID_PARTITIONS.
    """
    if least_topic_bytes(partitions, replication_factor) > max_bytes:
        text = f"A topic of {partitions} partitions with {replication_factor} replicas each is too large for the store."
        raise Refusal(ErrorCode.INVALID_PARTITIONS, text)


def refuse_damaged(topic: Topic) -> None:
    """Refuse to write over a topic's znode that another program has damaged. Raises
    INVALID_TOPIC_EXCEPTION.
    """
    if not topic.is_readable:
        raise Refusal(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"{layout.topic_path(topic.name)} in ZooKeeper, which another program has written, cannot be followed: "
            "mend it, or delete the topic.",
        )


def decode_topic(name: str, data: bytes | None, znode_version: int = -1, czxid: int = -1) -> Topic:
    """Decode a topic's znode of versions 1 to 3, which holds the assignments; states and configs
    have znodes of their own.
    """
    assignment = read("the assignment", data, ASSIGNMENT_READER)
    replicas, adding, removing = assignment.partitions, assignment.adding_replicas, assignment.removing_replicas
    count = len(replicas)
    if replicas.keys() != set(range(count)):
        raise MalformedZnodeError(f"the partitions are {sorted(replicas)!r:.80}, not consecutive from 0")
    if any(not each or len(set(each)) < len(each) for each in replicas.values()):
        raise MalformedZnodeError("a partition has no replicas, or one broker twice")
    partitions = tuple(
        Partition(replicas[i], adding_replicas=adding.get(i, ()), removing_replicas=removing.get(i, ()))
        for i in range(count)
    )
    topic_id = uuid_bytes(assignment.topic_id) if assignment.topic_id else NO_TOPIC_ID
    return Topic(name, topic_id, partitions, version=znode_version, czxid=czxid)


class PartitionStateZnode(Struct, kw_only=True):
    controller_epoch: Int = 0
    leader: Leader
    version: Int = 1
    leader_recovery_state: Annotated[int, Meta(ge=0, le=1)] | UnsetType = UNSET
    """1 while the leader recovers from an unclean election; absent otherwise."""
    leader_epoch: Epoch
    isr: Replicas


STATE_READER = msgspec.json.Decoder(PartitionStateZnode)


def encode_partition_state(partition: Partition) -> bytes:
    return write(
        PartitionStateZnode(
            controller_epoch=partition.controller_epoch,
            leader=partition.leader,
            leader_recovery_state=partition.leader_recovery_state or UNSET,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
        )
    )


def decode_partition_state(partition: Partition, data: bytes | None, version: int) -> Partition:
    """Return the partition with its state; the znode's `version` is the partition epoch."""
    state = read("the state", data, STATE_READER)
    return Partition(
        partition.replicas,
        state.leader,
        state.leader_epoch,
        partition.replicas if state.isr == partition.replicas else state.isr,  # one object for both
        state.controller_epoch,
        version,
        state.leader_recovery_state or 0,
        partition.adding_replicas,
        partition.removing_replicas,
    )

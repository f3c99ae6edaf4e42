"""The znodes of groups, which hold their offsets, and the notifications that they have changed.
Kafka keeps offsets in a topic, which nodes without logs cannot.

Rule: a znode holds all offsets of one group, and its size is bounded. A group id may be any text,
so a long one is named by its hash.
"""

import base64
import hashlib
from typing import Annotated

import msgspec
from immutables import Map
from msgspec import Meta, Struct

from ..metadata.groups import CommittedOffset, Group, TopicOffsets
from .content import MAX_INT, Int, MalformedZnodeError, read, write
from .entity_names import is_node_name, sanitized

ROOT = "/minicontroller/groups"
CHANGES = "/minicontroller/group_changes"
CHANGE_PREFIX = f"{CHANGES}/group_change_"

PATHS = (ROOT, CHANGES)

MAX_GROUP_BYTES = 512 << 10
"""The most bytes of the znode of one group."""
MAX_BYTES = 16 << 20
"""The most bytes of the znodes of all groups, since every node knows all of them."""
MAX_GROUPS = 10_000
MAX_NAME = 200
"""The most characters of the name of a znode that is an escaped group id."""
HASHED = "~"
"""The first character of the name of a znode that is a hash. An escaped group id has none of it."""
SPECIAL = {"": "~empty", ".": "~dot", "..": "~dots"}
"""The names of znodes whose group id cannot be the name of any."""

Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
PartitionId = Annotated[int, Meta(ge=0, le=MAX_INT)]


class OffsetZnode(Struct, array_like=True):
    offset: Long
    leader_epoch: Int
    committed_ms: Long
    metadata: str


class TopicZnode(Struct):
    id: str
    partitions: dict[PartitionId, OffsetZnode]


class GroupZnode(Struct):
    version: Int
    group: str
    topics: dict[str, TopicZnode]


READER = msgspec.json.Decoder(GroupZnode)


def name_of(group_id: str) -> str:
    """Return the name of the znode of a group."""
    name = SPECIAL.get(group_id) or sanitized(group_id)
    if len(name) <= MAX_NAME:
        return name
    return HASHED + hashlib.sha256(group_id.encode("utf-8", "surrogatepass")).hexdigest()


def group_path(group_id: str) -> str:
    return f"{ROOT}/{name_of(group_id)}"


def encode_group(group: Group) -> bytes:
    topics = {
        name: TopicZnode(
            base64.urlsafe_b64encode(topic.topic_id).decode().rstrip("="),
            {
                index: OffsetZnode(each.offset, each.leader_epoch, each.committed_ms, each.metadata)
                for index, each in sorted(topic.partitions.items())
            },
        )
        for name, topic in sorted(group.topics.items())
    }
    return write(GroupZnode(1, group.group_id, topics))


def decode_group(name: str, data: bytes | None, version: int) -> Group:
    """Decode the group in a znode of this name and version. Raises MalformedZnodeError."""
    found = read("the group", data, READER)
    if name_of(found.group) != name:
        raise MalformedZnodeError("the znode holds another group than its name says")
    topics = {
        topic: TopicOffsets(
            _topic_id(kept.id),
            Map(
                {
                    index: CommittedOffset(each.offset, each.leader_epoch, each.metadata, each.committed_ms)
                    for index, each in kept.partitions.items()
                }
            ),
        )
        for topic, kept in found.topics.items()
    }
    return Group(found.group, Map(topics), len(data or b""), version)


def _topic_id(text: str) -> bytes:
    try:
        topic_id = base64.b64decode(f"{text}==", altchars=b"-_", validate=True)
    except ValueError as error:
        raise MalformedZnodeError(f"{text!r:.80} is no topic id") from error
    if len(topic_id) != 16:
        raise MalformedZnodeError(f"{text!r:.80} is no topic id")
    return topic_id


def decode_group_change(data: bytes | None) -> str:
    """Decode the notification of a change to the name of the group's znode."""
    try:
        name = (data or b"").decode()
    except UnicodeDecodeError as error:
        raise MalformedZnodeError(f"the notification is no text: {data!r:.80}") from error
    if not is_node_name(name):
        raise MalformedZnodeError(f"the notification names no group: {data!r:.80}")
    return name

"""The znodes of groups, of their offsets, and the notifications that they have changed. Kafka keeps
offsets in a topic, which nodes without logs cannot.

Rule: each offset has a znode of its own below that of its group, so that what is written for a
commit does not depend on what the group has besides. A group id may be any text, so a long one is
named by its hash.
"""

import base64
import hashlib
from collections.abc import Sequence
from typing import Annotated

import msgspec
from immutables import Map
from msgspec import Meta, Struct

from ..groups import CommittedOffset, GroupHeader, Offsets, Place
from ..topic_names import is_valid_topic_name
from .content import MAX_INT, Int, MalformedZnodeError, check_fit, read, write
from .entity_names import is_node_name, sanitized, unsanitized

ROOT = "/minicontroller/groups"
CHANGES = "/minicontroller/group_changes"
CHANGE_PREFIX = f"{CHANGES}/group_change_"

PATHS = (ROOT, CHANGES)

VERSION = 2
"""The version of a group's znode that has no offsets itself. In version 1 it had all of them."""
NAMES_IN_A_CHANGE = 500
"""The most offsets that one notification names."""
MAX_NAME = 200
"""The most characters of the name of a znode that is an escaped group id."""
HASHED = "~"
"""The first character of the name of a znode that is a hash. An escaped group id has none of it."""
SPECIAL = {"": "~empty", ".": "~dot", "..": "~dots"}
"""The names of znodes whose group id cannot be the name of any."""
NAMED_BY_HAND = {name: group_id for group_id, name in SPECIAL.items()}

MAX_DIGITS = len(str(MAX_INT))

Long = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
PartitionId = Annotated[int, Meta(ge=0, le=MAX_INT)]


class OlderOffset(Struct, array_like=True):
    offset: Long
    leader_epoch: Int
    committed_ms: Long
    metadata: str


class OlderTopic(Struct):
    id: str
    partitions: dict[PartitionId, OlderOffset]


class GroupZnode(Struct, omit_defaults=True):
    version: Int
    group: str
    owner: str = ""
    topics: dict[str, OlderTopic] | None = None
    """The offsets in version 1."""


class OffsetZnode(Struct, array_like=True):
    offset: Long
    leader_epoch: Int
    committed_ms: Long
    metadata: str
    topic_id: str


READER = msgspec.json.Decoder(GroupZnode)
OFFSET_READER = msgspec.json.Decoder(OffsetZnode)


def name_of(group_id: str) -> str:
    name = SPECIAL.get(group_id) or sanitized(group_id)
    if len(name) <= MAX_NAME:
        return name
    return HASHED + hashlib.sha256(group_id.encode("utf-8", "surrogatepass")).hexdigest()


def id_at(name: str) -> str:
    """Return the id of the group whose znode has this name; empty if the name does not tell."""
    found = NAMED_BY_HAND.get(name, unsanitized(name))
    return found if name_of(found) == name else ""


def group_path(group_id: str) -> str:
    return f"{ROOT}/{name_of(group_id)}"


def offset_name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def place_of(name: str) -> Place | None:
    topic, _, number = name.rpartition("-")
    is_number = number.isascii() and number.isdigit() and len(number) <= MAX_DIGITS
    if not is_number or number != str(int(number)) or int(number) > MAX_INT or not is_valid_topic_name(topic):
        return None
    return topic, int(number)


def encode_header(header: GroupHeader) -> bytes:
    return write(GroupZnode(VERSION, header.group_id, header.owner))


def decode_header(name: str, data: bytes | None, version: int) -> GroupHeader:
    """Decode the group's znode of this name and version. Raises MalformedZnodeError."""
    found = read("the group", data, READER)
    if name_of(found.group) != name:
        raise MalformedZnodeError("the znode holds another group than its name says")
    check_fit("the id of the group", [found.group])
    if not 1 <= found.version <= VERSION:
        raise MalformedZnodeError(f"the group has version {found.version}")
    older = None if found.version == VERSION else _older(found.topics or {})
    return GroupHeader(found.group, found.owner, older, version)


def _older(topics: dict[str, OlderTopic]) -> Offsets:
    offsets = {}
    for topic, kept in topics.items():
        if not is_valid_topic_name(topic):
            raise MalformedZnodeError(f"{topic!r:.80} is no name of a topic")
        topic_id = _topic_id(kept.id)
        check_fit("the metadata of an offset", (each.metadata for each in kept.partitions.values()))
        offsets[topic] = Map(
            {
                index: CommittedOffset(each.offset, each.leader_epoch, each.metadata, each.committed_ms, topic_id)
                for index, each in kept.partitions.items()
            }
        )
    return Map(offsets)


def encode_offset(each: CommittedOffset) -> bytes:
    topic_id = base64.urlsafe_b64encode(each.topic_id).decode().rstrip("=")
    return write(OffsetZnode(each.offset, each.leader_epoch, each.committed_ms, each.metadata, topic_id))


def decode_offset(data: bytes | None, version: int) -> CommittedOffset:
    """Decode an offset whose znode has this version. Raises MalformedZnodeError."""
    found = read("the offset", data, OFFSET_READER)
    check_fit("the metadata of the offset", [found.metadata])
    topic_id = _topic_id(found.topic_id)
    return CommittedOffset(found.offset, found.leader_epoch, found.metadata, found.committed_ms, topic_id, version)


def _topic_id(text: str) -> bytes:
    try:
        topic_id = base64.b64decode(f"{text}==", altchars=b"-_", validate=True)
    except ValueError as error:
        raise MalformedZnodeError(f"{text!r:.80} is no topic id") from error
    if len(topic_id) != 16:
        raise MalformedZnodeError(f"{text!r:.80} is no topic id")
    return topic_id


def encode_group_changes(name: str, places: Sequence[Place]) -> list[bytes]:
    """Encode the notifications that these offsets of a group have changed, or its own znode has. A
    notification is the name of the group's znode, and on lines of their own those of offsets.
    """
    names = [offset_name(place) for place in places]
    parts = [names[start : start + NAMES_IN_A_CHANGE] for start in range(0, len(names), NAMES_IN_A_CHANGE)]
    return ["\n".join([name, *part]).encode() for part in parts or [[]]]


def decode_group_change(data: bytes | None) -> tuple[str, ...]:
    """Decode a notification to the paths, below the root of all groups, of what has changed."""
    try:
        name, *offsets = (data or b"").decode().split("\n")
    except UnicodeDecodeError as error:
        raise MalformedZnodeError(f"the notification is no text: {data!r:.80}") from error
    if not is_node_name(name) or any(place_of(each) is None for each in offsets):
        raise MalformedZnodeError(f"the notification names no group: {data!r:.80}")
    return (name, *(f"{name}/{each}" for each in offsets))

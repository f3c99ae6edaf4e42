"""The groups of the cluster: what administrators have set their offsets to. Groups have no members,
since nodes keep no records that these could read.

Rule: an offset belongs to the topic that had the name when it was set. A topic of the same name
that is created later has none.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from immutables import Map

from .entities import NO_TOPIC_ID, Topic

NO_EPOCH = -1
NO_ZNODE = -1
ZNODE_BYTES = 128
"""The cost of a znode to ZooKeeper and to each node, besides the texts in it."""

Place = tuple[str, int]
"""The name of a topic, and a partition of it."""


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    """The offset of a group in one partition, as the store has it."""

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    committed_ms: int = 0
    """When it was set, in milliseconds since 1970."""
    topic_id: bytes = NO_TOPIC_ID
    version: int = NO_ZNODE
    """The version of its znode."""
    is_readable: bool = True
    """Whether its znode says what it is; otherwise it counts as none, and may be written over."""

    def is_live(self, topic: Topic | None) -> bool:
        """Whether the topic of its name is the one for which it was set, and still exists."""
        return self.is_readable and not self.is_orphan(topic)

    def is_orphan(self, topic: Topic | None) -> bool:
        """Whether the topic for which it was set is gone, given the one of its name."""
        if topic is None or topic.marked_for_deletion:
            return True
        return self.is_readable and topic.topic_id != self.topic_id


Offsets = Map[str, Map[int, CommittedOffset]]
"""Offsets by topic and partition."""


class GroupHeader(msgspec.Struct, frozen=True):
    """The znode of a group, below which its offsets lie."""

    group_id: str
    owner: str = ""
    """The principal that set the first offset, whose room the group takes; empty if nobody knows.
    """
    older: Offsets | None = None
    """The offsets that an earlier version of this program kept in this znode itself; None if it was
    written by this version.
    """
    version: int = NO_ZNODE
    """The version of the znode."""
    is_readable: bool = True
    """Whether the znode says what it is; otherwise its name tells the id of the group, unless that
    is long, and the next commit writes it over.
    """


class Group(msgspec.Struct, frozen=True, eq=False):
    """A group with its offsets: as the store has it, or as an edit makes it."""

    header: GroupHeader
    offsets: Offsets = Map()
    """All offsets. Those without a znode are in the header, or are not in the store yet."""
    size: int = 0
    """The room that the group takes in the store, in bytes."""
    touched: frozenset[Place] = frozenset()
    """The places of the offsets that an edit has set or removed."""

    @property
    def group_id(self) -> str:
        return self.header.group_id

    @property
    def version(self) -> int:
        return self.header.version

    @classmethod
    def of(cls, header: GroupHeader, stored: Mapping[Place, CommittedOffset | None]) -> "Group":
        """Return the group of this header with the offsets that have znodes, which come before
        those in the header.
        """
        older = {} if header.older is None else dict(_placed(header.older))
        empty = cls(header, size=ZNODE_BYTES + len(header.group_id) + len(header.owner))
        return empty.with_stored({**older, **stored})

    def placed(self) -> Iterator[tuple[Place, CommittedOffset]]:
        return _placed(self.offsets)

    def at(self, place: Place) -> CommittedOffset | None:
        partitions = self.offsets.get(place[0])
        return None if partitions is None else partitions.get(place[1])

    def live(self, topics: Mapping[str, Topic]) -> Mapping[str, Mapping[int, CommittedOffset]]:
        found = {
            name: {index: each for index, each in partitions.items() if each.is_live(topics.get(name))}
            for name, partitions in self.offsets.items()
        }
        return {name: offsets for name, offsets in found.items() if offsets}

    def exists(self, topics: Mapping[str, Topic]) -> bool:
        return any(each.is_live(topics.get(topic)) for (topic, _), each in self.placed())

    @property
    def is_damaged(self) -> bool:
        return not self.header.is_readable or not all(each.is_readable for _, each in self.placed())

    def repaired(self, group_id: str, owner: str) -> "Group":
        """Return the group with a header to write in place of one that cannot be read, which has
        this id, and unless another owner is known this one.
        """
        if self.header.is_readable:
            return self
        header = msgspec.structs.replace(
            self.header, group_id=group_id, owner=self.header.owner or owner, is_readable=True
        )
        return msgspec.structs.replace(Group.of(header, dict(self.placed())), touched=self.touched)

    def with_offsets(self, topic: Topic, offsets: Mapping[int, CommittedOffset]) -> "Group":
        return self._edited(
            {
                (topic.name, index): msgspec.structs.replace(each, topic_id=topic.topic_id)
                for index, each in offsets.items()
            }
        )

    def without_offsets(self, topic: str, partitions: Iterable[int]) -> "Group":
        return self._edited({(topic, index): None for index in partitions if self.at((topic, index)) is not None})

    def kept(self, topics: Mapping[str, Topic], *, since_ms: int) -> "Group":
        """Return the group without offsets in topics that are gone, and without those that were set
        before this time.
        """
        return self._edited(
            {
                place: None
                for place, each in self.placed()
                if each.is_orphan(topics.get(place[0])) or (each.is_readable and each.committed_ms < since_ms)
            }
        )

    def _edited(self, changed: Mapping[Place, CommittedOffset | None]) -> "Group":
        if not changed:
            return self
        return msgspec.structs.replace(self.with_stored(changed), touched=self.touched.union(changed))

    def with_stored(self, changed: Mapping[Place, CommittedOffset | None]) -> "Group":
        by_topic: dict[str, dict[int, CommittedOffset | None]] = {}
        for (topic, index), each in changed.items():
            by_topic.setdefault(topic, {})[index] = each
        offsets, size = self.offsets, self.size
        for topic, rows in by_topic.items():
            partitions = offsets.get(topic, Map()).mutate()
            for index, each in rows.items():
                size += _room(topic, each) - _room(topic, partitions.pop(index, None))
                if each is not None:
                    partitions[index] = each
            left = partitions.finish()
            offsets = offsets.set(topic, left) if left else _without(offsets, topic)
        return Group(self.header, offsets, size)


def _without(offsets: Offsets, topic: str) -> Offsets:
    return offsets.delete(topic) if topic in offsets else offsets


def _placed(offsets: Offsets) -> Iterator[tuple[Place, CommittedOffset]]:
    return (((topic, index), each) for topic, partitions in offsets.items() for index, each in partitions.items())


def _room(topic: str, each: CommittedOffset | None) -> int:
    """Return the room that an offset takes. It does not depend on the offset itself, so that an
    offset can always be set again.
    """
    return 0 if each is None else ZNODE_BYTES + len(topic) + len(each.metadata.encode("utf-8", "replace"))

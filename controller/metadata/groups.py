"""The groups of the cluster: what administrators have set their offsets to. Groups have no members,
since nodes keep no records that these could read.

Rule: an offset belongs to the topic that had the name when it was set. A topic of the same name
that is created later has none.
"""

from collections.abc import Iterable, Mapping

import msgspec
from immutables import Map

from .entities import Topic

NO_EPOCH = -1


class CommittedOffset(msgspec.Struct, frozen=True, gc=False):
    """The offset of a group in one partition."""

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    committed_ms: int = 0
    """When it was set, in milliseconds since 1970."""


class TopicOffsets(msgspec.Struct, frozen=True):
    """The offsets of a group in one topic."""

    topic_id: bytes
    partitions: Map[int, CommittedOffset] = Map()


class Group(msgspec.Struct, frozen=True):
    """A group with its offsets, as the store has it."""

    group_id: str
    topics: Map[str, TopicOffsets] = Map()
    size: int = 0
    """The bytes of its znode."""
    version: int = -1
    """The version of its znode; -1 if there is none, UNREADABLE if nobody knows what it says."""

    def is_same(self, other: "Group | None") -> bool:
        """Whether both have the same offsets."""
        return other is not None and other.topics == self.topics

    def live(self, topics: Mapping[str, Topic]) -> Mapping[str, TopicOffsets]:
        """Return the offsets in topics that still exist."""
        return {name: kept for name, kept in self.topics.items() if is_live(name, kept, topics)}

    def exists(self, topics: Mapping[str, Topic]) -> bool:
        """Whether the group exists: one without offsets in any topic does not."""
        return any(is_live(name, kept, topics) for name, kept in self.topics.items())

    def with_offsets(self, topic: Topic, offsets: Mapping[int, CommittedOffset]) -> "Group":
        """Return the group with these offsets in a topic, in place of any that it had there."""
        known = self.topics.get(topic.name)
        partitions: Map[int, CommittedOffset] = Map()
        if known is not None and known.topic_id == topic.topic_id:
            partitions = known.partitions
        return msgspec.structs.replace(
            self, topics=self.topics.set(topic.name, TopicOffsets(topic.topic_id, partitions.update(offsets)))
        )

    def without_offsets(self, topic: str, partitions: Iterable[int]) -> "Group":
        """Return the group without its offsets in these partitions of a topic."""
        known = self.topics.get(topic)
        if known is None:
            return self
        left = known.partitions
        for index in partitions:
            if index in left:
                left = left.delete(index)
        topics = self.topics.set(topic, TopicOffsets(known.topic_id, left)) if left else self.topics.delete(topic)
        return msgspec.structs.replace(self, topics=topics)

    def kept(self, topics: Mapping[str, Topic], *, since_ms: int) -> "Group":
        """Return the group without offsets in topics that are gone, and without those that were set
        before this time.
        """
        group = self
        for name, offsets in self.topics.items():
            live = is_live(name, offsets, topics)
            doomed = [i for i, each in offsets.partitions.items() if not live or each.committed_ms < since_ms]
            if doomed or not offsets.partitions:
                group = group.without_offsets(name, doomed)
        return group


def is_live(name: str, offsets: TopicOffsets, topics: Mapping[str, Topic]) -> bool:
    """Whether the topic in which a group has these offsets still exists."""
    topic = topics.get(name)
    return topic is not None and topic.topic_id == offsets.topic_id and not topic.marked_for_deletion

"""The offsets of one group: those that are committed, and those of transactions that are open.

Rule: of two commits of a partition the one that was asked for last counts, also where the other
belongs to a transaction that ends later.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from ...cluster.groups import NO_EPOCH

NO_GENERATION = -1
OFFSET_BYTES = 256
"""What an offset takes in memory besides its texts, about."""

TopicPartition = tuple[str, int]


class Committer(msgspec.Struct, frozen=True):
    """Who asks, as a member of a generation or as nobody."""

    member_id: str = ""
    instance_id: str | None = None
    generation: int = NO_GENERATION

    @property
    def names_member(self) -> bool:
        return self.generation >= 0 or self.member_id != "" or self.instance_id is not None


class GroupOffset(msgspec.Struct, frozen=True, gc=False):
    """An offset, with times in milliseconds since 1970."""

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    committed_ms: int = 0
    expires_ms: int | None = None
    """When it is removed, if its client wanted that (OffsetCommit before version 5)."""
    number: int = 0
    """Its number among the commits of its group."""


class OffsetsOfGroup:
    def __init__(self) -> None:
        self.committed: dict[str, dict[int, GroupOffset]] = {}
        self.size = 0
        """The memory of all offsets in bytes, about."""
        self._pending: dict[int, dict[TopicPartition, GroupOffset]] = {}
        """The offsets of open transactions, by the ids of their producers."""
        self._commits = 0

    @property
    def is_empty(self) -> bool:
        return not self.committed and not self._pending

    @property
    def producers(self) -> Collection[int]:
        """The ids of the producers whose transactions are open."""
        return self._pending.keys()

    def is_unstable(self, topic: str, partition: int) -> bool:
        """Whether an open transaction may still change the offset of a partition."""
        return any((topic, partition) in offsets for offsets in self._pending.values())

    # ------------------------------------------------------------------ commits

    def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        for place, offset in self._numbered(offsets).items():
            self._put(place, offset)

    def commit_in_transaction(self, producer_id: int, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        pending = self._pending.setdefault(producer_id, {})
        for place, offset in self._numbered(offsets).items():
            self.size += _size(place, offset) - _size(place, pending.get(place))
            pending[place] = offset

    def end_transaction(self, producer_id: int, *, commits: bool) -> None:
        for place, offset in self._pending.pop(producer_id, {}).items():
            self.size -= _size(place, offset)
            before = self._get(place)
            if commits and (before is None or before.number < offset.number):
                self._put(place, offset)

    def _numbered(self, offsets: Mapping[TopicPartition, GroupOffset]) -> dict[TopicPartition, GroupOffset]:
        self._commits += 1
        return {place: msgspec.structs.replace(each, number=self._commits) for place, each in offsets.items()}

    # ------------------------------------------------------------------ removals

    def delete(self, places: Iterable[TopicPartition]) -> None:
        """Remove the offsets of partitions, also those of open transactions."""
        for place in places:
            self._remove(place)
            for producer_id, pending in list(self._pending.items()):
                self.size -= _size(place, pending.pop(place, None))
                if not pending:
                    del self._pending[producer_id]

    def delete_topics(self, names: Collection[str]) -> None:
        places = {place for pending in self._pending.values() for place in pending}
        places |= {(name, index) for name in names for index in self.committed.get(name, ())}
        self.delete([place for place in places if place[0] in names])

    def expire(self, now: int, retention_ms: int, *, since: int | None = None, keeping: Collection[str] = ()) -> None:
        """Remove the offsets whose retention is over, counted from a time or from their commits,
        but for those of some topics.
        """
        places = [
            (topic, index)
            for topic, offsets in self.committed.items()
            for index, each in offsets.items()
            if topic not in keeping and _is_over(each, now, retention_ms, since)
        ]
        for place in places:
            self._remove(place)

    # ------------------------------------------------------------------ places

    def _get(self, place: TopicPartition) -> GroupOffset | None:
        return self.committed.get(place[0], {}).get(place[1])

    def _put(self, place: TopicPartition, offset: GroupOffset) -> None:
        self.size += _size(place, offset) - _size(place, self._get(place))
        self.committed.setdefault(place[0], {})[place[1]] = offset

    def _remove(self, place: TopicPartition) -> None:
        offsets = self.committed.get(place[0], {})
        self.size -= _size(place, offsets.pop(place[1], None))
        if not offsets:
            self.committed.pop(place[0], None)


def _size(place: TopicPartition, offset: GroupOffset | None) -> int:
    return 0 if offset is None else OFFSET_BYTES + len(place[0]) + len(offset.metadata)


def _is_over(offset: GroupOffset, now: int, retention_ms: int, since: int | None) -> bool:
    if offset.expires_ms is not None:
        return now >= offset.expires_ms
    return now - (offset.committed_ms if since is None else since) >= retention_ms

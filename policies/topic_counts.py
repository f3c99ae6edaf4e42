"""The numbers of topics and of their partitions, by the prefix of their names. They are kept up to
date as topics change, and not counted when a rule asks.

Rule: counts are immutable. A change makes new counts, which share all but one chunk of names with
the old ones. To count the topics of a prefix takes time in proportion to the chunks, not to the
topics.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

LARGEST_CHUNK = 128


class Held(NamedTuple):
    """The numbers of topics and of their partitions."""

    topics: int
    partitions: int


def total(partitions: Iterable[int]) -> Held:
    counted = list(partitions)
    return Held(len(counted), sum(counted))


class _Chunk(NamedTuple):
    """Names in order, and the number of partitions of each topic."""

    names: tuple[str, ...]
    partitions: tuple[int, ...]
    total: int

    def part(self, low: int, high: int | None) -> "_Chunk":
        partitions = self.partitions[low:high]
        return _Chunk(self.names[low:high], partitions, sum(partitions))


def counts_of(cluster: object) -> "TopicCounts | None":
    counts = getattr(cluster, "counts", None)
    return counts if isinstance(counts, TopicCounts) else None


class TopicCounts:
    """Counts of topics and partitions by prefix. It iterates over the names, in order."""

    __slots__ = ("_chunks", "_firsts", "topics")

    def __init__(self, chunks: tuple[_Chunk, ...] = (), firsts: tuple[str, ...] = (), topics: int = 0) -> None:
        self._chunks = chunks
        self._firsts = firsts
        self.topics = topics

    @classmethod
    def of(cls, partitions: Iterable[tuple[str, int]]) -> "TopicCounts":
        """Make counts of pairs of a topic's name and its number of partitions; each name is there
        once.
        """
        ordered = sorted(partitions)
        half = LARGEST_CHUNK // 2  # room for new ones
        parts = [ordered[first : first + half] for first in range(0, len(ordered), half)]
        chunks = tuple(
            _Chunk(tuple(name for name, _ in part), tuple(count for _, count in part), sum(count for _, count in part))
            for part in parts
        )
        return cls(chunks, tuple(chunk.names[0] for chunk in chunks), len(ordered))

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(chunk.names for chunk in self._chunks)

    def with_topic(self, name: str, partitions: int) -> "TopicCounts":
        if not self._chunks:
            return TopicCounts((_Chunk((name,), (partitions,), partitions),), (name,), 1)
        place, chunk, at, is_known = self._find(name)
        if is_known and chunk.partitions[at] == partitions:
            return self
        after = at + is_known
        changed = _Chunk(
            (*chunk.names[:at], name, *chunk.names[after:]),
            (*chunk.partitions[:at], partitions, *chunk.partitions[after:]),
            chunk.total + partitions - (chunk.partitions[at] if is_known else 0),
        )
        if len(changed.names) <= LARGEST_CHUNK:
            return self._with(place, (changed,), self.topics + (not is_known))
        half = LARGEST_CHUNK // 2
        return self._with(place, (changed.part(0, half), changed.part(half, None)), self.topics + 1)

    def without(self, name: str) -> "TopicCounts":
        if not self._chunks:
            return self
        place, chunk, at, is_known = self._find(name)
        if not is_known:
            return self
        left = _Chunk(
            (*chunk.names[:at], *chunk.names[at + 1 :]),
            (*chunk.partitions[:at], *chunk.partitions[at + 1 :]),
            chunk.total - chunk.partitions[at],
        )
        return self._with(place, (left,) if left.names else (), self.topics - 1)

    def partitions(self, name: str) -> int | None:
        if not self._chunks:
            return None
        _, chunk, at, is_known = self._find(name)
        return chunk.partitions[at] if is_known else None

    def held(self, prefix: str) -> Held:
        topics = partitions = 0
        for chunk, low, high in self._ranges(prefix):
            topics += high - low
            partitions += chunk.total if high - low == len(chunk.names) else sum(chunk.partitions[low:high])
        return Held(topics, partitions)

    def beginning(self, prefix: str) -> Iterator[tuple[str, int]]:
        """Yield the topics whose names begin with the prefix, with their numbers of partitions."""
        for chunk, low, high in self._ranges(prefix):
            yield from zip(chunk.names[low:high], chunk.partitions[low:high], strict=True)

    def _ranges(self, prefix: str) -> Iterator[tuple[_Chunk, int, int]]:
        length = len(prefix)

        def beginning(name: str) -> str:
            return name[:length]

        first = max(bisect_left(self._firsts, prefix) - 1, 0)
        last = bisect_right(self._firsts, prefix, key=beginning)
        for place in range(first, last):
            chunk = self._chunks[place]
            low = bisect_left(chunk.names, prefix) if place == first else 0
            high = bisect_right(chunk.names, prefix, key=beginning) if place == last - 1 else len(chunk.names)
            if low < high:
                yield chunk, low, high

    def _find(self, name: str) -> tuple[int, _Chunk, int, bool]:
        place = max(bisect_right(self._firsts, name) - 1, 0)
        chunk = self._chunks[place]
        at = bisect_left(chunk.names, name)
        return place, chunk, at, at < len(chunk.names) and chunk.names[at] == name

    def _with(self, place: int, chunks: tuple[_Chunk, ...], topics: int) -> "TopicCounts":
        made = (*self._chunks[:place], *chunks, *self._chunks[place + 1 :])
        firsts = self._firsts
        if len(chunks) != 1 or chunks[0].names[0] != firsts[place]:
            firsts = (*firsts[:place], *(chunk.names[0] for chunk in chunks), *firsts[place + 1 :])
        return TopicCounts(made, firsts, topics)

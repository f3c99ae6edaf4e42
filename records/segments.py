"""A part of a log: batches one behind the other in one run of memory (Kafka: LogSegment).

Rule: each batch costs its bytes and three numbers, and no object of Python, so that a gigabyte of
small batches neither doubles nor stops the process while its garbage is collected.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from .batches import NO_TIMESTAMP, Batch

INDEX_BYTES = 3 * 8
"""The numbers of one batch."""


class Segment:
    """The batches with offsets from `base_offset` on, up to the next segment's."""

    def __init__(self, base_offset: int, created: int, index_interval: int) -> None:
        self.base_offset = base_offset
        self.size = 0
        """The bytes of all its batches, of those too that `release` has given back: what Kafka's
        file would have.
        """
        self.max_timestamp = NO_TIMESTAMP
        self.modified = created
        """When something was last appended."""
        self.first_timestamp = NO_TIMESTAMP
        """The timestamp of the first batch, from which `segment.ms` counts."""
        self._created = created
        self._data = bytearray()
        self._released = 0
        """The bytes before those of `_data`."""
        self._starts = array("q")
        """Where each batch begins."""
        self._nexts = array("q")
        """The offset behind each batch."""
        self._timestamps = array("q")
        """The largest timestamp of each batch and those before it."""
        self._index_interval = index_interval
        self._since_index = 0
        self._indexed = array("q")
        """Where the batches begin that Kafka's sparse index would have, and..."""
        self._indexed_offsets = array("q")
        """...their last offsets."""

    # ------------------------------------------------------------------ writing

    def append(self, batch: Batch, now: int) -> None:
        if not self.size:
            self.first_timestamp = batch.max_timestamp
        if self._since_index > self._index_interval:
            self._indexed.append(self.size)
            self._indexed_offsets.append(batch.last_offset)
            self._since_index = 0
        self._since_index += batch.size
        self._starts.append(self.size)
        self._nexts.append(batch.next_offset)
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)
        self._timestamps.append(self.max_timestamp)
        self._data += batch.data
        self.size += batch.size
        self.modified = now

    def is_full_for(self, batch: Batch, segment_bytes: int, segment_ms: int, now: int) -> bool:
        waited = batch.max_timestamp - self.first_timestamp if self.first_timestamp >= 0 else now - self._created
        return (
            self.size > segment_bytes - batch.size
            or (self.size > 0 and waited > segment_ms)
            or batch.last_offset - self.base_offset > 2**31 - 1
        )

    def release(self, offset: int) -> None:
        """Give back the memory of the batches before an offset, which nobody can read."""
        gone = bisect_right(self._nexts, offset)
        if gone:
            end = self._starts[gone] if gone < len(self._starts) else self.size
            del self._data[: end - self._released]
            del self._starts[:gone], self._nexts[:gone], self._timestamps[:gone]
            self._released = end

    @property
    def memory(self) -> int:
        return len(self._data) + len(self._starts) * INDEX_BYTES

    @property
    def largest_timestamp(self) -> int:
        """Return the largest timestamp of its records, or when it was last appended to if they have
        none.
        """
        return self.max_timestamp if self.max_timestamp >= 0 else self.modified

    # ------------------------------------------------------------------ reading

    def bounds(self, offset: int, bound: int) -> tuple[int, int, int]:
        """Return where the batch with an offset, or the first behind it, begins and ends, and where
        the last batch before the offset `bound` ends; equal numbers if there is none.
        """
        index = bisect_right(self._nexts, offset)
        end = self._end(bisect_right(self._nexts, bound) - 1)
        if index == len(self._starts) or self._starts[index] >= end:
            return end, end, end
        return self._starts[index], self._end(index), end

    def _end(self, index: int) -> int:
        return self._starts[index + 1] if index + 1 < len(self._starts) else self.size

    def bytes_between(self, start: int, end: int) -> bytes:
        with memoryview(self._data) as view:
            return bytes(view[start - self._released : end - self._released])

    def offset_behind(self, position: int) -> int | None:
        """Return the offset that Kafka's sparse index has behind a position, if any."""
        index = bisect_left(self._indexed, position)
        return self._indexed_offsets[index] if index < len(self._indexed) else None

    def __len__(self) -> int:
        return len(self._starts)

    def batch(self, index: int) -> Batch:
        return Batch.read(self.bytes_between(self._starts[index], self._end(index)))

    def since(self, timestamp: int, offset: int) -> Iterator[Batch]:
        """Yield the batches that have a record of a time or later, and of an offset or later."""
        start = max(bisect_right(self._nexts, offset), bisect_left(self._timestamps, timestamp))
        found = (self.batch(index) for index in range(start, len(self)))
        return (each for each in found if each.max_timestamp >= timestamp)

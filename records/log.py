"""The log of one partition, which all its replicas share (Kafka: UnifiedLog).

Rule: start, high watermark and end of a log only grow. The high watermark follows the end unless
the shell around the log holds it, as a follower that lags does.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter

from ..process.steps import Steps
from ..protocol.error_codes import ErrorCode
from .batches import NO_TIMESTAMP, Batch, TimestampType
from .compaction import Cleaning, Ended, cleaned
from .control import EndMarker, marker_batch
from .epochs import Epochs, EpochStart
from .errors import LogError
from .log_values import NOTHING_APPENDED, AbortedTransaction, Appended, FoundRecord, Isolation, ReadBatches
from .memory import Memory
from .producers import NO_OFFSET, Producers
from .records import records_in_steps
from .segments import Segment
from .settings import LogSettings
from .validation import LogPlace, validated

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
"""The special timestamps of ListOffsets."""
PRODUCER_BYTES = 1024
"""About what a producer, with its last batches, takes of memory."""
NOTE_BYTES = 128
"""About what an aborted transaction or a leader epoch takes of memory."""
BATCH_BYTES = 256
"""What the memory must have room for beside a batch."""

_BASE, _LAST = attrgetter("base_offset"), attrgetter("last_offset")


class PartitionLog:
    def __init__(self, name: str, settings: LogSettings, memory: Memory) -> None:
        self.name = name
        """The topic and the partition's number, as Kafka's messages name it: `orders-0`."""
        self.settings = settings
        self.start = 0
        """The first offset that readers can have, which DeleteRecords and retention move."""
        self.end = 0
        self.size = 0
        """The bytes of all segments, as DescribeLogDirs shows them."""
        self.producers = Producers(name)
        self.epochs = Epochs()
        self._memory = memory
        self._counted = 0
        """What the memory counts of this log."""
        self._held = 0
        """What the segments take of memory."""
        self._high_watermark: int | None = None
        """None while all replicas have everything, which is usual."""
        self._segments: list[Segment] = []
        self._aborted: list[AbortedTransaction] = []
        self._unreplicated: list[AbortedTransaction] = []
        """The transactions whose markers the high watermark has not passed."""
        self._cleaning = Cleaning()

    # ------------------------------------------------------------------ bounds

    @property
    def high_watermark(self) -> int:
        return self.end if self._high_watermark is None else self._high_watermark

    def hold_high_watermark(self, offset: int | None) -> None:
        """Hold the high watermark at an offset, as a follower that lags does, or let it follow the
        end again with None. It does not fall.
        """
        self._high_watermark = None if offset is None else max(self.high_watermark, min(offset, self.end))
        passed = self.high_watermark
        self._unreplicated = [each for each in self._unreplicated if each.last_offset >= passed]

    @property
    def last_stable_offset(self) -> int:
        """Return the first offset that a transaction can still change for a reader."""
        bound = self.high_watermark
        first_open = self.producers.first_open_offset
        if first_open is not None:
            bound = min(bound, max(first_open, self.start))
        if self._unreplicated:
            bound = min(bound, max(self.start, min(each.first_offset for each in self._unreplicated)))
        return bound

    def _bound(self, isolation: Isolation) -> int:
        match isolation:
            case Isolation.READ_COMMITTED:
                return self.last_stable_offset
            case Isolation.READ_UNCOMMITTED:
                return self.high_watermark
            case _:
                return self.end

    # ------------------------------------------------------------------ writing

    def begin_epoch(self, epoch: int) -> None:
        """Note a new leader, which writes from the log's end on."""
        self.epochs.begin(epoch, self.end)

    def check(self, data: bytes, now: int) -> Steps[Batch | None]:
        """Check what a producer sent, and return what `append` takes; None if there is no whole
        batch. Raises LogError.
        """
        batch = yield from validated(data, self.settings, LogPlace(self.name, now))
        if batch is not None and batch.size > self.settings.segment_bytes:
            raise LogError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"Message batch size is {batch.size} bytes in append to partition {self.name}, "
                f"which exceeds the maximum configured segment size of {self.settings.segment_bytes}.",
            )
        return batch

    def append(self, checked: Batch | None, *, leader_epoch: int, now: int) -> Appended:
        """Append what was checked before, and return its place; or that of the earlier batch that
        the producer has sent again. Raises LogError; then nothing is appended.
        """
        if checked is None:
            return NOTHING_APPENDED
        batch = checked.placed(self.end, leader_epoch)
        if batch.has_producer:
            if sent := self.producers.duplicate_of(batch):
                return Appended(sent.first_offset, sent.last_offset, sent.timestamp)
            self.producers.check(batch)
        self._check_room(batch)
        self._add(batch, now)
        if batch.has_producer:
            self.producers.wrote(batch)
        self._count()
        stamps = self.settings.timestamp_type is TimestampType.LOG_APPEND_TIME
        return Appended(batch.base_offset, batch.last_offset, now if stamps else NO_TIMESTAMP)

    def append_marker(self, marker: EndMarker, *, leader_epoch: int, now: int) -> Appended:
        """End a producer's transaction in this log. Raises LogError if the marker is of an older
        epoch than the producer, or of an older coordinator than an earlier marker. The memory's
        limit does not stop it: a transaction that cannot end would stop its readers.
        """
        self.producers.check_marker(marker, self.end)
        batch = marker_batch(marker, offset=self.end, leader_epoch=leader_epoch, now=now)
        self._add(batch, now)
        first = self.producers.ended(marker, now)
        if first != NO_OFFSET:
            open_first = self.producers.first_open_offset
            stable = self.end if open_first is None else open_first
            ended = AbortedTransaction(marker.producer_id, first, batch.base_offset, stable)
            if not marker.commits:
                self._aborted.append(ended)
            if self.high_watermark <= batch.base_offset:
                self._unreplicated.append(ended)
        self._count()
        return Appended(batch.base_offset, batch.last_offset)

    def _check_room(self, batch: Batch) -> None:
        if not self._memory.has_room(batch.size + BATCH_BYTES):
            raise LogError(
                ErrorCode.POLICY_VIOLATION,
                f"The records of this process take {self._memory.used} bytes, and {batch.size} more are above "
                f"records.memory.max.bytes ({self._memory.limit}). Delete records or topics, or raise it.",
            )

    def _add(self, batch: Batch, now: int) -> None:
        self.epochs.begin(batch.leader_epoch, batch.base_offset)
        segment = self._segment_for(batch, now)
        before = segment.memory
        segment.append(batch, now)
        self._held += segment.memory - before
        self.size += batch.size
        self.end = batch.next_offset

    def _segment_for(self, batch: Batch, now: int) -> Segment:
        settings = self.settings
        if not self._segments or self._segments[-1].is_full_for(
            batch, settings.segment_bytes, settings.segment_ms, now
        ):
            self._roll(now)
        return self._segments[-1]

    def _roll(self, now: int) -> None:
        if self._segments and not self._segments[-1].size:
            self._segments.pop()
        self._segments.append(Segment(self.end, now, self.settings.index_interval_bytes))

    def _count(self) -> None:
        """Tell the memory what this log takes."""
        notes = len(self._aborted) + len(self._unreplicated) + len(self.epochs)
        now = self._held + PRODUCER_BYTES * len(self.producers) + NOTE_BYTES * notes
        self._memory.used += now - self._counted
        self._counted = now

    def close(self) -> None:
        """Give the memory back, when the topic is deleted."""
        self._segments, self._aborted, self._unreplicated = [], [], []
        self._memory.used -= self._counted
        self._counted = self._held = 0

    # ------------------------------------------------------------------ reading

    def read(
        self, offset: int, max_bytes: int, *, isolation: Isolation, at_least_one: bool, cut: bool = False
    ) -> ReadBatches:
        """Return bytes of one segment from the batch with an offset on: as Kafka does, `max_bytes`
        to the byte, within which the last batch may be incomplete. `at_least_one` gives the first
        batch whole though it is larger; without it, an incomplete first batch is given only with
        `cut`, which the first versions of Fetch want. Raises OFFSET_OUT_OF_RANGE.
        """
        index = self._segment_index(offset)
        bound = self._bound(isolation)
        if offset >= bound:
            return ReadBatches()
        for at in range(index, len(self._segments)):
            segment = self._segments[at]
            start, first_end, end = segment.bounds(offset, bound)
            if start == end:
                continue
            room = max(max_bytes, first_end - start) if at_least_one else max_bytes
            end = min(end, start + room)
            if end < first_end and not cut:
                return ReadBatches()
            aborted: Sequence[AbortedTransaction] = ()
            if isolation is Isolation.READ_COMMITTED and self._aborted:
                aborted = self._aborted_between(offset, self._offset_behind(at, start + room))
            return ReadBatches(segment.bytes_between(start, end), aborted)
        return ReadBatches()

    def readable(self, offset: int, isolation: Isolation, enough: int) -> int:
        """Return how many bytes there are for a reader from an offset on, which `min.bytes` counts;
        some number from `enough` on if there are so many. Raises OFFSET_OUT_OF_RANGE.
        """
        index = self._segment_index(offset)
        bound = self._bound(isolation)
        total = 0
        for at in range(index, len(self._segments)):
            segment = self._segments[at]
            if segment.base_offset >= bound or total >= enough:
                break
            start, _, end = segment.bounds(offset, bound)
            total += end - start
        return total

    def _segment_index(self, offset: int) -> int:
        if not self.start <= offset <= self.end:
            raise LogError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.name}, but we only have log segments "
                f"in the range {self.start} to {self.end}.",
            )
        return max(0, bisect_right(self._segments, offset, key=_BASE) - 1)

    def _offset_behind(self, index: int, position: int) -> int:
        """Return an offset behind a position of a segment, as roughly as Kafka knows it."""
        found = self._segments[index].offset_behind(position)
        if found is not None:
            return found
        return self._segments[index + 1].base_offset if index + 1 < len(self._segments) else self.end

    def _aborted_between(self, offset: int, bound: int) -> list[AbortedTransaction]:
        found = []
        for each in self._aborted[bisect_left(self._aborted, offset, key=_LAST) :]:
            if each.first_offset < bound:
                found.append(each)
            if each.last_stable_offset >= bound:
                break
        return found

    def epoch_end(self, epoch: int) -> EpochStart:
        """Return where the records of a leader epoch end; -1 and -1 for an unknown epoch."""
        return self.epochs.end_of(epoch, self.end)

    # ------------------------------------------------------------------ offsets

    def offset_for(self, timestamp: int, isolation: Isolation) -> Steps[FoundRecord | None]:
        """Return the first record of a time or later, or what a special timestamp stands for. The
        epoch of LATEST is that of the leader who answers.
        """
        match timestamp:
            case _ if timestamp == LATEST:
                return FoundRecord(self._bound(isolation), epoch=self.epochs.latest)
            case _ if timestamp in (EARLIEST, EARLIEST_LOCAL):
                first = self.epochs.first
                return FoundRecord(self.start, epoch=first.epoch if first and first.offset <= self.start else -1)
            case _ if timestamp == LATEST_TIERED:
                return FoundRecord(-1)
        if timestamp == MAX_TIMESTAMP:
            found = yield from self._first_of_latest()
        else:
            kept = self._segments[self._segment_index(self.start) :]
            segment = next((each for each in kept if each.largest_timestamp >= timestamp), None)
            found = None if segment is None else (yield from _first_since(segment, timestamp, self.start))
        return found if found is not None and found.offset < self._bound(isolation) else None

    def _first_of_latest(self) -> Steps[FoundRecord | None]:
        """Return the first record with the latest time, even if it is deleted, as Kafka does."""
        segment = max(self._segments, key=attrgetter("max_timestamp"), default=None)
        return None if segment is None else (yield from _first_since(segment, segment.max_timestamp, 0))

    def offsets_before(self, timestamp: int, count: int, now: int) -> list[int]:
        """Return the starts of segments that were written at a time or before, the latest first, as
        version 0 of ListOffsets wants them.
        """
        rows = [(max(each.base_offset, self.start), each.modified) for each in self._segments]
        if not rows or self._segments[-1].size:
            rows.append((self.end, now))
        if timestamp == EARLIEST:
            rows = rows[:1]
        elif timestamp != LATEST:
            while rows and rows[-1][1] > timestamp:
                rows.pop()
        offsets = sorted((offset for offset, _ in rows[::-1][:count]), reverse=True)
        shown = [offset for offset in offsets if offset <= self.high_watermark]
        return shown if len(shown) == len(offsets) else [self.high_watermark, *shown]

    # ------------------------------------------------------------------ deletion

    def delete_before(self, offset: int) -> int:
        """Delete the records before an offset, or before the high watermark with -1, and return the
        log's start. Raises OFFSET_OUT_OF_RANGE, and POLICY_VIOLATION for a topic that is not to be
        deleted from.
        """
        if not self.settings.deletes:
            raise LogError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of partition {self.name} can not be deleted due to the configured policy",
            )
        wanted = self.high_watermark if offset == -1 else offset
        if wanted < 0:
            text = f"The offset {wanted} for partition {self.name} is not valid"
            raise LogError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        if wanted > self.high_watermark:
            raise LogError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {wanted} of partition {self.name} "
                f"since it is larger than the high watermark {self.high_watermark}",
            )
        self._begin_at(wanted)
        return self.start

    def apply_retention(self, now: int) -> None:
        """Delete the segments that are before the log's start, too many or too old, and forget what
        was kept for them.
        """
        settings = self.settings
        self._delete_segments(sum(each.base_offset <= self.start for each in self._segments[1:]), now)
        if not settings.deletes:
            return
        self._delete_segments(self._beyond_size(settings.retention_bytes), now)
        self._delete_segments(self._beyond_age(settings.retention_ms, now), now)

    def _beyond_size(self, most: int) -> int:
        if most < 0:
            return 0
        above, gone = self.size - most, 0
        while gone < self._deletable and above >= self._segments[gone].size:
            above -= self._segments[gone].size
            gone += 1
        return gone

    def _beyond_age(self, longest: int, now: int) -> int:
        gone = 0
        while longest >= 0 and gone < self._deletable and now - self._segments[gone].largest_timestamp > longest:
            gone += 1
        return gone

    @property
    def _deletable(self) -> int:
        """Return how many segments are below the high watermark, of those that are not empty."""
        begun = bisect_right(self._segments, self.high_watermark, key=_BASE)
        is_all = begun == len(self._segments) and self.high_watermark == self.end
        return begun if begun and is_all and self._segments[-1].size else max(0, begun - 1)

    def _delete_segments(self, count: int, now: int) -> None:
        if not count:
            return
        if count == len(self._segments):
            self._roll(now)
        gone = self._segments[:count]
        del self._segments[:count]
        self.size -= sum(each.size for each in gone)
        self._held -= sum(each.memory for each in gone)
        self._begin_at(self._segments[0].base_offset)

    def _begin_at(self, offset: int) -> None:
        """Move the log's start, and give back the memory of what is before it. Kafka does so when
        whole segments are before it; `size` follows that.
        """
        if offset <= self.start:
            return
        first = self._segment_index(self.start)
        self.start = offset
        for segment in self._segments[first : self._segment_index(offset) + 1]:
            before = segment.memory
            segment.release(offset)
            self._held += segment.memory - before
        del self._aborted[: bisect_left(self._aborted, offset, key=_LAST)]
        self.epochs.begin_at(offset)
        self._count()

    # ------------------------------------------------------------------ compaction

    def compact(self, now: int) -> Steps[None]:
        """Keep the last record of each key only, if enough has changed since this was last done. If
        records are deleted in the meantime, nothing comes of it.
        """
        if not self.settings.compacts:
            return
        before, start = list(self._segments), self.start
        work = cleaned(
            before,
            self.settings,
            self._cleaning,
            stable=self.last_stable_offset,
            aborted=self._aborted_by_producer(),
            last_offsets={each.sent[-1].last_offset for each in self.producers if each.sent},
            now=now,
        )
        while True:
            try:
                next(work)
            except StopIteration as end:
                self._segments = [*end.value, *self._segments[len(before) :]]
                break
            yield
            if self.start != start or self._segments[: len(before)] != before:
                return
        self.size = sum(each.size for each in self._segments)
        self._held = sum(each.memory for each in self._segments)
        self._count()

    def _aborted_by_producer(self) -> dict[int, list[Ended]]:
        found: dict[int, list[Ended]] = {}
        for each in self._aborted:
            found.setdefault(each.producer_id, []).append(Ended(each.first_offset, each.last_offset))
        return found


def _first_since(segment: Segment, timestamp: int, start: int) -> Steps[FoundRecord | None]:
    """Return the first record of a segment at a time or later, from an offset on."""
    for batch in segment.since(timestamp, start):
        for some in records_in_steps(batch):
            for record in some:
                offset = batch.base_offset + record.offset_delta
                stamped = batch.stamps_append_time
                when = batch.max_timestamp if stamped else batch.base_timestamp + record.timestamp_delta
                if when >= timestamp and offset >= start:
                    return FoundRecord(offset, when, batch.leader_epoch)
            yield
    return None

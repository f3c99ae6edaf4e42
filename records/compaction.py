"""Compaction of a log: the last record of each key stays (Kafka: LogCleaner, Cleaner).

Offsets stay what they are, so a batch keeps the offsets of the records it lost. The active segment
is never compacted, nor what a transaction can still change.
"""

import itertools
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter

import msgspec

from ..process.steps import Steps, finished
from .batches import Batch
from .records import Record, records, records_in_steps, with_delete_horizon
from .segments import Segment
from .settings import LogSettings

_BASE = attrgetter("base_offset")


class Ended(msgspec.Struct, frozen=True, gc=False):
    """The offsets of an aborted transaction: of its first record and of its marker."""

    first: int
    last: int


class Cleaning(msgspec.Struct):
    """How far a log is compacted."""

    first_dirty: int = 0
    """The first offset that was not compacted yet."""


class _Pass(msgspec.Struct):
    """One compaction of a log."""

    latest: Mapping[bytes, int]
    """The last offset of each key in what changed."""
    aborted: Mapping[int, Sequence[Ended]]
    last_offsets: Collection[int]
    """Those of the last batch of each producer, which stay for their sequence numbers."""
    now: int
    delete_retention: int
    seen: set[int] = msgspec.field(default_factory=set)
    """The producers whose transaction has batches in the log before its marker."""

    def kept(self, batch: Batch) -> Steps[Batch | None]:
        if batch.is_control:
            return self._kept_marker(batch)
        if batch.is_transactional:
            self.seen.add(batch.producer_id)
        retained: list[Record] = []
        if not is_aborted(batch, self.aborted):
            for some in records_in_steps(batch):
                retained += [each for each in some if self._keeps(batch, each)]
                yield
        if not retained and batch.last_offset not in self.last_offsets:
            return None
        horizon = None
        if batch.delete_horizon is None and any(each.value is None for each in retained):
            horizon = self.now + self.delete_retention
        if horizon is None and len(retained) == batch.count:
            return batch
        return (yield from with_delete_horizon(batch, retained, horizon))

    def _keeps(self, batch: Batch, record: Record) -> bool:
        if record.key is None or batch.base_offset + record.offset_delta < self.latest.get(record.key, -1):
            return False
        return record.value is not None or batch.delete_horizon is None or self.now < batch.delete_horizon

    def _kept_marker(self, batch: Batch) -> Batch | None:
        """A marker goes a while after the last batch of its transaction."""
        if batch.producer_id in self.seen:
            self.seen.discard(batch.producer_id)
            return batch
        if batch.delete_horizon is None:
            return finished(with_delete_horizon(batch, records(batch), self.now + self.delete_retention))
        return batch if self.now < batch.delete_horizon or batch.last_offset in self.last_offsets else None


def is_aborted(batch: Batch, aborted: Mapping[int, Sequence[Ended]]) -> bool:
    if not batch.is_transactional:
        return False
    return any(each.first <= batch.base_offset < each.last for each in aborted.get(batch.producer_id, ()))


def cleaned(
    segments: Sequence[Segment],
    settings: LogSettings,
    cleaning: Cleaning,
    *,
    stable: int,
    aborted: Mapping[int, Sequence[Ended]],
    last_offsets: Collection[int],
    now: int,
) -> Steps[list[Segment]]:
    """Return the segments of a log with what compaction leaves of them, if enough has changed.
    `stable` is the log's last stable offset.
    """
    count = _cleanable(segments, settings, stable, now)
    clean = min(count, bisect_right(segments, cleaning.first_dirty - 1, key=_BASE))
    if not _is_due(segments[:clean], segments[clean:count], settings, now):
        return list(segments)
    latest = yield from _latest_offsets(segments[clean:count], aborted)
    run = _Pass(latest, aborted, last_offsets, now, settings.delete_retention_ms)
    rewritten = yield from _rewritten(segments[:count], run, settings)
    cleaning.first_dirty = segments[count].base_offset
    return [*rewritten, *segments[count:]]


def _cleanable(segments: Sequence[Segment], settings: LogSettings, stable: int, now: int) -> int:
    count = 0
    for segment, following in itertools.pairwise(segments):
        is_young = settings.min_compaction_lag_ms > 0 and (
            segment.largest_timestamp > now - settings.min_compaction_lag_ms
        )
        if following.base_offset > stable or is_young:
            break
        count += 1
    return count


def _is_due(clean: Sequence[Segment], dirty: Sequence[Segment], settings: LogSettings, now: int) -> bool:
    if not dirty:
        return False
    size = sum(each.size for each in dirty)
    ratio = size / max(1, size + sum(each.size for each in clean))
    waited = now - min(each.first_timestamp for each in dirty)
    return ratio > settings.min_cleanable_dirty_ratio or waited > settings.max_compaction_lag_ms


def _latest_offsets(dirty: Sequence[Segment], aborted: Mapping[int, Sequence[Ended]]) -> Steps[dict[bytes, int]]:
    latest: dict[bytes, int] = {}
    for batch in itertools.chain.from_iterable(map(_batches, dirty)):
        if not batch.is_control and not is_aborted(batch, aborted):
            for some in records_in_steps(batch):
                latest.update(
                    (each.key, batch.base_offset + each.offset_delta) for each in some if each.key is not None
                )
                yield
    return latest


def _rewritten(segments: Sequence[Segment], run: _Pass, settings: LogSettings) -> Steps[list[Segment]]:
    """Return segments that are filled up to the size of a segment."""
    made: list[Segment] = []
    for segment in segments:
        if not made or made[-1].size + segment.size > settings.segment_bytes:
            made.append(Segment(segment.base_offset, segment.modified, settings.index_interval_bytes))
        for batch in _batches(segment):
            kept = yield from run.kept(batch)
            if kept is not None:
                made[-1].append(kept, segment.modified)
    return made


def _batches(segment: Segment) -> Iterator[Batch]:
    return (segment.batch(index) for index in range(len(segment)))

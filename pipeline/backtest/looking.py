"""What of a history there is, bucket by bucket, as a few columns of the table `events` tell it.

Rule: file by file, so memory is that of one file's few columns; then what files have of the same
bucket is put together.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..ingest.barriers import Numbers
from ..ingest.limits import LONG_MAX
from ..schemas import Table
from .encoded import Flags, flags, within
from .reading import NOTHING, columns_of, numbers_of
from .replaying import Window
from .slices import Bucket, Span, joined

COLUMNS = (
    *("epoch", "sequence", "time", "kind", "effect", "cluster_size"),
    *("request", "element", "elements", "validate_only"),
)
BEGINS = pa.array(["removal", "observed", "snapshot_begin"])


class EventFiles(msgspec.Struct, frozen=True):
    """Files that hold a part of one cluster's events."""

    cluster_id: str
    paths: tuple[str, ...]


def buckets_of(files: EventFiles, window: Window, bucket_events: int) -> list[Bucket]:
    """Return what these files hold of each bucket. Raises UnreadableTableError."""
    found: list[Bucket] = []
    for path in files.paths:
        table = columns_of([path], Table.EVENTS.in_files, COLUMNS)
        if table.num_rows:
            found += _Columns(table).buckets(files.cluster_id, path, window, bucket_events)
    return together(found)


def together(found: Iterable[Bucket]) -> list[Bucket]:
    """Join the buckets of several files, in the order of the log and each once."""
    return [_one(list(same)) for _, same in groupby(sorted(found, key=_key), _key)]


def _key(bucket: Bucket) -> tuple[str, int, int]:
    return bucket.cluster_id, bucket.epoch, bucket.number


def _one(same: Sequence[Bucket]) -> Bucket:
    last, wanted = max(same, key=lambda bucket: bucket.last), [each.wanted for each in same if each.wanted is not None]
    return Bucket(
        *_key(last),
        events=sum(each.events for each in same),
        first=min(each.first for each in same),
        last=last.last,
        start=min((each.start for each in same if each.start is not None), default=None),
        snapshot_begin=min((each.snapshot_begin for each in same if each.snapshot_begin is not None), default=None),
        snapshot_end=max((each.snapshot_end for each in same if each.snapshot_end is not None), default=None),
        doubt=max((each.doubt for each in same if each.doubt is not None), default=None),
        wanted=(min(wanted)[0], max(last for _, last in wanted)) if wanted else None,
        cluster_size=max((each.cluster_size for each in same if each.cluster_size is not None), default=None),
        newest_ms=last.newest_ms,
        files=tuple(sorted({file for each in same for file in each.files})),
        spans=tuple(joined(span for each in same for span in each.spans)),
    )


class _Columns:
    """The columns of one file, in the order of the log. `n` is the number of its events, `b` that
    of its buckets.
    """

    def __init__(self, table: pa.Table) -> None:
        epoch, sequence = (table.column(name).to_numpy() for name in COLUMNS[:2])
        self._table = table.take(pa.array(np.lexsort((sequence, epoch)))).combine_chunks()
        self._sequence = numbers_of(self._table, "sequence")

    def buckets(self, cluster_id: str, file: str, window: Window, bucket_events: int) -> Iterator[Bucket]:
        kind, effect = self._table.column("kind"), self._table.column("effect")
        is_validated = flags(self._table.column("validate_only"))
        is_first = flags(pc.equal(self._table.column("element"), 0)) & ~is_validated
        starts = flags(pc.is_in(kind, BEGINS)) | is_first
        doubts = flags(pc.equal(kind, "dropped")) | flags(pc.equal(effect, "unknown"))
        times, sizes = numbers_of(self._table, "time") // 1000, numbers_of(self._table, "cluster_size")
        epoch, number = numbers_of(self._table, "epoch"), (self._sequence - 1) // bucket_events
        first = np.flatnonzero(np.r_[True, (np.diff(epoch) != 0) | (np.diff(number) != 0)])
        end = np.r_[first[1:], len(epoch)]
        start = self._first(starts, first)
        snapshot_begin = self._first(flags(pc.equal(kind, "snapshot_begin")), first)
        snapshot_end = self._last(flags(pc.equal(kind, "snapshot_end")), first)
        doubt = self._last(doubts, first)
        told = self._last(sizes != NOTHING, first)
        is_wanted = within(times, window)
        first_wanted, last_wanted = self._first(is_wanted, first), self._last(is_wanted, first)
        spans = self._spans(is_validated, end)
        for index, (begin, last) in enumerate(zip(first, end - 1, strict=True)):
            size_at = begin + np.searchsorted(self._sequence[begin : last + 1], told[index])
            yield Bucket(
                cluster_id=cluster_id,
                epoch=int(epoch[begin]),
                number=int(number[begin]),
                events=int(last + 1 - begin),
                first=int(self._sequence[begin]),
                last=int(self._sequence[last]),
                start=_or_none(start[index], LONG_MAX),
                snapshot_begin=_or_none(snapshot_begin[index], LONG_MAX),
                snapshot_end=_or_none(snapshot_end[index], NOTHING),
                doubt=_or_none(doubt[index], NOTHING),
                wanted=(int(first_wanted[index]), int(last_wanted[index])) if last_wanted[index] != NOTHING else None,
                cluster_size=None if told[index] == NOTHING else (int(told[index]), int(sizes[size_at])),
                newest_ms=int(times[last]),
                files=(file,),
                spans=tuple(spans.get(index, ())),
            )

    def _spans(self, is_validated: Flags, end: Numbers) -> dict[int, list[Span]]:
        """Return the requests of several elements that were only validated, by the bucket's index.
        Among them are the first and the last ones of each bucket, because a request may have single
        elements in two buckets.
        """
        rows = np.flatnonzero(is_validated)
        if not len(rows):
            return {}
        bucket = np.searchsorted(end, rows, side="right")
        request = numbers_of(self._table, "request")[rows]
        _, same, counts = np.unique(np.stack([bucket, request]), axis=1, return_inverse=True, return_counts=True)
        is_at_edge = np.r_[True, np.diff(bucket) != 0] | np.r_[np.diff(bucket) != 0, True]
        is_kept = is_at_edge | (numbers_of(self._table, "elements")[rows] > 1) | (counts[same.ravel()] > 1)
        found: dict[int, list[Span]] = {}
        for index, number, row in zip(bucket[is_kept], request[is_kept], rows[is_kept], strict=True):
            sequence = int(self._sequence[row])
            found.setdefault(int(index), []).append((int(number), sequence, sequence))
        return {index: joined(spans) for index, spans in found.items()}

    def _first(self, flags: Flags, first: Numbers) -> Numbers:
        """Return the sequence of the first event in each bucket that has the flag. [b]"""
        return np.minimum.reduceat(np.where(flags, self._sequence, LONG_MAX), first)

    def _last(self, flags: Flags, first: Numbers) -> Numbers:
        """Return the sequence of the last event in each bucket that has the flag. [b]"""
        return np.maximum.reduceat(np.where(flags, self._sequence, NOTHING), first)


def _or_none(number: np.int64, nothing: int) -> int | None:
    return None if number == nothing else int(number)

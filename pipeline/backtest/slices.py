"""Where a history may be cut, so that its parts can be replayed side by side and give what the
whole gives.

Rule: a slice begins where all topics are known from the events before it, and at no place within a
request or a snapshot: at the first element of a request, at a removal, at what was observed, at a
snapshot's begin. A request may be decided in parts, with others in between, so it is also no place
between two elements of a request that was only validated. After a loss, a change of unknown effect
or a late begin there is no cut until a snapshot has begun and is complete. Nothing is replayed
before the last cut that has all of the window behind it, and nothing after the window. Where a
slice's events lie is noted, piece by piece, so that whoever replays it reads them there: what is
most of the table travels nowhere.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import msgspec

from .existing import Now
from .replaying import NOWHERE, Place

BUCKET_EVENTS = 5_000
"""A cut is looked for once in so many events of an epoch."""
MOST_EVENTS = 100_000
"""Of a slice, unless there is nowhere to cut: few enough that in the end no processor waits long
for another.
"""
PER_CORE = 4
"""Slices for each processor, where there are enough events."""
PIECE_EVENTS = 20_000
"""Of a slice, held in memory at once by who replays it."""


Span = tuple[int, int, int]
"""The number of a request, and the first and the last place that is known of it."""


class Bucket(msgspec.Struct, frozen=True):
    """Consecutive events of one epoch."""

    cluster_id: str
    epoch: int
    number: int
    events: int
    first: int
    last: int
    start: int | None
    """The first place at which a slice may begin."""
    snapshot_begin: int | None
    """The first one."""
    snapshot_end: int | None
    """The last one."""
    doubt: int | None
    """The last place from which on not all topics are known: events were dropped, or an effect is
    unknown.
    """
    wanted: tuple[int, int] | None
    """The first and the last event within the window."""
    cluster_size: tuple[int, int] | None = None
    """The last of them that tells it, and what it tells."""
    newest_ms: int = 0
    """The time of the last one."""
    files: tuple[str, ...] = ()
    """Of the table, where they lie."""
    spans: tuple[Span, ...] = ()
    """Of its requests that were only validated: a later element sees what the earlier ones would
    have made.
    """


class Piece(msgspec.Struct, frozen=True):
    """Consecutive events, few enough to be sorted in memory."""

    first: Place
    last: Place
    files: tuple[str, ...]
    """Of the table: they may hold others as well."""
    events: int = 0
    """At most so many."""


class Slice(msgspec.Struct, frozen=True):
    """A part of a cluster's history that has events of the window."""

    cluster_id: str
    after: Place
    """The event before its first one; NOWHERE where the history begins, and no topics are known."""
    pieces: tuple[Piece, ...] = ()
    """All of it, in its order."""


class Plan(msgspec.Struct, frozen=True):
    slices: tuple[Slice, ...]
    """All that has to be replayed; of each cluster one after the other."""

    @property
    def events(self) -> int:
        return sum(piece.events for each in self.slices for piece in each.pieces)


def planned(
    found: Sequence[Bucket],
    *,
    slice_events: int | None,
    whole: Collection[str] = (),
) -> Plan:
    """Cut history into slices of about so many events; without a number a cluster is replayed in
    one slice to the end of the window, and one of `whole` also from its beginning.
    """
    slices: list[Slice] = []
    for cluster_id, group in groupby(found, lambda bucket: bucket.cluster_id):
        buckets = list(group)
        starts: list[int | None] = [None] * len(buckets) if cluster_id in whole else list(_starts(buckets))
        slices += (Slice(cluster_id, after, pieces) for after, pieces in _parts(buckets, starts, slice_events))
    return Plan(tuple(slices))


def good_size(found: Iterable[Bucket], cores: int) -> int:
    """Return how many events a slice should have."""
    events = sum(bucket.events for bucket in found)
    return max(BUCKET_EVENTS, min(MOST_EVENTS, -(-events // (cores * PER_CORE))))


def ends(found: Iterable[Bucket]) -> tuple[Now, ...]:
    """Return the state of each cluster at the end of its log."""
    newest: dict[str, Now] = {}
    for bucket in found:
        known = newest[bucket.cluster_id].cluster_size if bucket.cluster_id in newest else 1
        size = known if bucket.cluster_size is None else bucket.cluster_size[1]
        newest[bucket.cluster_id] = Now(bucket.cluster_id, size, bucket.newest_ms)
    return tuple(newest.values())


def _parts(
    buckets: Sequence[Bucket], starts: Sequence[int | None], most: int | None
) -> Iterator[tuple[Place, tuple[Piece, ...]]]:
    """Cut one cluster's buckets where enough has come together, and yield each part that has events
    of the window, up to the last of them, with the event before it.
    """
    after, part, is_wanted = NOWHERE, list[_Section](), False
    for section in _sections(buckets, starts):
        is_full = most is not None and sum(each.piece.events for each in part) >= most
        if section.may_begin and (is_full or not is_wanted):
            if is_wanted:
                yield after, _joined(part)
            epoch, first = section.piece.first
            after, part, is_wanted = (epoch, first - 1), [], False
        part.append(section)
        is_wanted = is_wanted or section.wanted is not None
    if is_wanted:
        yield after, _joined(part)


class _Section(NamedTuple):
    """A bucket, or the part of one before or after a cut."""

    piece: Piece
    may_begin: bool
    """Whether a slice may begin with it."""
    wanted: int | None
    """Its last event within the window."""


def _sections(buckets: Sequence[Bucket], starts: Sequence[int | None]) -> Iterator[_Section]:
    for bucket, start in zip(buckets, starts, strict=True):
        begin = bucket.first if start is None else start
        first, last = bucket.wanted or (bucket.last + 1, bucket.first - 1)
        if begin > bucket.first:
            head = Piece((bucket.epoch, bucket.first), (bucket.epoch, begin - 1), bucket.files, begin - bucket.first)
            yield _Section(head, False, min(last, begin - 1) if first < begin else None)
        events = bucket.events - (begin - bucket.first)
        tail = Piece((bucket.epoch, begin), (bucket.epoch, bucket.last), bucket.files, events)
        yield _Section(tail, start is not None, last if last >= begin else None)


def _joined(part: Sequence[_Section]) -> tuple[Piece, ...]:
    """Join the sections of a part, up to the last event within the window."""
    pieces: list[Piece] = []
    *_, (count, end) = ((number, each.wanted) for number, each in enumerate(part, 1) if each.wanted is not None)
    for piece, _, _ in part[:count]:
        if pieces and pieces[-1].events + piece.events <= PIECE_EVENTS:
            before = pieces[-1]
            files = tuple(dict.fromkeys((*before.files, *piece.files)))
            pieces[-1] = Piece(before.first, piece.last, files, before.events + piece.events)
        else:
            pieces.append(piece)
    last = pieces.pop()
    return (*pieces, msgspec.structs.replace(last, last=(last.last[0], end)))


def _starts(buckets: Sequence[Bucket]) -> Iterator[int | None]:
    """Yield for each of one cluster's buckets where a slice may begin in it."""
    is_known, has_begun, last = False, False, NOWHERE
    is_within = _requests(buckets)
    for bucket in buckets:
        is_whole = _follows(bucket, last) and bucket.last - bucket.first + 1 == bucket.events
        start = bucket.start if is_known and is_whole else None
        is_doubtful = start is not None and bucket.doubt is not None and bucket.doubt < start
        yield None if start is None or is_doubtful or is_within(bucket.epoch, start) else start
        is_known = is_whole and _is_known_after(bucket, is_known, has_begun=has_begun)
        has_begun = is_whole and (has_begun or bucket.snapshot_begin is not None)
        last = bucket.epoch, bucket.last


def joined(spans: Iterable[Span]) -> list[Span]:
    """Join what is known of the same requests."""
    found: dict[int, Span] = {}
    for number, first, last in spans:
        _, least, most = found.get(number, (number, first, last))
        found[number] = number, min(least, first), max(most, last)
    return sorted(found.values())


def _requests(group: Sequence[Bucket]) -> Callable[[int, int], bool]:
    """Return a function that tells whether a place is within a request that was only validated."""
    edges: dict[int, tuple[list[int], list[int]]] = {}
    for epoch, buckets in groupby(group, lambda bucket: bucket.epoch):
        spans = joined(span for bucket in buckets for span in bucket.spans)
        edges[epoch] = sorted(first for _, first, _ in spans), sorted(last for _, _, last in spans)

    def is_within(epoch: int, place: int) -> bool:
        begun, ended = edges[epoch]
        return bisect_left(begun, place) > bisect_left(ended, place)

    return is_within


def _follows(bucket: Bucket, last: Place) -> bool:
    return bucket.first == (last[1] + 1 if bucket.epoch == last[0] else 1)


def _is_known_after(bucket: Bucket, was_known: bool, *, has_begun: bool) -> bool:
    """Whether the topics are known after a bucket without gaps, if a snapshot `has_begun` before it
    and after the last gap. A bucket with gaps does not say what came last: the next snapshot has to
    begin in another.
    """
    begin, end, doubt = bucket.snapshot_begin, bucket.snapshot_end, bucket.doubt
    if end is not None and (has_begun or (begin is not None and begin < end)) and (doubt is None or end > doubt):
        return True
    return was_known and doubt is None

"""Cuts a history into slices that workers replay in parallel, with the same result as the whole.

A slice begins where all topics are known from earlier events, and not within a request or a
snapshot. After missing events, a change of unknown effect or a late begin, the next slice begins
after a complete snapshot. The first slice begins at the last cut before the window, and the last
one ends with the window. Each slice lists the files of its events, piece by piece, and its worker
reads them from there.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby, pairwise

import msgspec

from ..ingest.sequence_ranges import Position
from .existing import LogEnd
from .replaying import NOWHERE

BUCKET_EVENTS = 5_000
"""How many events of an epoch a bucket covers; each bucket is cut once at most."""
MOST_EVENTS = 100_000
"""How many events a slice should have at most: few enough that in the end no processor waits long
for another.
"""
PER_CORE = 4
"""How many slices there are for each processor, where there are enough events."""
PIECE_EVENTS = 20_000
"""How many events of a slice a worker takes into memory at once."""


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """Consecutive events of one epoch, and the sequences of some of them: 0 where there is none."""

    cluster_id: str
    epoch: int
    events: int
    first: int
    last: int
    start: int = 0
    """The first sequence at which a slice may begin."""
    snapshot_begin: int = 0
    """The sequence of the first `snapshot_begin`."""
    snapshot_end: int = 0
    """The sequence of the last `snapshot_end`."""
    doubt: int = 0
    """The last sequence after which not all topics are known, because events were dropped or an
    effect is unknown.
    """
    first_wanted: int = 0
    """The sequence of the first event within the window."""
    last_wanted: int = 0
    cluster_size: int | None = None
    """The number of brokers in the last event with a cluster size."""
    newest_ms: int = 0
    """The time of the last event, in milliseconds since 1970."""
    files: tuple[str, ...] = ()
    """The files of the table `events` in which the events lie."""


class Piece(msgspec.Struct, frozen=True):
    """Consecutive events, few enough to be sorted in memory."""

    first: Position
    last: Position
    files: tuple[str, ...]
    """The files of the table `events` in which the events lie, beside others."""
    events: int = 0
    """How many events the piece has at most."""


class Slice(msgspec.Struct, frozen=True):
    """A part of a cluster's history that has events of the window."""

    cluster_id: str
    after: Position
    """The position of the event before the slice; NOWHERE at the begin of the history, where no
    topics are known.
    """
    pieces: tuple[Piece, ...] = ()
    """All pieces of the slice, in the order of the log."""

    @property
    def events(self) -> int:
        return sum(piece.events for piece in self.pieces)


def planned(found: Sequence[Bucket], *, slice_events: int | None, whole: Collection[str] = ()) -> list[Slice]:
    """Cut history into slices of about so many events, cluster by cluster; without a number a
    cluster is replayed in one slice to the end of the window, and one of `whole` also from its
    beginning.
    """
    slices: list[Slice] = []
    for cluster_id, group in groupby(found, lambda bucket: bucket.cluster_id):
        slices += _slices(cluster_id, _sections(group, may_be_cut=cluster_id not in whole), slice_events)
    return slices


def good_size(found: Iterable[Bucket], cores: int) -> int:
    """Return how many events a slice should have."""
    events = sum(bucket.events for bucket in found)
    return max(BUCKET_EVENTS, min(MOST_EVENTS, -(-events // (cores * PER_CORE))))


def ends(found: Sequence[Bucket]) -> tuple[LogEnd, ...]:
    sizes = {bucket.cluster_id: bucket.cluster_size for bucket in found if bucket.cluster_size is not None}
    newest = {bucket.cluster_id: bucket.newest_ms for bucket in found}
    return tuple(LogEnd(cluster_id, sizes.get(cluster_id, 1), newest_ms) for cluster_id, newest_ms in newest.items())


def _slices(cluster_id: str, sections: Iterable["Section"], most: int | None) -> Iterator[Slice]:
    """Cut one cluster's sections where enough has come together, and yield each slice that has
    events of the window, up to the last of them.
    """
    after, part, wanted, end = NOWHERE, list[Piece](), 0, NOWHERE
    for piece, may_begin, last_wanted in sections:
        if may_begin and (not wanted or (most is not None and sum(each.events for each in part) >= most)):
            if wanted:
                yield Slice(cluster_id, after, _joined(part[:wanted], end))
            epoch, first = piece.first
            after, part, wanted = (epoch, first - 1), [], 0
        part.append(piece)
        if last_wanted:
            wanted, end = len(part), (piece.first[0], last_wanted)
    if wanted:
        yield Slice(cluster_id, after, _joined(part[:wanted], end))


Section = tuple[Piece, bool, int]
"""A bucket, or the part of one before or after a cut; whether a slice may begin with it; and its
last event within the window, or 0.
"""


def _sections(buckets: Iterable[Bucket], *, may_be_cut: bool) -> Iterator[Section]:
    """Divide each of one cluster's buckets where a slice may begin in it."""
    is_known, has_begun, last = False, False, NOWHERE
    for bucket in buckets:
        follows = bucket.first == (last[1] + 1 if bucket.epoch == last[0] else 1)
        is_whole = follows and bucket.last - bucket.first + 1 == bucket.events
        start = bucket.start if may_be_cut and is_known and is_whole and not 0 < bucket.doubt < bucket.start else 0
        for first, end in pairwise(sorted({bucket.first, start or bucket.first, bucket.last + 1})):
            piece = Piece((bucket.epoch, first), (bucket.epoch, end - 1), bucket.files, min(bucket.events, end - first))
            is_wanted = bucket.first_wanted < end and bucket.last_wanted >= first
            yield piece, first == start, min(bucket.last_wanted, end - 1) if is_wanted else 0
        is_known = is_whole and _is_known_after(bucket, is_known, has_begun=has_begun)
        has_begun = is_whole and (has_begun or bucket.snapshot_begin > 0)
        last = bucket.epoch, bucket.last


def _is_known_after(bucket: Bucket, was_known: bool, *, has_begun: bool) -> bool:
    """Whether the topics are known after a bucket without gaps, if a snapshot `has_begun` before it
    and after the last gap. A bucket with gaps does not say what came last: the next snapshot has to
    begin in another.
    """
    end = bucket.snapshot_end
    if end > bucket.doubt and (has_begun or 0 < bucket.snapshot_begin < end):
        return True
    return was_known and not bucket.doubt


def _joined(pieces: Iterable[Piece], end: Position) -> tuple[Piece, ...]:
    """Join small pieces, up to an event of the last one."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and joined[-1].events + piece.events <= PIECE_EVENTS:
            before = joined.pop()
            files = tuple(dict.fromkeys((*before.files, *piece.files)))
            joined.append(Piece(before.first, piece.last, files, before.events + piece.events))
        else:
            joined.append(piece)
    return (*joined[:-1], msgspec.structs.replace(joined[-1], last=end))

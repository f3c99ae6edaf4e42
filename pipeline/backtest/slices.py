"""Where a history may be cut, so that its parts can be replayed side by side and give what the
whole gives.

Rule: a slice begins where all topics are known from the events before it, and at no place within a
request or a snapshot: at the first element of a request, at a removal, at what was observed, at a
snapshot's begin. A request may be decided in parts, with others in between, so it is also no place
between two elements of a request that was only validated. After a loss, a change of unknown effect
or a late begin there is no cut until the next snapshot is complete. Where a slice's events lie is
noted, piece by piece, so that whoever replays it reads them there: what is most of the table
travels nowhere.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby

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
NOT_NEEDED = -1


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
    snapshot_end: int | None
    """The last one."""
    doubt: int | None
    """The last place from which on not all topics are known: events were dropped, or an effect is
    unknown.
    """
    wanted: int
    """Events within the window."""
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


class Slice(msgspec.Struct, frozen=True):
    """A part of a cluster's history, from after an event until the next part begins."""

    number: int
    """From 0 in the order of clusters and events; NOT_NEEDED if nothing of it lies within the
    window.
    """
    cluster_id: str
    after: Place
    """The event before its first one; NOWHERE where the history begins, and no topics are known."""
    events: int
    pieces: tuple[Piece, ...] = ()
    """All of it, in its order."""


Part = list[tuple[Bucket, int | None]]
"""With the first of its buckets stands the place of the cut."""


class Plan(msgspec.Struct, frozen=True):
    parts: tuple[Slice, ...]
    """All of the history; of each cluster one after the other."""

    @property
    def slices(self) -> tuple[Slice, ...]:
        """The slices that have to be replayed, by number."""
        return tuple(part for part in self.parts if part.number != NOT_NEEDED)

    @property
    def events(self) -> int:
        return sum(each.events for each in self.slices)


def planned(
    found: Sequence[Bucket],
    *,
    slice_events: int | None,
    whole: Collection[str] = (),
) -> Plan:
    """Cut history into slices of about so many events, but not that of clusters in `whole`, and
    leave out what lies outside the window.
    """
    parts: list[Slice] = []
    needed = 0
    for cluster_id, group in groupby(found, lambda bucket: bucket.cluster_id):
        own_buckets = list(group)
        uncut: list[Part] = [[(bucket, None) for bucket in own_buckets]]
        cut = uncut if cluster_id in whole else list(_parts(own_buckets, slice_events))
        for index, part in enumerate(cut):
            (first, start), number = part[0], NOT_NEEDED
            if any(bucket.wanted for bucket, _ in part) or (index + 1 < len(cut) and _is_shared(*cut[index + 1][0])):
                number, needed = needed, needed + 1
            after = NOWHERE if start is None else (first.epoch, start - 1)
            following = cut[index + 1][0] if index + 1 < len(cut) else None
            parts.append(
                Slice(number, cluster_id, after, sum(bucket.events for bucket, _ in part), _pieces(part, following))
            )
    return Plan(tuple(parts))


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


def _parts(group: Sequence[Bucket], most: int | None) -> Iterator[Part]:
    """Cut one cluster's buckets where enough has come together, and where the window begins and
    ends.
    """
    part: Part = []
    events, is_wanted, is_known, last = 0, False, False, NOWHERE
    is_within = _requests(group)
    for bucket in group:
        is_whole = _follows(bucket, last) and bucket.last - bucket.first + 1 == bucket.events
        start = bucket.start if is_known and is_whole else None
        if bucket.doubt is not None and start is not None and bucket.doubt < start:
            start = None
        if start is not None and is_within(bucket.epoch, start):
            start = None
        is_full = most is not None and events >= most
        if part and start is not None and (is_full or is_wanted != (bucket.wanted > 0)):
            yield part
            part, events, is_wanted = [], 0, False
            part.append((bucket, start))
        else:
            part.append((bucket, None))
        events += bucket.events
        is_wanted = is_wanted or bucket.wanted > 0
        is_known = is_whole and _is_known_after(bucket, is_known)
        last = bucket.epoch, bucket.last
    if part:
        yield part


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


def _is_shared(bucket: Bucket, start: int | None) -> bool:
    """Whether wanted events of a bucket may lie before the cut in it."""
    return bucket.wanted > 0 and start != bucket.first


def _follows(bucket: Bucket, last: Place) -> bool:
    return bucket.first == (last[1] + 1 if bucket.epoch == last[0] else 1)


def _is_known_after(bucket: Bucket, was_known: bool) -> bool:
    """Whether the topics are known after a bucket. One with gaps does not say what came last: the
    next snapshot has to be in another.
    """
    if bucket.snapshot_end is not None and (bucket.doubt is None or bucket.snapshot_end > bucket.doubt):
        return True
    return was_known and bucket.doubt is None


def _pieces(part: Part, following: tuple[Bucket, int | None] | None) -> tuple[Piece, ...]:
    """Return the events of a part, with those of the next part's first bucket that lie before the
    cut.
    """
    found = [Piece((each.epoch, start or each.first), (each.epoch, each.last), each.files) for each, start in part]
    sizes = [bucket.events for bucket, _ in part]
    if following is not None and (start := following[1]) is not None and start > (bucket := following[0]).first:
        found.append(Piece((bucket.epoch, bucket.first), (bucket.epoch, start - 1), bucket.files))
        sizes.append(start - bucket.first)
    pieces: list[Piece] = []
    events = PIECE_EVENTS
    for piece, size in zip(found, sizes, strict=True):
        if events + size > PIECE_EVENTS:
            pieces.append(piece)
            events = size
        else:
            before = pieces[-1]
            pieces[-1] = Piece(before.first, piece.last, tuple(dict.fromkeys((*before.files, *piece.files))))
            events += size
    return tuple(pieces)

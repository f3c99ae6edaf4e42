"""Back-tests without Spark: in one go, or cut as `slices.planned` says and put together again."""

from collections.abc import Iterator, Mapping, Sequence

from minicontroller.audit.event import (
    AuditEvent,
    Decision,
    Dropped,
    Effect,
    Observed,
    RecordedState,
    Removal,
    SnapshotBegin,
    SnapshotEnd,
)
from minicontroller.audit.replay import Replay
from minicontroller.pipeline.backtest.candidate import Candidate, read_candidate
from minicontroller.pipeline.backtest.counterfactual import Counterfactual
from minicontroller.pipeline.backtest.recorded import RecordedTimeline
from minicontroller.pipeline.backtest.replaying import ALWAYS, NOWHERE, Backtest, Window
from minicontroller.pipeline.backtest.slices import Bucket, Piece, planned
from minicontroller.pipeline.backtest.tally import Tally
from minicontroller.pipeline.backtest.timelines import Timeline
from minicontroller.pipeline.backtest.verdicts import Difference
from minicontroller.pipeline.ingest.sequence_ranges import Position

Outcome = tuple[list[Difference], Tally]


def candidate(policy: str, *settings: str) -> Candidate:
    return read_candidate(policy, settings).candidate


def backtested(
    events: Sequence[AuditEvent],
    candidate: Candidate,
    timeline: Timeline | None = None,
    *,
    after: Position = NOWHERE,
    window: Window = ALWAYS,
) -> Outcome:
    """In one go."""
    with candidate.sandboxed() as sandbox:
        backtest = Backtest(sandbox, timeline, after=after, window=window)
        differences = [found for event in events if (found := backtest.feed(event)) is not None]
    tally = backtest.tally()
    if isinstance(timeline, Counterfactual) and events:
        timeline.report(tally, events[-1].cluster_id)
    return differences, tally


def otherwise(events: Sequence[AuditEvent], candidate: Candidate) -> tuple[list[Difference], Counterfactual]:
    """History as it would have been."""
    timeline = Counterfactual()
    return backtested(events, candidate, timeline)[0], timeline


def sliced(
    events: Sequence[AuditEvent],
    candidate: Candidate,
    slice_events: int | None,
    *,
    window: Window = ALWAYS,
    bucket_events: int = 3,
) -> tuple[Outcome, int]:
    """Cut into slices of about so many events, or one slice of history as it would have been; and
    how many slices those were.
    """
    plan = planned(list(buckets(events, bucket_events, window)), slice_events=slice_events)
    known: dict[Position, Mapping[str, RecordedState]] = {}
    replay = Replay()
    for event in events:
        known[event.epoch, event.sequence - 1] = replay.topics
        list(replay.apply(event))
    differences: list[Difference] = []
    tally = Tally()
    for each in plan:
        share = [event for piece in each.pieces for event in within(piece, events)]
        topics = None if each.after == NOWHERE else known[each.after]
        timeline = RecordedTimeline(topics) if slice_events is not None else Counterfactual(topics)
        found, counted = backtested(share, candidate, timeline, after=each.after, window=window)
        differences += found
        tally.add(counted)
    return (differences, tally), len(plan)


def within(piece: Piece, events: Sequence[AuditEvent]) -> Sequence[AuditEvent]:
    """What whoever replays the piece reads."""
    return [event for event in events if piece.first <= (event.epoch, event.sequence) <= piece.last]


def buckets(
    events: Sequence[AuditEvent], size: int, window: Window = ALWAYS, files: Mapping[Position, str] | None = None
) -> Iterator[Bucket]:
    """As `scanning` finds them in the tables' files, if each event lies in one of these."""
    shares: dict[tuple[int, int], list[AuditEvent]] = {}
    requests: dict[tuple[int, int], list[int]] = {}
    for event in events:
        shares.setdefault((event.epoch, (event.sequence - 1) // size), []).append(event)
        if isinstance(event, Decision) and event.validate_only:
            requests.setdefault((event.epoch, event.request), []).append(event.sequence)
    for (epoch, _), share in sorted(shares.items()):
        sequences = [event.sequence for event in share]
        start = min((event.sequence for event in share if may_begin(event)), default=0)
        validated = [places for (of, _), places in requests.items() if of == epoch]
        wanted = [event.sequence for event in share if window.has(event.time_ms)]
        sizes = [nodes for event in share if (nodes := getattr(event, "cluster_size", None)) is not None]
        yield Bucket(
            cluster_id=share[0].cluster_id,
            epoch=epoch,
            events=len(share),
            first=min(sequences),
            last=max(sequences),
            start=0 if any(min(places) < start <= max(places) for places in validated) else start,
            snapshot_begin=min((each.sequence for each in share if isinstance(each, SnapshotBegin)), default=0),
            snapshot_end=max((each.sequence for each in share if isinstance(each, SnapshotEnd)), default=0),
            doubt=max((each.sequence for each in share if is_doubt(each)), default=0),
            first_wanted=min(wanted, default=0),
            last_wanted=max(wanted, default=0),
            cluster_size=sizes[-1] if sizes else None,
            newest_ms=share[-1].time_ms,
            files=tuple(sorted({files[event.epoch, event.sequence] for event in share})) if files else (),
        )


def may_begin(event: AuditEvent) -> bool:
    return isinstance(event, Removal | Observed | SnapshotBegin) or (
        isinstance(event, Decision) and event.element == 0 and not event.validate_only
    )


def is_doubt(event: AuditEvent) -> bool:
    return isinstance(event, Dropped) or (isinstance(event, Decision) and event.effect is Effect.UNKNOWN)

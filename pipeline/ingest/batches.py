"""One batch: staged by the workers, held against what is there, and committed.

Rule: whatever is repeated comes to the same. Each event is in the tables once: of events with the
same place in the log the first one that was ingested stays.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain

from msgspec.structs import replace

from ..failures import PipelineError
from ..spreading import Deal
from .conflicts import compared, differing
from .files import UNKNOWN, Progress, Read, lasting_name
from .places import Run, add, within
from .quarantine import without
from .report import Reached, Report, Share, Stretch
from .staging import stage
from .state import ClusterState, EpochState, Ledger, State, copied

EVENT_BYTES = 1 << 10
"""How many bytes an event is thought to have in a file."""


class StagingError(PipelineError):
    """The files that a worker staged cannot be used; the message is a sentence that says why."""


def take(ledger: Ledger, deal: Deal, reads: Sequence[Read], each: int) -> list[Report]:
    """Take a batch into the tables, in shares of about so many bytes, and return what came of it.
    Raises StagingError, ChangedMeanwhileError, TablesError, OSError and what `deal` raises.
    """
    place = ledger.tables.location
    work = partial(stage, tables=place)

    def staged(wanted: Sequence[Share]) -> dict[int, Report]:
        events = sum(read.size for share in wanted for read in share.reads) // EVENT_BYTES
        return {report.number: report for report in deal(work, wanted, events=events)}

    found = staged(shares(reads, each))
    if again := overlapping(ledger.state, list(found.values())):
        found |= staged(again)
    reports = list(found.values())
    rewritten = without(place, ledger.quarantine.files, read_again(ledger.state.files, reports))
    state = copied(ledger.state)
    state.quarantined -= rewritten.rows
    for report in reports:
        note(state, report)
    events, repeated, quarantine = (
        list(chain.from_iterable(getattr(report, name) for report in reports))
        for name in ("events_files", "repeated_files", "quarantine_files")
    )
    pieces = compared(repeated, [*ledger.events.files, *events])
    for cluster, epoch, sequence in chain.from_iterable(deal(partial(differing, tables=place), pieces)):
        add(state.clusters[cluster].epochs[epoch].conflicts, Run(sequence, sequence, 0, 0))
    ledger.change(state, events, [*quarantine, *rewritten.adds], rewritten.removes)
    return reports


def shares(reads: Sequence[Read], each: int) -> list[Share]:
    """Divide reads among workers into shares of about so many bytes, as equal as can be: a worker
    that is done first waits for the others. Neighbours stay together, so that many small files
    become one file of a table.
    """
    found: dict[int, Share] = {}
    size = 0
    for read in reads:
        number = (size + read.size // 2) // each
        found.setdefault(number, Share(len(found), [])).reads.append(read)
        size += read.size
    return list(found.values())


def overlapping(state: State, reports: Sequence[Report]) -> list[Share]:
    """Return the shares that hold events known from before, or from a share before them: they are
    staged again without those.
    """
    known = defaultdict[tuple[str, int], list[Run]](list)
    for cluster_id, cluster in state.clusters.items():
        known |= {(cluster_id, number): list(epoch.runs) for number, epoch in cluster.epochs.items()}
    again = []
    for report in reports:
        own = defaultdict[tuple[str, int], list[Run]](list)
        has_known = False
        for stretch in report.stretches:
            place, run = (stretch.cluster_id, stretch.epoch), stretch.run
            has_known |= any(within(runs[place], run.first, run.last) for runs in (known, own))
            add(own[place], run)
        if has_known:
            places = {place: within(known[place], runs[0].first, runs[-1].last) for place, runs in own.items()}
            again.append(Share(report.number, [reached.read for reached in report.reached], places))
        for place, runs in own.items():
            for run in runs:
                add(known[place], run)
    return again


def note(state: State, report: Report) -> None:
    """Note in the state what a share brought. Raises StagingError if that was there."""
    for stretch in report.stretches:
        epoch = _epoch(state, stretch)
        if within(epoch.runs, stretch.run.first, stretch.run.last):
            file = report.reached[stretch.read].read.file
            raise StagingError(f"{file} was replaced while it was read: ingest again when it is complete.")
        add(epoch.runs, stretch.run)
        epoch.decisions += stretch.decisions
        epoch.begins_with_snapshot |= stretch.begins_with_snapshot
        cluster = state.clusters[stretch.cluster_id]
        place = stretch.epoch, stretch.run.first
        cluster.changed_from = min(cluster.changed_from or place, place)
    for stretch in report.repeated:
        if not report.reached[stretch.read].read.again:
            epoch = _epoch(state, stretch)
            epoch.duplicates += stretch.run.count
            add(epoch.repeated, stretch.run)
    for mark in report.marks:
        state.clusters[mark.cluster_id].marks.append(mark)
    for reached in report.reached:
        _note_progress(state.files, reached)
    state.quarantined += report.quarantined


def _epoch(state: State, stretch: Stretch) -> EpochState:
    cluster = state.clusters.setdefault(stretch.cluster_id, ClusterState())
    return cluster.epochs.setdefault(stretch.epoch, EpochState(stretch.node))


def _note_progress(files: dict[str, Progress], reached: Reached) -> None:
    read = reached.read
    former = read.former or read.file
    before = files.get(read.file) or files.get(former) or Progress()
    highest = max(reached.consumed, before.highest)
    if read.begin not in (0, before.consumed):  # what stands before it could not be read, and comes again with it
        progress = replace(before, highest=highest)
    elif reached.is_other:
        progress = Progress(highest=highest, most=before.most)
    elif reached.failure is None or reached.consumed > read.begin:
        progress = _progress(before, reached, highest)
    else:
        return
    files.pop(former, None)
    files[read.file] = progress


def _progress(before: Progress, reached: Reached, highest: int) -> Progress:
    """Return how far a file was read, after a read from its beginning or from where reading had
    ended.
    """
    read, digest, lines, events = reached.read, reached.digest, reached.lines, reached.events
    if read.begin:
        events = UNKNOWN if before.events == UNKNOWN else before.events + events
    if read.begin and not read.is_whole:
        digest = None if before.digest is None or digest is None else before.digest.followed_by(digest)
        lines = UNKNOWN if before.lines == UNKNOWN else before.lines + lines
    tag = read.tag if reached.failure is None else ""
    most = max(before.most, events)
    return Progress(
        reached.consumed, tag, reached.rest, highest, digest, lines, events, most, is_broken=reached.is_broken
    )


def read_again(files: Mapping[str, Progress], reports: Iterable[Report]) -> dict[str, int]:
    """Return after how many lines files were read that may have later lines in quarantine, which
    count no more: files that were read again, or on from where they were broken.
    """
    found = dict[str, int]()
    for reached in chain.from_iterable(report.reached for report in reports):
        read = reached.read
        before = files.get(read.file) or files.get(read.former or read.file) or Progress()
        if reached.failure is not None or reached.is_other:
            continue
        if read.begin == 0 and read.again:
            found[lasting_name(read.file)] = 0
        elif before.is_broken and read.begin == before.consumed:
            found[lasting_name(read.file)] = before.lines
    return found

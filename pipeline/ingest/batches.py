"""Ingests one batch: workers stage its events, the driver leaves out what the tables already have,
and one commit adds the rest.

Batches are idempotent: the first event with a cluster, epoch and sequence number stays, and every
later one is left out.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from msgspec.structs import replace

from ...audit.event import decode
from ..database import database
from ..datafiles import DataFile, NewFiles, batches, dataset, of_clusters, unreadable
from ..failures import PipelineError
from ..location import Location
from ..parallel import ParallelMap
from ..schemas import Table
from .files import UNKNOWN, FileProgress, Read, lasting_name
from .sequence_ranges import Position, SequenceRange, add, within
from .staging import stage
from .staging_result import ReadProgress, StagedRange, StagingResult, WorkUnit
from .state import ClusterLogState, EpochState, Ledger, State, copied

EVENT_BYTES = 1 << 10
"""The assumed size of an event in a file, in bytes."""
COLUMNS = ("epoch", "sequence", "event")
HASHED = pa.schema([("epoch", pa.int32()), ("sequence", pa.int64()), ("hash", pa.int64()), ("bytes", pa.int64())])
PORTION_BYTES = 64 << 20
"""The bytes of lines that are compared at once; more only if one position has more: lines have up
to 16 MB.
"""
WRITTEN_OTHERWISE = """
    SELECT epoch, sequence, sum(one.bytes + other.bytes) OVER (ORDER BY epoch, sequence) // $portion AS portion
    FROM repeated AS one JOIN there AS other USING (epoch, sequence)
    WHERE one.hash != other.hash ORDER BY portion
"""
ROWS = 1_000


class StagingError(PipelineError):
    """An audit file changed while it was read; the message names it."""


def ingest_batch(ledger: Ledger, on_workers: ParallelMap, reads: Sequence[Read], each: int) -> list[StagingResult]:
    """Add a batch to the tables, in work units of about `each` bytes, and return the result of each
    unit. Raises StagingError, ChangedMeanwhileError, TablesError, OSError and what `on_workers`
    raises.
    """
    location = ledger.tables.location
    work = partial(stage, tables=location)

    def staged_results(wanted: Sequence[WorkUnit]) -> dict[int, StagingResult]:
        events = sum(read.size for unit in wanted for read in unit.reads) // EVENT_BYTES
        return {result.number: result for result in on_workers(work, wanted, events=events)}

    found = staged_results(work_units(reads, each))
    if again := overlapping(ledger.state, list(found.values())):
        found |= staged_results(again)
    results = list(found.values())
    rewritten = without(location, ledger.quarantine.files, read_again(ledger.state.files, results))
    state = copied(ledger.state)
    state.quarantined -= rewritten.rows
    for result in results:
        note(state, result)
    events, repeated, quarantine = (
        list(chain.from_iterable(getattr(result, name) for result in results))
        for name in ("events_files", "repeated_files", "quarantine_files")
    )
    pieces = files_to_compare(repeated, [*ledger.events.files, *events])
    for cluster, epoch, sequence in chain.from_iterable(
        on_workers(partial(differing_positions, tables=location), pieces)
    ):
        add(state.clusters[cluster].epochs[epoch].conflicts, SequenceRange(sequence, sequence, 0, 0))
    ledger.change(state, events, [*quarantine, *rewritten.adds], rewritten.removes)
    return results


def work_units(reads: Sequence[Read], each: int) -> list[WorkUnit]:
    """Divide reads into work units of about `each` bytes. Units are as equal as possible, because
    the slowest one determines the time; consecutive reads stay together, so that many small audit
    files become one file of a table.
    """
    found: dict[int, WorkUnit] = {}
    size = 0
    for read in reads:
        number = (size + read.size // 2) // each
        found.setdefault(number, WorkUnit(len(found), [])).reads.append(read)
        size += read.size
    return list(found.values())


def overlapping(state: State, results: Sequence[StagingResult]) -> list[WorkUnit]:
    """Return the work units with events that the tables or an earlier unit already have, to be
    staged again without those events.
    """
    known = defaultdict[tuple[str, int], list[SequenceRange]](list)
    for cluster_id, cluster in state.clusters.items():
        known |= {(cluster_id, number): list(epoch.ranges) for number, epoch in cluster.epochs.items()}
    again = []
    for result in results:
        own = defaultdict[tuple[str, int], list[SequenceRange]](list)
        has_known = False
        for staged in result.ranges:
            key, span = (staged.cluster_id, staged.epoch), staged.range
            has_known |= any(within(ranges[key], span.first, span.last) for ranges in (known, own))
            add(own[key], span)
        if has_known:
            known_ranges = {key: within(known[key], ranges[0].first, ranges[-1].last) for key, ranges in own.items()}
            again.append(WorkUnit(result.number, [done.read for done in result.progress], known_ranges))
        for key, ranges in own.items():
            for span in ranges:
                add(known[key], span)
    return again


def note(state: State, result: StagingResult) -> None:
    """Add the result of a work unit to the state. Raises StagingError if the state already has one
    of its events, because a file changed between the two passes.
    """
    for staged in result.ranges:
        epoch = _epoch(state, staged)
        if within(epoch.ranges, staged.range.first, staged.range.last):
            file = result.progress[staged.read].read.file
            raise StagingError(f"{file} was replaced while it was read: ingest again when it is complete.")
        add(epoch.ranges, staged.range)
        epoch.decisions += staged.decisions
        epoch.begins_with_snapshot |= staged.begins_with_snapshot
        cluster = state.clusters[staged.cluster_id]
        position = staged.epoch, staged.range.first
        cluster.changed_from = min(cluster.changed_from or position, position)
    for staged in result.repeated:
        if not result.progress[staged.read].read.again:
            epoch = _epoch(state, staged)
            epoch.duplicates += staged.range.count
            add(epoch.repeated, staged.range)
    for marker in result.markers:
        state.clusters[marker.cluster_id].markers.append(marker)
    for done in result.progress:
        _note_progress(state.files, done)
    state.quarantined += result.quarantined


def _epoch(state: State, staged: StagedRange) -> EpochState:
    cluster = state.clusters.setdefault(staged.cluster_id, ClusterLogState())
    return cluster.epochs.setdefault(staged.epoch, EpochState(staged.node))


def _note_progress(files: dict[str, FileProgress], done: ReadProgress) -> None:
    read = done.read
    former = read.former or read.file
    before = files.get(read.file) or files.get(former) or FileProgress()
    highest = max(done.consumed, before.highest)
    if read.begin not in (0, before.consumed):  # what stands before it could not be read, and comes again with it
        progress = replace(before, highest=highest)
    elif done.is_other:
        progress = FileProgress(highest=highest, most=before.most)
    elif done.failure is None or done.consumed > read.begin:
        progress = _progress(before, done, highest)
    else:
        return
    files.pop(former, None)
    files[read.file] = progress


def _progress(before: FileProgress, done: ReadProgress, highest: int) -> FileProgress:
    """Return the progress of a file after a read from its beginning, or from the byte at which the
    last read ended.
    """
    read, digest, lines, events = done.read, done.digest, done.lines, done.events
    if read.begin:
        events = UNKNOWN if before.events == UNKNOWN else before.events + events
    if read.begin and not read.is_whole:
        digest = None if before.digest is None or digest is None else before.digest.followed_by(digest)
        lines = UNKNOWN if before.lines == UNKNOWN else before.lines + lines
    tag = read.tag if done.failure is None else ""
    most = max(before.most, events)
    return FileProgress(done.consumed, tag, done.rest, highest, digest, lines, events, most, is_broken=done.is_broken)


def read_again(files: Mapping[str, FileProgress], results: Iterable[StagingResult]) -> dict[str, int]:
    """Return, for each file that was read again or continued after damage, the number of lines that
    were kept. Rows of the quarantine for later lines of these files are out of date.
    """
    found = dict[str, int]()
    for done in chain.from_iterable(result.progress for result in results):
        read = done.read
        before = files.get(read.file) or files.get(read.former or read.file) or FileProgress()
        if done.failure is not None or done.is_other:
            continue
        if read.begin == 0 and read.again:
            found[lasting_name(read.file)] = 0
        elif before.is_broken and read.begin == before.consumed:
            found[lasting_name(read.file)] = before.lines
    return found


class Rewritten(NamedTuple):
    """The rewritten files, those that they replace, and how many rows they lack."""

    adds: list[DataFile]
    removes: list[DataFile]
    rows: int


def without(tables: Location, files: Sequence[DataFile], read_again: Mapping[str, int]) -> Rewritten:
    """Rewrite the files of the quarantine that have rows of files which were `read_again`, by
    their lasting names, from after so many lines on. Raises OSError.
    """
    found = Rewritten([], [], 0)
    if not read_again:
        return found
    rows = 0
    written = NewFiles(tables, Table.QUARANTINE, found.adds)
    for file in files:
        kept = [(some, _kept(some, read_again)) for some in batches(tables, Table.QUARANTINE, [file], _NAMES)]
        left_out = sum(flags.count(False) for _, flags in kept)
        if left_out:
            rows += left_out
            found.removes.append(file)
            for some, flags in kept:
                written.write(None, some.filter(pa.array(flags, pa.bool_())))
    written.finish()
    return found._replace(rows=rows)


_NAMES = Table.QUARANTINE.schema.names


def _kept(rows: pa.RecordBatch, read_again: Mapping[str, int]) -> list[bool]:
    places = zip(rows.column("file").to_pylist(), rows.column("line").to_pylist(), strict=True)
    return [line <= read_again.get(lasting_name(file), line) for file, line in places]


class ComparedFiles(NamedTuple):
    """Files of one cluster: those with the events that were left out, and those of the table that
    may have the same positions.
    """

    cluster_id: str
    repeated: list[DataFile]
    there: list[DataFile]


def files_to_compare(repeated: Sequence[DataFile], there: Sequence[DataFile]) -> list[ComparedFiles]:
    known = of_clusters(there)
    return [
        ComparedFiles(
            cluster_id, files, [each for each in known[cluster_id] if any(_share(each, file) for file in files)]
        )
        for cluster_id, files in of_clusters(repeated).items()
    ]


def _share(one: DataFile, other: DataFile) -> bool:
    """Whether the ranges of epochs of two files overlap."""
    (low, high), (other_low, other_high) = ((int(each.low["epoch"]), int(each.high["epoch"])) for each in (one, other))
    return low <= other_high and other_low <= high


def differing_positions(piece: ComparedFiles, tables: Location) -> list[tuple[str, int, int]]:
    """Return the positions (cluster, epoch, sequence) at which the files hold different events.
    Lines that decode to equal events are no conflict. Raises OSError.
    """
    both = [dataset(tables, Table.EVENTS, files) for files in (piece.repeated, piece.there)]
    found: list[Position] = []
    with database() as connection:
        try:
            for name, some in zip(("repeated", "there"), both, strict=True):
                connection.register(name, pa.RecordBatchReader.from_batches(HASHED, _hashed(some)))
            suspected = connection.execute(WRITTEN_OTHERWISE, {"portion": PORTION_BYTES}).fetchall()
            for _, portion in groupby(suspected, key=itemgetter(2)):
                positions = {(epoch, sequence) for epoch, sequence, _ in portion}
                repeated, there = (_lines(some, positions) for some in both)
                found += [
                    position
                    for position, lines in repeated.items()
                    if any(decode(one) != decode(other) for one in lines for other in there[position])
                ]
        except (duckdb.InvalidInputException, pa.ArrowInvalid) as error:
            raise unreadable(tables, Table.EVENTS, [*piece.repeated, *piece.there], error) from None
    return sorted((piece.cluster_id, *position) for position in found)


def _hashed(events: ds.Dataset) -> Iterator[pa.RecordBatch]:
    """Yield the position, hash and length of each line, which are compared first."""
    for batch in events.to_batches(list(COLUMNS), batch_size=ROWS, use_threads=False):
        lines = batch.column("event")
        hashes = pa.array([hash(line.as_buffer().to_pybytes()) for line in lines], pa.int64())
        yield pa.RecordBatch.from_arrays(
            [*batch.columns[:2], hashes, pc.binary_length(lines).cast(pa.int64())], schema=HASHED
        )


def _lines(events: ds.Dataset, positions: Collection[Position]) -> Mapping[Position, list[str]]:
    epochs, sequences = (list(set(numbers)) for numbers in zip(*positions, strict=True))
    wanted = pc.field("epoch").isin(epochs) & pc.field("sequence").isin(sequences)
    found: dict[Position, list[str]] = {}
    for row in events.to_table(list(COLUMNS), filter=wanted, batch_size=ROWS, use_threads=False).to_pylist():
        position = row["epoch"], row["sequence"]
        if position in positions:
            found.setdefault(position, []).append(row["event"])
    return found

"""The work of one task: reads the lines of a work unit, and writes rows to files for the tables.

Each line becomes an event, or a row of the quarantine with the reason why it is invalid. What rows
say about the log is computed from columns: Python runs only at the begin of a range and at a
marker. Memory does not depend on the size of the unit. A task that runs twice leaves files that no
commit names.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...audit.event import Dropped, decode
from ...audit.lines import KEPT_BYTES, TOO_LONG, LineBlock
from ..datafiles import NewFiles
from ..location import Location
from ..schemas import CLUSTER, Table
from .columns import DECISION, LINE, InvalidLine, columns
from .lines import Reader
from .sequence_ranges import SequenceRange, add, within
from .staging_result import MAX_REASON, Marker, ReadProgress, StagedRange, StagingResult, WorkUnit

POSITION = (CLUSTER, "epoch", "sequence")


def stage(unit: WorkUnit, tables: Location) -> StagingResult:
    """Read a work unit, and write its rows to files of the tables. Raises OSError."""
    result = StagingResult(number=unit.number)
    with _no_collections():
        stager = _Stager(unit, result, tables)
        for index, read in enumerate(unit.reads):
            stager.read(Reader(read), index)
        stager.finish()
    return result


@contextmanager
def _no_collections() -> Iterator[None]:
    """Switch the garbage collector off within the block: events have no cycles, and looking for
    some takes as long as decoding.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Stager:
    """Goes through a work unit, block by block, and notes what it meets."""

    def __init__(self, unit: WorkUnit, result: StagingResult, tables: Location) -> None:
        self._result = result
        self._known = None if unit.known is None else KnownSequences(unit.known)
        self._now = datetime.now(UTC)
        self._events = NewFiles(tables, Table.EVENTS, result.events_files)
        self._repeated = NewFiles(tables, Table.EVENTS, result.repeated_files)
        self._quarantine = NewFiles(tables, Table.QUARANTINE, result.quarantine_files)

    def read(self, reader: Reader, index: int) -> None:
        self._events_read = 0
        for block in reader.blocks():
            if bad := self._take(block, index):
                self._note_bad(reader, block.first, bad)
        if reader.broken is not None:
            self._note_bad(reader, reader.count, [InvalidLine(0, reader.broken, b"")])
        done = ReadProgress(
            reader.read, reader.consumed, reader.rest, reader.failure, reader.digest, reader.lines, self._events_read,
            reader.broken is not None,
        )  # fmt: skip
        self._result.progress.append(done)

    def finish(self) -> None:
        for files in (self._events, self._repeated, self._quarantine):
            files.finish()

    def _take(self, block: LineBlock, index: int) -> Sequence[InvalidLine]:
        if block.is_too_long:
            return [InvalidLine(0, TOO_LONG, line) for line in block.lines]
        rows, bad = columns(block.lines)
        self._events_read += rows.num_rows
        if self._known is not None:
            is_known = self._known.of(rows)
            if is_known.any():
                repeated = rows.filter(pa.array(is_known))
                extend_ranges(self._result.repeated, repeated, index)
                self._repeated.write_by_cluster(repeated)
                rows = rows.filter(pa.array(~is_known))
        self._result.events += rows.num_rows
        extend_ranges(self._result.ranges, rows, index)
        self._result.markers.extend(markers_in(rows))
        self._events.write_by_cluster(rows)
        return bad

    def _note_bad(self, reader: Reader, first: int, bad: Sequence[InvalidLine]) -> None:
        before = reader.lines_before + first + 1
        lines = [(before + each.number, each.reason, each.line[:KEPT_BYTES].decode("utf-8", "replace")) for each in bad]
        self._result.quarantined += len(lines)
        rows = [(str(reader.file), *each, self._now) for each in lines]
        schema = Table.QUARANTINE.schema
        arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
        self._quarantine.write(None, pa.RecordBatch.from_arrays(arrays, schema=schema))


class KnownSequences:
    """The positions that are in the tables, or come earlier in the same batch."""

    def __init__(self, known: Mapping[tuple[str, int], Sequence[tuple[int, int]]]) -> None:
        self._ranges = {position: [SequenceRange(*each, 0, 0) for each in some] for position, some in known.items()}

    def of(self, rows: pa.RecordBatch) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return a mask of the rows seen before, and mark all rows as seen."""
        positions = zip(*(rows.column(name).to_pylist() for name in POSITION), strict=True)
        return np.array([self._is_known(*position) for position in positions], np.bool_)

    def _is_known(self, cluster_id: str, epoch: int, sequence: int) -> bool:
        ranges = self._ranges.setdefault((cluster_id, epoch), [])
        if within(ranges, sequence, sequence):
            return True
        add(ranges, SequenceRange(sequence, sequence, 0, 0))
        return False


SNAPSHOT_BEGIN = "snapshot_begin"
MARKERS = (SNAPSHOT_BEGIN, "snapshot_end", "dropped")


def extend_ranges(ranges: list[StagedRange], rows: pa.RecordBatch, read: int) -> None:
    """Extend the last range by rows, and begin another one where a row does not follow the one
    before. `read` is which of the share's reads they are of.
    """
    if not rows.num_rows:
        return
    epoch, sequence = rows.column("epoch").to_numpy(), rows.column("sequence").to_numpy()
    cluster = rows.column("cluster_id").dictionary_encode()
    codes = cluster.indices.to_numpy()
    goes_on = (sequence[1:] - sequence[:-1] == 1) & (epoch[1:] == epoch[:-1]) & (codes[1:] == codes[:-1])
    firsts = np.concatenate(([0], np.flatnonzero(~goes_on) + 1))
    lasts = np.append(firsts[1:], rows.num_rows) - 1
    decisions = np.add.reduceat(pc.equal(rows.column("kind"), DECISION).cast(pa.int64()).to_numpy(), firsts)
    ms = rows.column("time").cast(pa.int64()).to_numpy() // 1000
    for first, last, count in zip(firsts.tolist(), lasts.tolist(), decisions.tolist(), strict=True):
        position = cluster.dictionary[codes[first]].as_py(), int(epoch[first])
        span = SequenceRange(int(sequence[first]), int(sequence[last]), int(ms[first]), int(ms[last]))
        if ranges and _follows(ranges[-1], position, span, read):
            ranges[-1].range.last, ranges[-1].range.last_ms = span.last, span.last_ms
            ranges[-1].decisions += count
        else:
            begins = span.first == 1 and rows.column("kind")[first].as_py() == SNAPSHOT_BEGIN
            node = rows.column("decided_node")[first].as_py()
            ranges.append(StagedRange(*position, span, node, count, begins, read))


def _follows(staged: StagedRange, position: tuple[str, int], span: SequenceRange, read: int) -> bool:
    return (staged.cluster_id, staged.epoch) == position and staged.range.last + 1 == span.first and staged.read == read


def markers_in(rows: pa.RecordBatch) -> Iterator[Marker]:
    """Yield the marks among rows of events, in their order."""
    marked = rows.select(["kind", LINE]).filter(pc.is_in(rows.column("kind"), pa.array(MARKERS)))
    for row in marked.to_pylist():
        event = decode(row[LINE])
        dropped = ("", 0, 0)
        if isinstance(event, Dropped):
            dropped = (event.reason[:MAX_REASON], event.first_sequence, event.last_sequence)
        yield Marker(event.cluster_id, event.epoch, event.sequence, row["kind"], event.time_ms, *dropped)

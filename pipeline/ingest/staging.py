"""One task's work: lines to rows, rows to files that lie ready for the tables.

Rule: whatever a line holds, it becomes an event, or a row of the quarantine that says why it is
none, and the rest goes on. Memory does not depend on how much is read. A task that is done twice
leaves files that nobody names.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from ...audit.lines import KEPT_BYTES, TOO_LONG, LineBlock
from ..datafiles import NewFiles
from ..location import Location
from ..schemas import CLUSTER, Table
from .columns import Bad, columns
from .lines import Reader
from .places import Run, add, within
from .report import Reached, Report, Share
from .stretches import marks_of, stretch_on

PLACE = (CLUSTER, "epoch", "sequence")


def stage(share: Share, tables: Location) -> Report:
    """Read a share, and write its rows to files of the tables. Raises OSError."""
    report = Report(number=share.number)
    with _no_collections():
        stager = _Stager(share, report, tables)
        for index, read in enumerate(share.reads):
            stager.read(Reader(read), index)
        stager.finish()
    return report


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
    """Goes through a share, block by block, and notes what it meets."""

    def __init__(self, share: Share, report: Report, tables: Location) -> None:
        self._report = report
        self._known = None if share.known is None else Known(share.known)
        self._now = datetime.now(UTC)
        self._events = NewFiles(tables, Table.EVENTS, report.events_files)
        self._repeated = NewFiles(tables, Table.EVENTS, report.repeated_files)
        self._quarantine = NewFiles(tables, Table.QUARANTINE, report.quarantine_files)

    def read(self, reader: Reader, index: int) -> None:
        self._events_read = 0
        for block in reader.blocks():
            if bad := self._take(block, index):
                self._note_bad(reader, block.first, bad)
        if reader.broken is not None:
            self._note_bad(reader, reader.count, [Bad(0, reader.broken, b"")])
        reached = Reached(
            reader.read, reader.consumed, reader.rest, reader.failure, reader.digest, reader.lines, self._events_read,
            reader.broken is not None,
        )  # fmt: skip
        self._report.reached.append(reached)

    def finish(self) -> None:
        for files in (self._events, self._repeated, self._quarantine):
            files.finish()

    def _take(self, block: LineBlock, index: int) -> Sequence[Bad]:
        """Take the events of a block, and return the lines that are none."""
        if block.is_too_long:
            return [Bad(0, TOO_LONG, line) for line in block.lines]
        rows, bad = columns(block.lines)
        self._events_read += rows.num_rows
        if self._known is not None:
            is_known = self._known.of(rows)
            if is_known.any():
                repeated = rows.filter(pa.array(is_known))
                stretch_on(self._report.repeated, repeated, index)
                self._repeated.write_by_cluster(repeated)
                rows = rows.filter(pa.array(~is_known))
        self._report.events += rows.num_rows
        stretch_on(self._report.stretches, rows, index)
        self._report.marks.extend(marks_of(rows))
        self._events.write_by_cluster(rows)
        return bad

    def _note_bad(self, reader: Reader, first: int, bad: Sequence[Bad]) -> None:
        before = reader.lines_before + first + 1
        lines = [(before + each.number, each.reason, each.line[:KEPT_BYTES].decode("utf-8", "replace")) for each in bad]
        self._report.quarantined += len(lines)
        rows = [(str(reader.file), *each, self._now) for each in lines]
        schema = Table.QUARANTINE.schema
        arrays = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), schema, strict=True)]
        self._quarantine.write(None, pa.RecordBatch.from_arrays(arrays, schema=schema))


class Known:
    """The places that are in the tables, or come earlier in the same batch."""

    def __init__(self, known: Mapping[tuple[str, int], Sequence[tuple[int, int]]]) -> None:
        self._runs = {place: [Run(*each, 0, 0) for each in some] for place, some in known.items()}

    def of(self, rows: pa.RecordBatch) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Say of each row whether its place is known; from now on it is."""
        places = zip(*(rows.column(name).to_pylist() for name in PLACE), strict=True)
        return np.array([self._is_known(*place) for place in places], np.bool_)

    def _is_known(self, cluster_id: str, epoch: int, sequence: int) -> bool:
        runs = self._runs.setdefault((cluster_id, epoch), [])
        if within(runs, sequence, sequence):
            return True
        add(runs, Run(sequence, sequence, 0, 0))
        return False

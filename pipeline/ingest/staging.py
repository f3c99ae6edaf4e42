"""One reader's work: lines to rows, rows to Parquet files that lie ready.

Rule: whatever a line holds, it becomes an event, or a row of the quarantine that says why it is
none, and the rest goes on. Memory does not depend on how much is read.
"""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from ...audit.event import AuditEvent, UnreadableLineError
from ...audit.lines import KEPT_BYTES, LineBlock
from ..tables import Table
from . import mentions, rows
from .arrow import arrow_schema
from .limits import checked, folder_name
from .lines import Reader
from .outputs import Outputs
from .places import Run, Runs
from .report import Reached, Report, Share, marks_of, stretch_on

REPEATED = "repeated"
"""Where events lie that are in the tables already: not a table, but needed to find conflicts."""
QUARANTINE_SCHEMA = arrow_schema(Table.QUARANTINE.schema)
REPEATED_SCHEMA = pa.schema(
    [("cluster_id", pa.string()), ("epoch", pa.int32()), ("sequence", pa.int64()), ("event", pa.string())]
)
DAY_MS = 86_400_000
FIRST_DAY = date(1970, 1, 1)

Bad = tuple[int, str, bytes]
"""Which of the read's lines, from 0, why it is no event, and the line."""


def stage(share: Share, tables: Path, staging: str) -> Report:
    """Read a share and write its content to the folder `staging`, which is relative to `tables`.
    Raises OSError.
    """
    report = Report(number=share.number)
    with Outputs(tables, staging) as outputs, _no_collections():
        stager = _Stager(share, report, outputs)
        for index, read in enumerate(share.reads):
            stager.read(Reader(read), index)
    report.files = outputs.files
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

    def __init__(self, share: Share, report: Report, outputs: Outputs) -> None:
        self._report = report
        self._outputs = outputs
        self._teller = mentions.Teller()
        self._known = _known_places(share) if share.leaves_out else None
        self._now = datetime.now(UTC)
        self._index = 0
        """Which of the share's reads."""

    def read(self, reader: Reader, index: int) -> None:
        self._index = index
        before: int | None = None
        for block in reader.blocks():
            if bad := list(self._block(block)):
                before = reader.lines_before() if before is None else before
                self._quarantine(reader.path, before, bad)
        if reader.broken is not None:
            before = reader.lines_before() if before is None else before
            self._quarantine(reader.path, before, [(reader.lines, reader.broken, b"")])
        self._report.reached.append(Reached(reader.read, reader.consumed, reader.rest, reader.failure))

    def _block(self, block: LineBlock) -> Iterator[Bad]:
        events: list[AuditEvent] = []
        lines: list[bytes] = []
        for number, line in enumerate(block.lines, block.first):
            try:
                events.append(checked(line, is_too_long=block.is_too_long))
                lines.append(line)
            except UnreadableLineError as error:
                yield number, str(error), line
        if self._known is not None:
            events, lines = self._without_known(self._known, events, lines)
        if events and not self._take(events, lines):
            numbers = {id(line): number for number, line in enumerate(block.lines, block.first)}
            fit = []
            for event, line in zip(events, lines, strict=True):
                if reason := _misfit(event, line):
                    yield numbers[id(line)], reason, line
                else:
                    fit.append((event, line))
            if fit:
                self._take([event for event, _ in fit], [line for _, line in fit])

    def _take(self, events: Sequence[AuditEvent], lines: Sequence[bytes]) -> bool:
        """Take all of these events. Take none, and return False, if one has a value that its column
        cannot hold.
        """
        told: dict[str, list[mentions.Mention]] = {}
        for mention in self._teller.mentions(events):
            told.setdefault(mention.event.cluster_id, []).append(mention)
        try:
            batches = [(target, rows.event_rows(*some)) for target, some in _by_folder(events, lines)]
            mentioned = [(_mentions_folder(cluster), mentions.mention_rows(each)) for cluster, each in told.items()]
        except (pa.ArrowInvalid, OverflowError, ValueError):
            self._teller.forget()
            return False
        for target, batch in batches:
            self._outputs.write(target, batch)
        for target, batch in mentioned:
            self._outputs.write(target, batch, mentions.SORTED_BY)
        self._report.events += len(events)
        stretch_on(self._report.stretches, events, self._index)
        self._report.marks.extend(marks_of(events))
        return True

    def _without_known(
        self, known: dict[tuple[str, int], Runs], events: Sequence[AuditEvent], lines: Sequence[bytes]
    ) -> tuple[list[AuditEvent], list[bytes]]:
        new, new_lines, repeated, repeated_lines = [], [], [], []
        for event, line in zip(events, lines, strict=True):
            places = known.setdefault((event.cluster_id, event.epoch), Runs())
            if event.sequence in places:
                repeated.append(event)
                repeated_lines.append(line)
            else:
                places.add(Run(event.sequence, event.sequence, 0, 0))
                new.append(event)
                new_lines.append(line)
        if repeated:
            stretch_on(self._report.repeated, repeated, self._index)
            columns = (
                [event.cluster_id for event in repeated],
                [event.epoch for event in repeated],
                [event.sequence for event in repeated],
                repeated_lines,
            )
            self._outputs.write(REPEATED, _batch(REPEATED_SCHEMA, columns))
        return new, new_lines

    def _quarantine(self, path: Path, lines_before: int, bad: Sequence[Bad]) -> None:
        self._report.quarantined += len(bad)
        columns = (
            [str(path)] * len(bad),
            [lines_before + number + 1 for number, _, _ in bad],
            [reason for _, reason, _ in bad],
            [line[:KEPT_BYTES].decode("utf-8", "replace") for _, _, line in bad],
            [self._now] * len(bad),
        )
        self._outputs.write(Table.QUARANTINE.value, _batch(QUARANTINE_SCHEMA, columns))


def _known_places(share: Share) -> dict[tuple[str, int], Runs]:
    return {
        (cluster, epoch): Runs(Run(first, last, 0, 0) for first, last in places)
        for cluster, epochs in share.known.items()
        for epoch, places in epochs.items()
    }


def _misfit(event: AuditEvent, line: bytes) -> str | None:
    """Say why an event does not fit into its columns."""
    try:
        rows.event_rows([event], [line])
        if told := mentions.Teller().mentions([event]):
            mentions.mention_rows(told)
    except (pa.ArrowInvalid, OverflowError, ValueError) as error:
        return f"a value does not fit into its column: {error}"
    return None


def _mentions_folder(cluster: str) -> str:
    return f"{mentions.FOLDER}/{folder_name('cluster_id', cluster)}"


def _by_folder(
    events: Sequence[AuditEvent], lines: Sequence[bytes]
) -> Iterator[tuple[str, tuple[Sequence[AuditEvent], Sequence[bytes]]]]:
    folders: dict[tuple[str, int], list[int]] = {}
    for index, event in enumerate(events):
        folders.setdefault((event.cluster_id, event.time_ms // DAY_MS), []).append(index)
    for (cluster, day), places in folders.items():
        target = f"{Table.EVENTS.value}/{folder_name('cluster_id', cluster)}/day={FIRST_DAY + timedelta(days=day)}"
        if len(places) == len(events):
            yield target, (events, lines)
        else:
            yield target, ([events[index] for index in places], [lines[index] for index in places])


def _batch(schema: pa.Schema, columns: Sequence[Sequence[object]]) -> pa.RecordBatch:
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)

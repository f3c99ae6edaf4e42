"""One reader's work: lines to rows, rows to Parquet files that lie ready.

Rule: what is written here belongs to nobody until the driver commits it; a reader that is started twice writes files of other names. Memory
does not depend on how much is read.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace

from ...policies.audit_event import AuditEvent, Decision, Dropped, SnapshotBegin, SnapshotEnd, UnreadableLineError
from ..tables import Table
from . import mentions, rows
from .arrow import arrow_schema
from .files import Read
from .limits import UnfitEventError, checked, folder_name
from .lines import MAX_LINE_BYTES, Block, Reader, line_number
from .places import Run, Runs
from .report import Mark, Reached, Report, Share, StagedFile, Stretch

MENTIONS = "_state/mentions"
REPEATED = "repeated"
QUARANTINE_SCHEMA = arrow_schema(Table.QUARANTINE.schema)
REPEATED_SCHEMA = pa.schema(
    [("cluster_id", pa.string()), ("epoch", pa.int32()), ("sequence", pa.int64()), ("event", pa.string())]
)
MAX_OPEN = 16
ROW_GROUP_BYTES = 64 << 20
MAX_TEXT = 4096
"""Bytes of a line that are kept in quarantine."""
DAY_MS = 86_400_000
EPOCH_DAY = date(1970, 1, 1)

SCHEMAS = {
    Table.EVENTS.value: rows.SCHEMA,
    Table.QUARANTINE.value: QUARANTINE_SCHEMA,
    MENTIONS: mentions.SCHEMA,
    REPEATED: REPEATED_SCHEMA,
}


def stage(share: Share, tables: Path, staging: str) -> Report:
    """Read the share and write what is in it to the folder `staging`, which is relative to `tables`. Raises OSError."""
    report = Report(number=share.number)
    with Outputs(tables, staging) as outputs:
        Stager(share, report, outputs).run()
    report.files = outputs.files
    return report


class Outputs:
    """Parquet files, one for each folder that rows belong to."""

    def __init__(self, tables: Path, staging: str) -> None:
        self._tables = tables
        self._staging = staging
        self._open: OrderedDict[str, _Output] = OrderedDict()
        self.files: list[StagedFile] = []

    def __enter__(self) -> Self:
        (self._tables / self._staging).mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for output in self._open.values():
            output.close()
            if kind is None:
                self.files.append(output.staged)
        self._open.clear()

    def write(self, table: str, target: str, batch: pa.RecordBatch) -> None:
        output = self._open.get(target)
        if output is None:
            while len(self._open) >= MAX_OPEN:
                _, oldest = self._open.popitem(last=False)
                oldest.close()
                self.files.append(oldest.staged)
            output = self._open[target] = _Output(self._tables, self._staging, target, SCHEMAS[table])
        else:
            self._open.move_to_end(target)
        output.write(batch)


class _Output:
    def __init__(self, tables: Path, staging: str, target: str, schema: pa.Schema) -> None:
        self._name = f"{staging}/{uuid4().hex}.parquet"
        self._path = tables / self._name
        self._target = target
        self._writer = pq.ParquetWriter(self._path, schema, compression="zstd")
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._bytes += batch.nbytes
        self._rows += batch.num_rows
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._batches:
            self._writer.write_table(pa.Table.from_batches(self._batches))
        self._batches, self._bytes = [], 0

    def close(self) -> None:
        self._flush()
        self._writer.close()
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @property
    def staged(self) -> StagedFile:
        return StagedFile(self._name, self._target, self._rows)


class Stager:
    """Goes through a share, line by line, and knows what it met."""

    def __init__(self, share: Share, report: Report, outputs: Outputs) -> None:
        self._share = share
        self._report = report
        self._outputs = outputs
        self._teller = mentions.Teller()
        self._known = {
            (cluster, epoch): Runs(Run(first, last, 0, 0) for first, last in places)
            for cluster, epochs in share.known.items()
            for epoch, places in epochs.items()
        }
        self._now = datetime.now(UTC)

    def run(self) -> None:
        for index, read in enumerate(self._share.reads):
            reader = Reader(read)
            for block in reader.blocks():
                self._block(reader, block, index)
            if reader.broken is not None:
                self._quarantine(reader, [(reader.consumed, reader.broken, b"")])
            self._report.reached.append(Reached(read, reader.consumed, reader.rest, reader.failure))

    def _block(self, reader: Reader, block: Block, index: int) -> None:
        if block.too_long:
            reason = f"longer than {MAX_LINE_BYTES >> 20} MiB"
            self._quarantine(reader, [(block.offset, reason, block.lines[0])])
            return
        events, lines, bad = _decoded(block)
        if bad:
            self._quarantine(reader, bad)
        self._take(events, lines, index)

    def _take(self, events: Sequence[AuditEvent], lines: Sequence[bytes], index: int) -> None:
        if self._share.whole:
            events, lines = self._without_known(events, lines, index)
        self._report.events += len(events)
        _stretch(self._report.stretches, events, index)
        self._report.marks.extend(_marks(events))
        for target, day_events, day_lines in _by_folder(events, lines):
            self._outputs.write(Table.EVENTS.value, target, rows.event_rows(day_events, day_lines))
        told: dict[str, list[mentions.Mention]] = {}
        for mention in self._teller.mentions(events):
            told.setdefault(mention.event.cluster_id, []).append(mention)
        for cluster, each in told.items():
            target = f"{MENTIONS}/{folder_name('cluster_id', cluster)}"
            self._outputs.write(MENTIONS, target, mentions.mention_rows(each))

    def _without_known(
        self, events: Sequence[AuditEvent], lines: Sequence[bytes], index: int
    ) -> tuple[list[AuditEvent], list[bytes]]:
        new, new_lines, repeated, repeated_lines = [], [], [], []
        for event, line in zip(events, lines, strict=True):
            known = self._known.setdefault((event.cluster_id, event.epoch), Runs())
            if event.sequence in known:
                repeated.append(event)
                repeated_lines.append(line)
            else:
                known.add(Run(event.sequence, event.sequence, 0, 0))
                new.append(event)
                new_lines.append(line)
        if repeated:
            _stretch(self._report.repeated, repeated, index)
            columns = (
                [event.cluster_id for event in repeated],
                [event.epoch for event in repeated],
                [event.sequence for event in repeated],
                repeated_lines,
            )
            arrays = [pa.array(column, field.type) for column, field in zip(columns, REPEATED_SCHEMA, strict=True)]
            self._outputs.write(REPEATED, REPEATED, pa.RecordBatch.from_arrays(arrays, schema=REPEATED_SCHEMA))
        return new, new_lines

    def _quarantine(self, reader: Reader, bad: Iterable[tuple[int, str, bytes]]) -> None:
        found = [
            (line_number(reader.path, offset), reason, text[:MAX_TEXT].decode("utf-8", "replace"))
            for offset, reason, text in bad
        ]
        self._report.quarantined += len(found)
        columns: Sequence[list[Any]] = (
            [str(reader.path)] * len(found),
            [number for number, _, _ in found],
            [reason for _, reason, _ in found],
            [text for _, _, text in found],
            [self._now] * len(found),
        )
        arrays = [pa.array(column, field.type) for column, field in zip(columns, QUARANTINE_SCHEMA, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=QUARANTINE_SCHEMA)
        self._outputs.write(Table.QUARANTINE.value, Table.QUARANTINE.value, batch)


def _decoded(block: Block) -> tuple[list[AuditEvent], list[bytes], list[tuple[int, str, bytes]]]:
    events: list[AuditEvent] = []
    lines: list[bytes] = []
    bad: list[tuple[int, str, bytes]] = []
    offset = block.offset
    for line in block.lines:
        try:
            if len(line) > MAX_LINE_BYTES:
                raise UnfitEventError(f"longer than {MAX_LINE_BYTES >> 20} MiB")
            events.append(checked(line))
            lines.append(line)
        except UnreadableLineError as error:
            bad.append((offset, str(error), line))
        offset += len(line) + 1
    return events, lines, bad


def _stretch(stretches: list[Stretch], events: Iterable[AuditEvent], read: int) -> None:
    """Go on with the last stretch, or begin another."""
    last = stretches[-1] if stretches else None
    for event in events:
        run = last.run if last is not None else None
        if (
            last is None
            or run is None
            or event.sequence != run.last + 1
            or event.epoch != last.epoch
            or event.cluster_id != last.cluster_id
            or read != last.read
        ):
            run = Run(event.sequence, event.sequence, event.time_ms, event.time_ms)
            begins = event.sequence == 1 and isinstance(event, SnapshotBegin)
            last = Stretch(event.cluster_id, event.epoch, run, event.decided_node, 0, begins, read)
            stretches.append(last)
        else:
            run.last = event.sequence
            run.last_ms = event.time_ms
        last.decisions += isinstance(event, Decision)


def _marks(events: Iterable[AuditEvent]) -> Iterator[Mark]:
    for event in events:
        if isinstance(event, SnapshotBegin | SnapshotEnd | Dropped):
            kind = str(event.__struct_config__.tag)
            mark = Mark(event.cluster_id, event.epoch, event.sequence, kind, event.time_ms)
            if isinstance(event, Dropped):
                told = event.reason[:MAX_TEXT]
                mark = replace(mark, text=told, first=event.first_sequence, last=event.last_sequence)
            yield mark


def _by_folder(
    events: Sequence[AuditEvent], lines: Sequence[bytes]
) -> Iterator[tuple[str, Sequence[AuditEvent], Sequence[bytes]]]:
    folders: dict[tuple[str, int], list[int]] = {}
    for index, event in enumerate(events):
        folders.setdefault((event.cluster_id, event.time_ms // DAY_MS), []).append(index)
    for (cluster, day), places in folders.items():
        target = f"{Table.EVENTS.value}/{folder_name('cluster_id', cluster)}/day={EPOCH_DAY + timedelta(days=day)}"
        if len(places) == len(events):
            yield target, events, lines
        else:
            yield target, [events[i] for i in places], [lines[i] for i in places]


def share_of(read: Read, number: int) -> Share:
    return Share(number, [read])

"""From the workers' answers to files: every difference as NDJSON and as Parquet, and what was
counted.

Rule: bounded memory, whatever the number of differences; the same answers give the same bytes,
however they came. A file is there whole or not at all, and while it is not, the answers stay where
the workers left them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..page.files import Files
from .reading import numbers_of
from .tally import Tally
from .verdicts import Kind
from .workers import DIFFERENCE, OUT_ARROW, REFUSED, REPEATED, TALLY

ROW_GROUP = 10_000
ON_THE_PAGE = 5_000
"""Differences that a page has room for; of each kind the same share, if there are more."""
ON_THE_PAGE_EXISTING = 1_000
DAY = 86_400_000_000
"""In microseconds."""
_COLUMNS = [field for field in OUT_ARROW if field.name not in {"what", "body"}]
PARQUET = pa.schema([*_COLUMNS, pa.field("difference", pa.string())])


class Results:
    """The results that were read of the workers' answers."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.counts: Counter[tuple[str, str, str]] = Counter()
        """By `rule` or `topic`, its name, and the kind of difference."""
        self.denied: Counter[tuple[str, int, str]] = Counter()
        """What is newly denied, by `rule` or `principal`, the day since 1970, and the name."""
        self.shown: dict[str, list[str]] = {kind.value: [] for kind in Kind}
        """The first differences of each kind, as JSON."""
        self.refused: list[str] = []
        """The first existing topics that are refused, as JSON."""
        self.refused_by_rule: Counter[tuple[str, str]] = Counter()
        """By cluster and rule."""

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the tallies among the answers, and pass on the others."""
        for batch in batches:
            tallies = batch.filter(pc.equal(batch.column("what"), TALLY))
            for body in tallies.column("body").to_pylist():
                self.tally.add(Tally.decode(body))
            rest = batch.filter(pc.not_equal(batch.column("what"), TALLY))
            if rest.num_rows:
                self._count(rest)
                yield rest

    def differences(self) -> list[str]:
        """Return differences for the page, in the order of kinds and of the log; each kind has its
        share of the room, more if others need less.
        """
        chosen: list[str] = []
        left = ON_THE_PAGE
        kinds = sorted(self.shown, key=lambda kind: len(self.shown[kind]))
        shares: dict[str, int] = {}
        for index, kind in enumerate(kinds):
            shares[kind] = min(len(self.shown[kind]), left // (len(kinds) - index))
            left -= shares[kind]
        for kind, bodies in self.shown.items():
            chosen += bodies[: shares[kind]]
        return chosen

    def _count(self, batch: pa.RecordBatch) -> None:
        if batch.column("what")[0].as_py() == REFUSED:
            pairs = zip(batch.column("cluster_id").to_pylist(), batch.column("rule").to_pylist(), strict=True)
            self.refused_by_rule.update((cluster, rule or "") for cluster, rule in pairs)
            room = ON_THE_PAGE_EXISTING - len(self.refused)
            self.refused += batch.column("body").slice(0, max(room, 0)).to_pylist()
            return
        table = pa.Table.from_batches([batch])
        for about in ("rule", "topic"):
            for name, kind, count in _rows(table.group_by([about, "kind"]).aggregate([([], "count_all")])):
                self.counts[about, name or "", kind] += count
        self._count_denied(table.filter(pc.equal(table.column("kind"), Kind.NEWLY_DENIED.value)))
        for kind, shown in self.shown.items():
            if (room := ON_THE_PAGE - len(shown)) > 0:
                bodies = table.filter(pc.equal(table.column("kind"), kind)).column("body")
                shown.extend(bodies.slice(0, room).to_pylist())

    def _count_denied(self, table: pa.Table) -> None:
        days = pa.array(numbers_of(table, "time") // DAY)
        for about in ("rule", "principal"):
            names = table.select([about]).append_column("day", days)
            for name, day, count in _rows(names.group_by([about, "day"]).aggregate([([], "count_all")])):
                self.denied[about, day, name or ""] += count


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


class Written:
    """The names of the files beside the page `report.html`."""

    def __init__(self, files: Files) -> None:
        stem = files.out.stem
        self.ndjson = files.out.with_name(f"{stem}-differences.ndjson")
        self.parquet = files.out.with_name(f"{stem}-differences.parquet")
        self.existing = files.out.with_name(f"{stem}-existing.ndjson")


def write_differences(batches: Iterator[pa.RecordBatch], written: Written) -> None:
    """Write a line and a row for each difference, the rows in a thread of their own. Raises
    OSError.
    """
    with (
        _whole(written.ndjson) as lines,
        _whole(written.parquet) as table,
        pq.ParquetWriter(table, PARQUET, compression="zstd", use_dictionary=REPEATED) as writer,
        ThreadPoolExecutor(1) as beside,
    ):
        waiting: list[pa.RecordBatch] = []
        writing: Future[list[pa.RecordBatch]] = beside.submit(list)
        for batch in batches:
            assert batch.column("what")[0].as_py() == DIFFERENCE
            _write_lines(lines, batch)
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= ROW_GROUP:
                writing = beside.submit(_write_rows, writer, [*writing.result(), *waiting], ROW_GROUP)
                waiting = []
        _write_rows(writer, [*writing.result(), *waiting], 0)


def write_existing(batches: Iterator[pa.RecordBatch], written: Written) -> None:
    """Write a line for each topic. Raises OSError."""
    with _whole(written.existing) as lines:
        for batch in batches:
            _write_lines(lines, batch)


def _write_lines(lines: IO[bytes], batch: pa.RecordBatch) -> None:
    texts = pc.binary_join_element_wise(batch.column("body"), "\n", "")
    _, ends, data = texts.buffers()
    lines.write(memoryview(data)[: memoryview(ends).cast("i")[len(texts)]])


def _write_rows(writer: pq.ParquetWriter, waiting: list[pa.RecordBatch], least: int) -> list[pa.RecordBatch]:
    """Write row groups of one size, however the batches came, and return what is left."""
    if not waiting:
        return []
    table = pa.Table.from_batches(waiting)
    while table.num_rows and table.num_rows >= least:
        group = table.slice(0, ROW_GROUP)
        columns: list[Any] = [group.column(field.name) for field in _COLUMNS]
        writer.write_table(
            pa.Table.from_arrays([*columns, group.column("body")], schema=PARQUET).combine_chunks(), ROW_GROUP
        )
        table = table.slice(ROW_GROUP)
    left: list[pa.RecordBatch] = table.to_batches()
    return left


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that gets its name when it is complete; an error names it."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), error.filename or str(path)) from None
    finally:
        part.unlink(missing_ok=True)

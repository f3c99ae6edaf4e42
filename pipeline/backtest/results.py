"""Turns the workers' answers into files, with every difference as NDJSON and its columns as
Parquet, and into counts.

Memory is bounded, whatever the number of differences, and the same answers give the same bytes,
however they came.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..page.files import Files, named, whole
from ..periods import DAY
from .reading import numbers_of
from .tally import Tally
from .verdicts import DifferenceKind
from .workers import OUT_ARROW, REFUSED, TALLY

LINES, ROWS, EXISTING = "differences.ndjson", "differences.parquet", "existing.ndjson"
"""The files beside the page."""
DENIED_BY = "denied_by_"
"""The beginning of the names of the counts of what is newly denied by each `rule` or `principal` on
each day.
"""
ROW_GROUP = 10_000
COUNTED = ["what", "cluster_id", "kind", "rule", "topic", "principal", "time"]
COUNTED_ROWS = 50_000
"""How many rows are counted at once."""
ON_THE_PAGE = 5_000
"""How many differences a page has room for; if there are more, each kind has the same share."""
ON_THE_PAGE_EXISTING = 1_000
PARQUET = pa.schema([field for field in OUT_ARROW if field.name not in {"what", "body"}])
DAY_MS = DAY // 1000


class Results:
    def __init__(self) -> None:
        self.tally = Tally()
        """The tally of the workers, and counts of their answers: ("rule" or "topic", kind of
        difference, name), (DENIED_BY "rule" or "principal", day since 1970, name), and of topics
        ("refused", cluster, rule).
        """
        self.shown: dict[str, list[str]] = {kind.value: [] for kind in DifferenceKind}
        """The first differences of each kind, as JSON."""
        self.refused: list[str] = []
        """The first existing topics that are refused, as JSON."""

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the tallies among the answers, and pass on the others."""
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            if batch.column("what")[-1].as_py() == TALLY:
                self.tally.add(Tally.decode(batch.column("body")[-1].as_py()))
                batch = batch.slice(0, len(batch) - 1)  # noqa: PLW2901 - a tally is behind all others
            if batch.num_rows:
                self._show(batch)
                waiting.append(batch.select(COUNTED))
                yield batch
            if sum(map(len, waiting)) >= COUNTED_ROWS:
                self._count(pa.Table.from_batches(waiting))
                waiting = []
        if waiting:
            self._count(pa.Table.from_batches(waiting))

    def differences(self) -> list[str]:
        """Return differences for the page, in the order of kinds and of the log; each kind has its
        share of the room, more if others need less.
        """
        left, shares = ON_THE_PAGE, dict[str, int]()
        for others, kind in zip(range(len(self.shown), 0, -1), sorted(self.shown, key=self._number), strict=True):
            shares[kind] = min(self._number(kind), left // others)
            left -= shares[kind]
        return [body for kind, bodies in self.shown.items() for body in bodies[: shares[kind]]]

    def _number(self, kind: str) -> int:
        return len(self.shown[kind])

    def _show(self, answers: pa.RecordBatch) -> None:
        if answers.column("what")[0].as_py() == REFUSED:
            _fill(self.refused, answers.column("body"), ON_THE_PAGE_EXISTING)
            return
        for kind, shown in self.shown.items():
            if len(shown) < ON_THE_PAGE:
                _fill(shown, answers.column("body").filter(pc.equal(answers.column("kind"), kind)), ON_THE_PAGE)

    def _count(self, answers: pa.Table) -> None:
        if answers.column("what")[0].as_py() == REFUSED:
            self._add("refused", answers, "cluster_id", "rule")
            return
        for about in ("rule", "topic"):
            self._add(about, answers, "kind", about)
        denied = answers.filter(pc.equal(answers.column("kind"), DifferenceKind.NEWLY_DENIED.value))
        denied = denied.append_column("day", pa.array(numbers_of(denied, "time") // DAY_MS))
        for about in ("rule", "principal"):
            self._add(f"{DENIED_BY}{about}", denied, "day", about)

    def _add(self, about: str, answers: pa.Table, *keys: str) -> None:
        counted = answers.group_by(list(keys)).aggregate([([], "count_all")])
        for first, second, number in zip(*counted.to_pydict().values(), strict=True):
            self.tally.counts[about, str(first), second or ""] += number


def _fill(shown: list[str], bodies: pa.Array, most: int) -> None:
    shown += bodies.slice(0, most - len(shown)).to_pylist()


def write_differences(batches: Iterable[pa.RecordBatch], files: Files) -> None:
    """Write a line and a row for each difference. Raises OSError."""
    path = files.beside(LINES)
    with (
        whole(path) as lines,
        whole(files.beside(ROWS)) as table,
        pq.ParquetWriter(table, PARQUET, compression="zstd") as writer,
        _writer(lines, path) as write,
    ):
        for group in _groups(_written(batches, write)):
            writer.write_table(group.combine_chunks())  # pages must not depend on how the rows came


def write_existing(batches: Iterable[pa.RecordBatch], files: Files) -> None:
    """Write a line for each topic. Raises OSError."""
    path = files.beside(EXISTING)
    with whole(path) as lines, _writer(lines, path) as write:
        deque(_written(batches, write), maxlen=0)


@contextmanager
def _writer(file: IO[bytes], path: Path) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Yield a function that writes a line for each row, in a thread of its own, which is one call
    behind. Raises OSError, which names `path`.
    """

    def write_lines(batch: pa.RecordBatch) -> None:
        _, ends, data = pc.binary_join_element_wise(batch.column("body"), "\n", "").buffers()
        with named(path):
            file.write(memoryview(data)[: memoryview(ends).cast("i")[len(batch)]])

    with ThreadPoolExecutor(1) as beside:
        writing: Future[Any] = beside.submit(bool)

        def write(batch: pa.RecordBatch) -> None:
            nonlocal writing
            writing.result()
            writing = beside.submit(write_lines, batch)

        yield write
        writing.result()
    with named(path):
        file.flush()


def _written(batches: Iterable[pa.RecordBatch], write: Callable[[pa.RecordBatch], None]) -> Iterator[pa.RecordBatch]:
    """Write the lines of rows, and pass on what else they hold."""
    for batch in batches:
        write(batch)
        yield batch.select(PARQUET.names)


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in groups of one size, however they came."""
    waiting = PARQUET.empty_table()
    for batch in batches:
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
        while waiting.num_rows >= ROW_GROUP:
            yield waiting.slice(0, ROW_GROUP)
            waiting = waiting.slice(ROW_GROUP)
    if waiting.num_rows:
        yield waiting

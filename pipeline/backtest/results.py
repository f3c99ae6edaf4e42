"""From the workers' answers to files: every difference as NDJSON and as Parquet, and what was
counted.

Memory is bounded, whatever the number of differences, and the same answers give the same bytes,
however they came.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..page.files import Files, whole
from ..periods import DAY
from .reading import numbers_of
from .tally import Tally
from .verdicts import Kind
from .workers import OUT_ARROW, REFUSED, REPEATED, TALLY

LINES, ROWS, EXISTING = "differences.ndjson", "differences.parquet", "existing.ndjson"
"""The files beside the page."""
DENIED_BY = "denied_by_"
"""Before `rule` or `principal`: what is newly denied by each, on each day since 1970."""
ROW_GROUP = 10_000
ON_THE_PAGE = 5_000
"""Differences that a page has room for; of each kind the same share, if there are more."""
ON_THE_PAGE_EXISTING = 1_000
PARQUET = pa.schema([*list(OUT_ARROW)[1:-1], pa.field("difference", pa.string())])


class Results:
    """The results that were read of the workers' answers."""

    def __init__(self) -> None:
        self.tally = Tally()
        """Of the workers, and of what they answered: ("rule" or "topic", kind of difference, name),
        (DENIED_BY "rule" or "principal", day, name), and of topics ("refused", cluster, rule).
        """
        self.shown: dict[str, list[str]] = {kind.value: [] for kind in Kind}
        """The first differences of each kind, as JSON."""
        self.refused: list[str] = []
        """The first existing topics that are refused, as JSON."""

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the tallies among the answers, and pass on the others."""
        for batch in batches:
            is_tally = pc.equal(batch.column("what"), TALLY)
            for body in batch.filter(is_tally).column("body").to_pylist():
                self.tally.add(Tally.decode(body))
            rest = batch.filter(pc.invert(is_tally))
            if rest.num_rows:
                self._count(pa.Table.from_batches([rest]))
                yield rest

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

    def _count(self, answers: pa.Table) -> None:
        if answers.column("what")[0].as_py() == REFUSED:
            self._add("refused", answers, "cluster_id", "rule")
            _fill(self.refused, answers, ON_THE_PAGE_EXISTING)
            return
        for about in ("rule", "topic"):
            self._add(about, answers, "kind", about)
        denied = answers.filter(pc.equal(answers.column("kind"), Kind.NEWLY_DENIED.value))
        denied = denied.append_column("day", pa.array(numbers_of(denied, "time") // DAY))
        for about in ("rule", "principal"):
            self._add(f"{DENIED_BY}{about}", denied, "day", about)
        for kind, shown in self.shown.items():
            if len(shown) < ON_THE_PAGE:
                _fill(shown, answers.filter(pc.equal(answers.column("kind"), kind)), ON_THE_PAGE)

    def _add(self, about: str, answers: pa.Table, *keys: str) -> None:
        counted = answers.group_by(list(keys)).aggregate([([], "count_all")])
        for first, second, number in zip(*counted.to_pydict().values(), strict=True):
            self.tally.counts[about, str(first), second or ""] += number


def _fill(shown: list[str], answers: pa.Table, most: int) -> None:
    shown += answers.column("body").slice(0, most - len(shown)).to_pylist()


def write_differences(batches: Iterator[pa.RecordBatch], files: Files) -> None:
    """Write a line and a row for each difference, the rows in a thread of their own. Raises
    OSError.
    """
    with (
        whole(files.beside(LINES)) as lines,
        whole(files.beside(ROWS)) as table,
        pq.ParquetWriter(table, PARQUET, compression="zstd", use_dictionary=REPEATED) as writer,
        ThreadPoolExecutor(1) as beside,
    ):
        writing: Future[Any] = beside.submit(bool)
        for group in _groups(_lined(batches, lines)):
            writing.result()
            rows = group.drop_columns("what").rename_columns(PARQUET.names)
            writing = beside.submit(writer.write_table, rows.combine_chunks())
        writing.result()


def write_existing(batches: Iterator[pa.RecordBatch], files: Files) -> None:
    """Write a line for each topic. Raises OSError."""
    with whole(files.beside(EXISTING)) as lines:
        for _ in _lined(batches, lines):
            pass


def _lined(batches: Iterator[pa.RecordBatch], lines: IO[bytes]) -> Iterator[pa.RecordBatch]:
    """Write a line for each row, and pass the rows on."""
    for batch in batches:
        _, ends, data = pc.binary_join_element_wise(batch.column("body"), "\n", "").buffers()
        lines.write(memoryview(data)[: memoryview(ends).cast("i")[len(batch)]])
        yield batch


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in groups of one size, however they came."""
    waiting = OUT_ARROW.empty_table()
    for batch in batches:
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
        while waiting.num_rows >= ROW_GROUP:
            yield waiting.slice(0, ROW_GROUP)
            waiting = waiting.slice(ROW_GROUP)
    if waiting.num_rows:
        yield waiting

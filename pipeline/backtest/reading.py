"""Reads the events of a slice from the table's files, for workers.

Memory holds one piece, whatever the length of the history. An unreadable file raises an error that
says what to do.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ...audit.event import AuditEvent, UnreadableLineError, decode
from ..ingest.columns import LINE
from ..location import File
from ..schemas import Table
from .encoded import Numbers, projection
from .slices import Piece

SCHEMA = Table.EVENTS.in_files
POSITION = ("epoch", "sequence")
NOTHING = -1
"""The number that stands for null in a column of numbers."""


class UnreadableTableError(Exception):
    """A table cannot be read; the message is a sentence that says why."""


def columns_of(
    files: Sequence[str], schema: pa.Schema, columns: Sequence[str], wanted: pc.Expression | None = None
) -> pa.Table:
    """Read columns of the rows that are `wanted`, or of all rows. Raises UnreadableTableError."""
    with reading():
        return pa.concat_tables(
            opened(file, schema).to_table(list(columns), filter=wanted, use_threads=False) for file in files
        )


def opened(file: str, schema: pa.Schema) -> ds.Dataset:
    """Open a file of a table, given by its path or address. Raises OSError."""
    found = File.parse(file)
    return ds.dataset(found.name, schema=schema, filesystem=found.folder.filesystem(), format="parquet")


@contextmanager
def reading(file: str = "") -> Iterator[None]:
    """Raise UnreadableTableError for whatever goes wrong with files in the block, one of which is
    named if Arrow does not do so.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise UnreadableTableError(
            f"The tables changed during the run ({error}): run it again. If this happens again, `minicontroller pipeline ingest --anew` rebuilds the tables."
        ) from None
    except (OSError, pa.ArrowException) as error:
        named = "" if file in str(error) else f"{file}: "
        raise UnreadableTableError(f"The tables cannot be read: {named}{error}") from None


def numbers_of(table: pa.Table, name: str) -> Numbers:
    """Return a column as numbers, with NOTHING for null; times are microseconds since 1970."""
    numbers: Numbers = pc.fill_null(table.column(name).cast(pa.int64()), NOTHING).to_numpy()
    return numbers


def tables_of(pieces: Iterable[Piece], columns: Collection[str] = ()) -> Iterator[pa.Table]:
    """Yield the events of each piece in order, with these columns as `encoded.projection` has them.
    Raises UnreadableTableError.
    """
    groups = _Groups(projection({*POSITION, LINE, *columns}))
    for piece in pieces:
        yield _in_order(pa.concat_tables(_cut(table, piece) for table in groups.of(piece)))


class _Groups:
    """Groups of rows as files have them. Each is read once and as a whole, though it may have parts
    of several consecutive pieces: that takes a fraction of the time of a filter.
    """

    def __init__(self, wanted: Mapping[str, pc.Expression]) -> None:
        self._wanted = dict(wanted)
        self._files: dict[str, ds.ParquetFileFragment] = {}
        self._read: dict[tuple[str, int], pa.Table] = {}

    def of(self, piece: Piece) -> Sequence[pa.Table]:
        """Return the groups that may have events of a piece. Raises UnreadableTableError."""
        with reading():
            self._read = {key: table for file in piece.files for key, table in self._of_file(file, piece)}
        return tuple(self._read.values())

    def _of_file(self, file: str, piece: Piece) -> Iterator[tuple[tuple[str, int], pa.Table]]:
        if file not in self._files:
            [self._files[file]] = opened(file, SCHEMA).get_fragments()
        for group in self._files[file].split_by_row_group(_within(piece), SCHEMA):
            key = file, group.row_groups[0].id
            known = self._read.get(key)
            yield key, group.to_table(SCHEMA, columns=self._wanted, use_threads=False) if known is None else known


def _cut(table: pa.Table, piece: Piece) -> pa.Table:
    """Return the events of a piece, without a copy where they lie together."""
    epochs, sequences = (table.column(name).to_numpy() for name in POSITION)
    (first_epoch, first), (last_epoch, last) = piece.first, piece.last
    is_within = (epochs > first_epoch) | ((epochs == first_epoch) & (sequences >= first))
    is_within &= (epochs < last_epoch) | ((epochs == last_epoch) & (sequences <= last))
    rows = np.flatnonzero(is_within)
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return table.slice(rows[0], len(rows))
    return table.take(pa.array(rows))


def _in_order(table: pa.Table) -> pa.Table:
    epochs, sequences = (table.column(name).to_numpy() for name in POSITION)
    order = np.lexsort((sequences, epochs))
    return table if (order[1:] > order[:-1]).all() else table.take(pa.array(order))


def lines_of(table: pa.Table) -> Iterator[memoryview]:
    """Yield the lines of events without a copy of their text."""
    for texts in filter(len, table.column(LINE).chunks):
        _, begins, data = texts.buffers()
        ends = memoryview(begins).cast("i")[texts.offset : texts.offset + len(texts) + 1]
        text = memoryview(data)
        yield from (text[begin:end] for begin, end in pairwise(ends))


def decoded(line: memoryview) -> AuditEvent:
    """Decode a line of the table. Raises UnreadableTableError."""
    try:
        return decode(line)
    except UnreadableLineError as error:
        raise UnreadableTableError(f"The table of events holds a line that is {error}.") from None


def _within(piece: Piece) -> pc.Expression:
    epoch, sequence = map(pc.field, POSITION)
    (first_epoch, first), (last_epoch, last) = piece.first, piece.last
    begun = (epoch > first_epoch) | ((epoch == first_epoch) & (sequence >= first))
    return begun & ((epoch < last_epoch) | ((epoch == last_epoch) & (sequence <= last)))

"""What workers read of the tables: a slice's events, from the files where they lie.

Rule: memory is that of one piece, whatever the length of the history and however its files lie.
What is wrong with a file is a sentence.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ...audit.event import AuditEvent, UnreadableLineError, decode
from ..ingest.barriers import Numbers
from ..ingest.columns import LINE
from ..schemas import Table
from .slices import Piece

PLACE = ("epoch", "sequence")
NOTHING = -1
"""In the place of a null among numbers."""


class UnreadableTableError(Exception):
    """A table cannot be read; the message is a sentence that says why."""


def columns_of(
    files: Sequence[str], schema: pa.Schema, columns: Sequence[str], wanted: pc.Expression | None = None
) -> pa.Table:
    """Read columns of the rows that are `wanted`, or of all rows. Raises UnreadableTableError."""
    try:
        dataset = ds.dataset(list(files), schema=schema, format="parquet")
        return dataset.to_table(list(columns), filter=wanted, use_threads=False)
    except FileNotFoundError as error:
        raise UnreadableTableError(f"The tables were changed meanwhile ({error}): run it again.") from None
    except (OSError, pa.ArrowException) as error:
        raise UnreadableTableError(f"The tables cannot be read: {error}") from None


def numbers_of(table: pa.Table, name: str) -> Numbers:
    """Return a column as numbers, with NOTHING for null; times are microseconds since 1970."""
    numbers: Numbers = pc.fill_null(table.column(name).cast(pa.int64()), NOTHING).to_numpy()
    return numbers


def events(pieces: Iterable[Piece]) -> Iterator[tuple[AuditEvent, memoryview]]:
    """Yield the events of the pieces in order, each with its line. Raises UnreadableTableError."""
    for piece in pieces:
        for line in _lines(_read(piece)):
            try:
                event = decode(line)
            except UnreadableLineError as error:
                raise UnreadableTableError(f"The table of events holds a line that is {error}.") from None
            yield event, line


def _read(piece: Piece) -> pa.ChunkedArray:
    """Read the lines of a piece, in their order."""
    table = columns_of(piece.files, Table.EVENTS.in_files, [*PLACE, LINE], _within(piece))
    epochs, sequences = (table.column(name).to_numpy() for name in PLACE)
    order = np.lexsort((sequences, epochs))
    if (order[1:] > order[:-1]).all():
        return table.column(LINE)
    return table.column(LINE).take(pa.array(order))


def _within(piece: Piece) -> pc.Expression:
    epoch, sequence = map(pc.field, PLACE)
    (first_epoch, first), (last_epoch, last) = piece.first, piece.last
    begun = (epoch > first_epoch) | ((epoch == first_epoch) & (sequence >= first))
    return begun & ((epoch < last_epoch) | ((epoch == last_epoch) & (sequence <= last)))


def _lines(column: pa.ChunkedArray) -> Iterator[memoryview]:
    """Yield the lines of a column without a copy of their text."""
    for texts in filter(len, column.chunks):
        _, begins, data = texts.buffers()
        ends = memoryview(begins).cast("i")[texts.offset : texts.offset + len(texts) + 1]
        text = memoryview(data)
        yield from (text[begin:end] for begin, end in pairwise(ends))

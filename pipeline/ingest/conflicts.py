"""Finds two different events with the same position in the log.

It compares each event that a batch left out with the stored event of the same sequence number.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ...audit.event import decode
from ..database import database
from ..datafiles import DataFile, dataset, of_clusters, unreadable
from ..location import Location
from ..schemas import Table

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

Position = tuple[int, int]
"""An event's epoch and sequence."""


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
    """Return the lines of these positions; a position may have several."""
    epochs, sequences = (list(set(numbers)) for numbers in zip(*positions, strict=True))
    wanted = pc.field("epoch").isin(epochs) & pc.field("sequence").isin(sequences)
    found: dict[Position, list[str]] = {}
    for row in events.to_table(list(COLUMNS), filter=wanted, batch_size=ROWS, use_threads=False).to_pylist():
        position = row["epoch"], row["sequence"]
        if position in positions:
            found.setdefault(position, []).append(row["event"])
    return found

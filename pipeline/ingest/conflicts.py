"""Two different events at one place in the log.

Rule: only what was left out because its place is taken is looked at, and only against what is at
that place.
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
"""How many bytes of lines are compared at once, unless one place has more: some lines have 16 MB.
"""
WRITTEN_OTHERWISE = """
    SELECT epoch, sequence, sum(one.bytes + other.bytes) OVER (ORDER BY epoch, sequence) // $portion AS portion
    FROM repeated AS one JOIN there AS other USING (epoch, sequence)
    WHERE one.hash != other.hash ORDER BY portion
"""
ROWS = 1_000

Place = tuple[int, int]
"""An event's epoch and sequence."""


class Compared(NamedTuple):
    """Files of one cluster: those with events that were left out, and those of the table that may
    have the same places.
    """

    cluster_id: str
    repeated: list[DataFile]
    there: list[DataFile]


def compared(repeated: Sequence[DataFile], there: Sequence[DataFile]) -> list[Compared]:
    """Say which files are to be compared, cluster by cluster."""
    known = of_clusters(there)
    return [
        Compared(cluster_id, files, [each for each in known[cluster_id] if any(_share(each, file) for file in files)])
        for cluster_id, files in of_clusters(repeated).items()
    ]


def _share(one: DataFile, other: DataFile) -> bool:
    """Whether two files may hold the same place, as far as epochs tell."""
    (low, high), (other_low, other_high) = ((int(each.low["epoch"]), int(each.high["epoch"])) for each in (one, other))
    return low <= other_high and other_low <= high


def differing(piece: Compared, tables: Location) -> list[tuple[str, int, int]]:
    """Return the places (cluster, epoch, sequence) at which the files hold different events: one
    event may be written in several ways. Raises OSError.
    """
    both = [dataset(tables, Table.EVENTS, files) for files in (piece.repeated, piece.there)]
    found: list[Place] = []
    with database() as connection:
        try:
            for name, some in zip(("repeated", "there"), both, strict=True):
                connection.register(name, pa.RecordBatchReader.from_batches(HASHED, _hashed(some)))
            suspected = connection.execute(WRITTEN_OTHERWISE, {"portion": PORTION_BYTES}).fetchall()
            for _, portion in groupby(suspected, key=itemgetter(2)):
                places = {(epoch, sequence) for epoch, sequence, _ in portion}
                repeated, there = (_lines(some, places) for some in both)
                found += [
                    place
                    for place, lines in repeated.items()
                    if any(decode(one) != decode(other) for one in lines for other in there[place])
                ]
        except (duckdb.InvalidInputException, pa.ArrowInvalid) as error:
            raise unreadable(tables, Table.EVENTS, [*piece.repeated, *piece.there], error) from None
    return sorted((piece.cluster_id, *place) for place in found)


def _hashed(events: ds.Dataset) -> Iterator[pa.RecordBatch]:
    """Yield, in place of lines, what is compared of them first."""
    for batch in events.to_batches(list(COLUMNS), batch_size=ROWS, use_threads=False):
        lines = batch.column("event")
        hashes = pa.array([hash(line.as_buffer().to_pybytes()) for line in lines], pa.int64())
        yield pa.RecordBatch.from_arrays(
            [*batch.columns[:2], hashes, pc.binary_length(lines).cast(pa.int64())], schema=HASHED
        )


def _lines(events: ds.Dataset, places: Collection[Place]) -> Mapping[Place, list[str]]:
    """Return the lines at these places."""
    epochs, sequences = (list(set(numbers)) for numbers in zip(*places, strict=True))
    wanted = pc.field("epoch").isin(epochs) & pc.field("sequence").isin(sequences)
    found: dict[Place, list[str]] = {}
    for row in events.to_table(list(COLUMNS), filter=wanted, batch_size=ROWS, use_threads=False).to_pylist():
        place = row["epoch"], row["sequence"]
        if place in places:
            found.setdefault(place, []).append(row["event"])
    return found

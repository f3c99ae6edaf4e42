"""Two different events at one place in the log.

Rule: only what was left out because its place is taken is looked at, and only against what is at
that place.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from ...audit.event import decode
from ..delta import DataFile, dataset, unreadable
from ..location import Location
from ..schemas import Table
from ..spreading import by_workers

COLUMNS = ("epoch", "sequence", "event")
HASHED = pa.schema([("epoch", pa.int32()), ("sequence", pa.int64()), ("hash", pa.int64()), ("bytes", pa.int64())])
WRITTEN_OTHERWISE = """
    SELECT epoch, sequence, one.bytes + other.bytes
    FROM repeated AS one JOIN there AS other USING (epoch, sequence)
    WHERE one.hash != other.hash
"""
MEMORY = "512MB"
ROWS = 1_000
PORTION_BYTES = 64 << 20
"""Of lines that are compared at once, or those of one place: some have 16 MB."""

Place = tuple[int, int]
"""Epoch and sequence."""


class Compared(NamedTuple):
    """Files of one cluster: of what was left out, and of the table where it may lie."""

    cluster_id: str
    repeated: list[DataFile]
    there: list[DataFile]


def conflicts(
    spark: SparkSession, tables: Location, repeated: Sequence[DataFile], there: Sequence[DataFile]
) -> list[tuple[str, int, int]]:
    """Find the places (cluster, epoch, sequence) at which there are two different events. Raises
    OSError.
    """
    found = by_workers(spark, partial(differing, tables=tables), compared(repeated, there), tables)
    return [place for places in found for place in places]


def compared(repeated: Sequence[DataFile], there: Sequence[DataFile]) -> list[Compared]:
    """Say which files are to be compared, cluster by cluster."""
    return [
        Compared(
            cluster_id, files, [each for each in there if each.cluster_id == cluster_id and _may_share(each, files)]
        )
        for cluster_id, files in _by_cluster(repeated).items()
    ]


def differing(piece: Compared, tables: Location) -> list[tuple[str, int, int]]:
    """Return the places at which the files hold different events."""
    both = [dataset(tables, Table.EVENTS, files) for files in (piece.repeated, piece.there)]
    try:
        with duckdb.connect(config={"memory_limit": MEMORY, "threads": 1}) as connection:
            for name, some in zip(("repeated", "there"), both, strict=True):
                connection.register(name, pa.RecordBatchReader.from_batches(HASHED, _hashed(some)))
            suspected = connection.execute(WRITTEN_OTHERWISE).fetchall()
        found = [
            place for portion in _portions(suspected) for place in _different(*(_lines(some, portion) for some in both))
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


def _portions(suspected: Sequence[tuple[int, int, int]]) -> Iterator[set[Place]]:
    """Divide places, each with the bytes of its lines."""
    portion: set[Place] = set()
    left = PORTION_BYTES
    for epoch, sequence, size in sorted(suspected):
        if portion and size > left:
            yield portion
            portion, left = set(), PORTION_BYTES
        portion.add((epoch, sequence))
        left -= size
    if portion:
        yield portion


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


def _different(repeated: Mapping[Place, list[str]], there: Mapping[Place, list[str]]) -> Iterator[Place]:
    for place, lines in repeated.items():
        if any(_differ(one, other) for one in lines for other in there[place]):
            yield place


def _differ(one: str, other: str) -> bool:
    """Whether two lines hold different events: one event may be written in several ways."""
    return decode(one) != decode(other)


def _by_cluster(files: Sequence[DataFile]) -> Mapping[str, list[DataFile]]:
    found: dict[str, list[DataFile]] = {}
    for file in files:
        assert file.cluster_id is not None
        found.setdefault(file.cluster_id, []).append(file)
    return found


def _may_share(file: DataFile, others: Sequence[DataFile]) -> bool:
    """Whether a file may hold a place that one of the others holds, as far as epochs tell."""
    return any(
        int(file.low["epoch"]) <= int(other.high["epoch"]) and int(other.low["epoch"]) <= int(file.high["epoch"])
        for other in others
    )

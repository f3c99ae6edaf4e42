"""Two different events at one place in the log.

Rule: only what was left out because its place is taken is looked at, and only against what is at
that place.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import duckdb
from pyspark.sql import SparkSession

from ...audit.event import decode
from ..delta import DataFile, dataset, unreadable
from ..location import Location
from ..schemas import Table
from ..spreading import by_workers

PLACE = ("epoch", "sequence")
AT_THE_SAME_PLACE = """
    SELECT epoch, sequence, one.event, other.event
    FROM repeated AS one JOIN there AS other USING (epoch, sequence)
    WHERE one.event != other.event
"""
MEMORY = "512MB"


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
    with duckdb.connect(config={"memory_limit": MEMORY, "threads": 1}) as connection:
        for name, files in (("repeated", piece.repeated), ("there", piece.there)):
            connection.register(name, dataset(tables, Table.EVENTS, files))
        found = set[tuple[str, int, int]]()
        try:
            rows = connection.execute(AT_THE_SAME_PLACE)
            while some := rows.fetchmany(1000):
                found.update((piece.cluster_id, epoch, sequence) for epoch, sequence, *lines in some if _differ(*lines))
        except duckdb.InvalidInputException as error:
            raise unreadable(tables, Table.EVENTS, [*piece.repeated, *piece.there], error) from None
    return sorted(found)


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

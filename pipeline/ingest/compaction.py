"""Many small files made into few large ones: events sorted by epoch and sequence, mentions as they lie in small ones.

Rule: a file is merged with others of its size only, so however often something small is added, an event is written anew a few times at
most. Nobody sees it in the rows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from ..tables import Table
from .mentions import FOLDER, MENTIONS, SORTED_BY
from .state import STAGING, Ledger, copied

LARGE_BYTES = 64 << 20
"""Files of this size are left alone."""
TARGET_BYTES = 128 << 20
ROW_GROUP_BYTES = 4 << 20
"""As in small files, about: see `outputs.ROW_GROUP`."""
AT_ONCE = 8
"""So many files of about one size become one of the next size."""

EVENTS = StructType([each for each in Table.EVENTS.schema if each.name not in Table.EVENTS.partitioned_by])


class Kind(NamedTuple):
    """What files hold."""

    schema: StructType
    order: tuple[str, ...]


KINDS = {
    Table.EVENTS.value: Kind(EVENTS, ("epoch", "sequence")),
    FOLDER: Kind(MENTIONS, (SORTED_BY,)),
}


class Merge(NamedTuple):
    """Files of one folder that become fewer."""

    folder: str
    """Relative to that of the tables, like the files."""
    files: list[str]
    size: int
    kind: "Kind"


def merges(tables: Path) -> Iterator[Merge]:
    """What there is to do."""
    for root, kind in KINDS.items():
        for folder in sorted({path.parent for path in (tables / root).rglob("*.parquet")}):
            tiers: dict[int, list[tuple[Path, int]]] = {}
            for path in sorted(folder.iterdir()):
                size = path.stat().st_size
                if path.suffix == ".parquet" and size < LARGE_BYTES:
                    tiers.setdefault(_tier(size), []).append((path, size))
            for files in tiers.values():
                if len(files) >= AT_ONCE:
                    names = [str(path.relative_to(tables)) for path, _ in files]
                    yield Merge(str(folder.relative_to(tables)), names, sum(size for _, size in files), kind)


def _tier(size: int) -> int:
    tier = 0
    while size >= AT_ONCE:
        size //= AT_ONCE
        tier += 1
    return tier


def compact(spark: SparkSession, ledger: Ledger) -> int:
    """How many files there are less. Raises OSError and Spark's errors."""
    less = 0
    for merge in list(merges(ledger.tables)):
        staged = f"{STAGING}/merged"
        count = max(1, round(merge.size / TARGET_BYTES))
        schema, order = merge.kind
        rows = spark.read.schema(schema).parquet(*(str(ledger.tables / file) for file in merge.files))
        parts = rows.repartitionByRange(count, *order) if count > 1 else rows.coalesce(1)
        writer = (
            parts.sortWithinPartitions(*order).write.mode("overwrite").option("parquet.block.size", ROW_GROUP_BYTES)
        )
        writer.parquet(str(ledger.tables / staged))
        state = copied(ledger.state)
        made = sorted(path.name for path in (ledger.tables / staged).glob("*.parquet"))
        moves = [
            (f"{staged}/{name}", f"{merge.folder}/{state.changes:08}-merged-{number}.parquet")
            for number, name in enumerate(made)
        ]
        ledger.change(state, moves=moves, removes=merge.files)
        less += len(merge.files) - len(made)
    return less

"""Many small files made into few large ones.

Rule: a file is merged with others of its size only, so however often something small is added, an
event is written anew a few times at most. Nobody sees it in the rows. Rows are sorted as far as
they are held in memory at once: that is enough for who needs some of them.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ..spreading import by_workers
from ..tables import Table
from . import mentions, rows
from .mentions import FOLDER, SORTED_BY
from .outputs import FILE_BYTES, ROW_GROUP, Outputs
from .report import StagedFile
from .state import STAGING, Ledger, copied

LARGE_BYTES = FILE_BYTES // 2
"""Files of this size are left alone."""
AT_ONCE = 8
"""So many files of about one size become one of the next size."""


class Layout(NamedTuple):
    """The columns of a folder's files, and those by which they are sorted."""

    schema: pa.Schema
    order: tuple[str, ...]


LAYOUTS: Mapping[str, Layout] = {
    Table.EVENTS.value: Layout(rows.SCHEMA, ("epoch", "sequence")),
    FOLDER: Layout(mentions.SCHEMA, SORTED_BY),
}


class Merge(NamedTuple):
    """Files of one folder that become fewer."""

    folder: str
    """Relative to that of the tables, like the files."""
    files: list[str]
    layout: Layout


def merges(tables: Path) -> Iterator[Merge]:
    """Yield the merges of small files that the tables need."""
    for root, layout in LAYOUTS.items():
        for folder in sorted({path.parent for path in (tables / root).rglob("*.parquet")}):
            tiers: dict[int, list[str]] = {}
            for path in sorted(folder.iterdir()):
                size = path.stat().st_size
                if path.suffix == ".parquet" and size < LARGE_BYTES:
                    tiers.setdefault(_tier(size), []).append(str(path.relative_to(tables)))
            for files in tiers.values():
                if len(files) >= AT_ONCE:
                    yield Merge(str(folder.relative_to(tables)), files, layout)


def _tier(size: int) -> int:
    tier = 0
    while size >= AT_ONCE:
        size //= AT_ONCE
        tier += 1
    return tier


def compact(spark: SparkSession, ledger: Ledger) -> int:
    """Merge small files, and return how many fewer files there are. Raises OSError and Spark's
    errors.
    """
    wanted = list(merges(ledger.tables))
    found = by_workers(spark, partial(merged, tables=ledger.tables), wanted, ledger.tables)
    made = [file for files in found for file in files]
    if not wanted:
        return 0
    state = copied(ledger.state)
    moves = [
        (file.path, f"{file.target}/{state.changes:08}-merged-{number}.parquet") for number, file in enumerate(made)
    ]
    removes = [file for merge in wanted for file in merge.files]
    ledger.change(state, moves=moves, removes=removes)
    return len(removes) - len(made)


def merged(merge: Merge, tables: Path) -> list[StagedFile]:
    """Write the merged files, which then lie ready. Raises OSError."""
    with Outputs(tables, f"{STAGING}/merged") as outputs:
        for file in merge.files:
            with pq.ParquetFile(tables / file) as found:
                for batch in found.iter_batches(ROW_GROUP):
                    outputs.write(merge.folder, with_columns(batch, merge.layout.schema), merge.layout.order)
    return outputs.files


def with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the columns of a schema. A column that their file does not have is null,
    because the file is older than it.
    """
    there = set(batch.schema.names)
    columns = [
        batch.column(field.name).cast(field.type) if field.name in there else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

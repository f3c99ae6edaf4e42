"""Many small files made into few large ones.

Rule: a file is merged with others of its size only, so however often something small is added, an
event is written anew a few times at most. Nobody sees it in the rows. Rows are sorted as far as
they are held in memory at once: that is enough for who needs some of them.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ..spreading import by_workers
from ..tables import Table
from .mentions import FOLDER, SORTED_BY
from .outputs import FILE_BYTES, ROW_GROUP, Outputs
from .report import StagedFile
from .state import STAGING, Ledger, copied

LARGE_BYTES = FILE_BYTES // 2
"""Files of this size are left alone."""
AT_ONCE = 8
"""So many files of about one size become one of the next size."""
ORDER: Mapping[str, tuple[str, ...]] = {Table.EVENTS.value: ("epoch", "sequence"), FOLDER: SORTED_BY}
"""By folder, the columns by which its files are sorted."""


class Merge(NamedTuple):
    """Files of one folder that become fewer."""

    folder: str
    """Relative to that of the tables, like the files."""
    files: list[str]
    order: tuple[str, ...]


def merges(tables: Path) -> Iterator[Merge]:
    """Yield the merges of small files that the tables need."""
    for root, order in ORDER.items():
        for folder in sorted({path.parent for path in (tables / root).rglob("*.parquet")}):
            tiers: dict[int, list[str]] = {}
            for path in sorted(folder.iterdir()):
                size = path.stat().st_size
                if path.suffix == ".parquet" and size < LARGE_BYTES:
                    tiers.setdefault(_tier(size), []).append(str(path.relative_to(tables)))
            for files in tiers.values():
                if len(files) >= AT_ONCE:
                    yield Merge(str(folder.relative_to(tables)), files, order)


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
            with pq.ParquetFile(tables / file) as rows:
                for batch in rows.iter_batches(ROW_GROUP):
                    outputs.write(merge.folder, batch, merge.order)
    return outputs.files

"""Parquet files that lie ready for their tables.

Rule: each has a name of its own and belongs to nobody until it is moved to its place. What waits to
be written is bounded.
"""

from collections import OrderedDict
from pathlib import Path
from typing import Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from .report import StagedFile

COMPRESSION = "zstd"
MAX_OPEN = 16
WAITING_BYTES = 64 << 20
FILE_BYTES = 128 << 20
"""A file that has come to so much is followed by another one."""
ROW_GROUP = 10_000
"""Rows of a group at most: so that who needs some places of the log, or some buckets, reads little
else.
"""


class Outputs:
    """Writes rows to Parquet files, one for each folder that they belong to, or more where there
    are many folders or rows.
    """

    def __init__(self, tables: Path, staging: str) -> None:
        self._tables = tables
        self._staging = staging
        self._open: OrderedDict[str, _Output] = OrderedDict()
        self.files: list[StagedFile] = []
        """Complete after the `with` block."""

    def __enter__(self) -> Self:
        (self._tables / self._staging).mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        while self._open:
            _, output = self._open.popitem(last=False)
            if kind is None:
                self.files.append(output.finish())

    def write(self, target: str, batch: pa.RecordBatch, sorted_by: tuple[str, ...] = ()) -> None:
        """Write rows to the folder `target`, relative to that of the tables, sorted by columns as
        far as they are written at once.
        """
        output = self._open.get(target)
        if output is None:
            if len(self._open) >= MAX_OPEN:
                _, oldest = self._open.popitem(last=False)
                self.files.append(oldest.finish())
            output = self._open[target] = _Output(self._tables, self._staging, target, batch.schema, sorted_by)
        self._open.move_to_end(target)
        output.write(batch)
        if output.size >= FILE_BYTES:
            self.files.append(self._open.pop(target).finish())


class _Output:
    def __init__(self, tables: Path, staging: str, target: str, schema: pa.Schema, sorted_by: tuple[str, ...]) -> None:
        self._name = f"{staging}/{uuid4().hex}.parquet"
        self._path = tables / self._name
        self._target = target
        self._sorted_by = sorted_by
        self._writer = pq.ParquetWriter(self._path, schema, compression=COMPRESSION)
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._bytes += batch.nbytes
        self._rows += batch.num_rows
        if self._bytes >= WAITING_BYTES:
            self._flush()

    @property
    def size(self) -> int:
        """How many bytes the file has so far."""
        return self._path.stat().st_size

    def _flush(self) -> None:
        if self._batches:
            table = pa.Table.from_batches(self._batches)
            if self._sorted_by:
                table = table.sort_by([(name, "ascending") for name in self._sorted_by])
            self._writer.write_table(table, ROW_GROUP)
        self._batches, self._bytes = [], 0

    def finish(self) -> StagedFile:
        self._flush()
        self._writer.close()
        return StagedFile(self._name, self._target, self._rows)

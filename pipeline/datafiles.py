"""The files of tables, which are Parquet's: read column by column, and written under names of their
own until a commit names them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from .location import Location, advice, output_stream, reason
from .schemas import CLUSTER, Table

COMPRESSION = "zstd"
ROW_GROUP = 20_000
"""About how many rows a row group has, so that a reader of some places of the log reads little
else.
"""
WAITING_BYTES = 128 << 20
"""How many bytes of rows may wait to be written until there are enough for a group."""
TARGET_BYTES = 64 << 20
"""How many bytes a file gets before another one is begun."""
MAX_OPEN = 16
"""How many files, each of another cluster, are written at the same time."""
ANEW = "if this happens again, `minicontroller pipeline ingest --anew` rebuilds the tables"


class DataFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of a table: its path below the table's folder, and its size in bytes. Its statistics
    have the lowest and highest value of some columns, times in microseconds since 1970; a column of
    which nothing is known is missing.
    """

    path: str
    cluster_id: str | None
    rows: int
    size: int
    low: dict[str, int | str] = {}
    high: dict[str, int | str] = {}
    nulls: dict[str, int] = {}
    """How many rows have no value, by column."""


def of_clusters(files: Iterable[DataFile]) -> Mapping[str, list[DataFile]]:
    """Divide files of a partitioned table by cluster id, in the order of the ids."""
    found: dict[str, list[DataFile]] = {}
    for file in files:
        assert file.cluster_id is not None
        found.setdefault(file.cluster_id, []).append(file)
    return dict(sorted(found.items()))


def dataset(tables: Location, table: Table, files: Sequence[DataFile], schema: pa.Schema | None = None) -> ds.Dataset:
    """Open files of a table, with all columns of its schema: null where a file is older than a
    column. Another schema may have texts as dictionaries, as which they are stored.
    """
    wanted = schema or table.schema
    form = ds.ParquetFileFormat(
        dictionary_columns=[field.name for field in wanted if pa.types.is_dictionary(field.type)]
    )
    filesystem = tables.child(table.value).filesystem()
    fragments = []
    for file in files:
        partition = None if file.cluster_id is None else ds.field(CLUSTER) == file.cluster_id
        fragments.append(form.make_fragment(file.path, filesystem, partition))
    return ds.FileSystemDataset(fragments, wanted, form, filesystem)


def batches(
    tables: Location, table: Table, files: Sequence[DataFile], names: Sequence[str], **options: Any
) -> Iterator[pa.RecordBatch]:
    """Read columns of some files of a table. Raises OSError, which names the file."""
    found = dataset(tables, table, files)
    try:
        yield from found.to_batches(names, batch_readahead=1, fragment_readahead=1, **options)
    except (OSError, pa.ArrowException) as error:
        raise unreadable(tables, table, files, error) from None


def unreadable(tables: Location, table: Table, files: Sequence[DataFile], error: Exception) -> OSError:
    """Return the error that says which of some files of a table cannot be read, and what to do."""
    folder = tables.child(table.value)
    path = next((file.path for file in files if not _has_end(folder, file)), files[0].path)
    text = advice(error) or f"it is gone or broken ({reason(error)}): {ANEW}"
    return OSError(0, text, folder.child(path).uri)


def _has_end(folder: Location, file: DataFile) -> bool:
    try:
        pq.read_metadata(file.path, filesystem=folder.filesystem())
    except (OSError, pa.ArrowException):
        return False
    return True


class NewFile:
    """A file on its way into a table: rows are written, then `finish` says what to commit."""

    def __init__(self, tables: Location, table: Table, cluster_id: str | None = None) -> None:
        """Begin a file; the rows have the columns `table.in_files`. Raises OSError."""
        self._cluster_id = cluster_id
        self._path = f"{uuid4().hex}.parquet"
        self._stream = output_stream(tables, f"{table.value}/{self._path}")
        self._writer = pq.ParquetWriter(
            self._stream, table.in_files, compression=COMPRESSION, write_statistics=list(table.statistics)
        )
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._written_rows = 0
        self._low: dict[str, int | str] = {}
        self._high: dict[str, int | str] = {}
        self._nulls = dict.fromkeys(table.statistics, 0)
        self.waiting_bytes = 0
        """How many bytes of rows wait until there are enough of them for a group."""

    def write(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self.waiting_bytes += rows.nbytes
        if self._waiting_rows >= ROW_GROUP or self.waiting_bytes >= WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._waiting_rows:
            rows = pa.Table.from_batches(self._waiting)
            groups = max(1, round(self._waiting_rows / ROW_GROUP))
            self._writer.write_table(rows, -(-self._waiting_rows // groups))
            self._note(rows)
        self._waiting, self._waiting_rows, self.waiting_bytes = [], 0, 0

    def _note(self, rows: pa.Table) -> None:
        self._written_rows += rows.num_rows
        for name, nulls in self._nulls.items():
            low, high = pc.min_max(numbers(rows[name])).as_py().values()
            self._nulls[name] = nulls + rows[name].null_count
            if low is not None:
                self._low[name] = min(low, self._low.get(name, low))
                self._high[name] = max(high, self._high.get(name, high))

    @property
    def size(self) -> int:
        return int(self._stream.tell())

    def __del__(self) -> None:
        """Leave a file that was given up: the library would try to write its end, and complain."""
        with suppress(AttributeError):  # it was not even begun
            self._writer.is_open = False

    def finish(self) -> DataFile:
        self.flush()
        self._writer.close()
        size = self.size
        self._stream.close()
        return DataFile(self._path, self._cluster_id, self._written_rows, size, self._low, self._high, self._nulls)


class NewFiles:
    """Files on their way into a table, of each cluster its own; those that are `done` are to be
    committed.
    """

    def __init__(self, tables: Location, table: Table, done: list[DataFile]) -> None:
        self._tables = tables
        self._table = table
        self._done = done
        self._open: dict[str | None, NewFile] = {}

    def write_by_cluster(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        clusters = rows.column(CLUSTER).dictionary_encode()
        rows = rows.select(self._table.in_files.names)
        for code, cluster_id in enumerate(clusters.dictionary.to_pylist()):
            own = clusters.indices.to_numpy() == code
            self.write(cluster_id, rows if own.all() else rows.filter(pa.array(own)))

    def write(self, cluster_id: str | None, rows: pa.RecordBatch) -> None:
        """Write rows of a cluster, with the columns of the table's files. Raises OSError."""
        if not rows.num_rows:
            return
        if cluster_id not in self._open:
            if len(self._open) >= MAX_OPEN:
                self._finish(next(iter(self._open)))
            self._open[cluster_id] = NewFile(self._tables, self._table, cluster_id)
        self._open[cluster_id].write(rows)
        if sum(each.waiting_bytes for each in self._open.values()) >= WAITING_BYTES:
            max(self._open.values(), key=lambda each: each.waiting_bytes).flush()
        if self._open[cluster_id].size >= TARGET_BYTES:
            self._finish(cluster_id)

    def finish(self) -> None:
        for cluster_id in list(self._open):
            self._finish(cluster_id)

    def _finish(self, cluster_id: str | None) -> None:
        self._done.append(self._open.pop(cluster_id).finish())


def numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times as microseconds since 1970, and other values as they are."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column

"""Brings the table `topic_history` up to date with the events, as an external sort on Spark's
tasks.

First, tasks read the events from the first changed position on, and the rows that hold there, and
write the topics' states into sorted runs. Then each task reads a portion of the topics from all
runs, and writes their rows. Rows that have ended and rows that still hold are in separate files, so
that the next change does not rewrite the former.

Memory depends neither on the length of the history nor on how unevenly topics change.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple, Self
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from ..datafiles import ROW_GROUP, DataFile, NewFiles, batches
from ..delta import Snapshot
from ..location import Location, output_stream
from ..parallel import ParallelMap
from ..schemas import Table
from .segments import SegmentBoundary, begin_of_change, segment_boundaries
from .sequence_ranges import Position
from .state import ClusterLogState
from .topic_states import OF_EVENTS, STATES, database_with_boundaries, history_rows, states_in_events, states_in_history

SOURCE_ROWS = 200_000
"""How many rows the files have that one task reads, unless one file has more."""
BATCH_BYTES = 32 << 20
"""How many bytes of rows become a run, if these are fewer than `Sizes.run_rows`."""
SMALL_ROWS = SOURCE_ROWS // 4
"""A file with so many rows is not small, however few bytes it has. So what is merged is small no
more: one task reads most of SOURCE_ROWS.
"""
MOST_SMALL = 16
"""How many small files with ended rows a cluster may have; if there are more, they are merged."""
BATCH_ROWS = 2048
FOLDER = Table.TOPIC_HISTORY.value
BUCKETS = 1 << 64


class SortedRun(NamedTuple):
    """A file of states of the topics of one cluster."""

    cluster_id: str
    path: str
    size: int
    """How many bytes the run has in memory."""
    buckets: list[int]
    """The lowest bucket of each batch."""


class Portion(NamedTuple):
    """The topics of a cluster whose buckets are from one to another one."""

    cluster_id: str
    first: int
    last: int


def write_run(tables: Location, cluster_id: str, states: pa.RecordBatch) -> SortedRun:
    """Write a run of rows with the columns TOLD, in the order of the buckets. Raises OSError."""
    path = f"{FOLDER}/{uuid4().hex}.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with output_stream(tables, path) as stream, pa.ipc.new_file(stream, STATES, options=options) as file:
        file.write_table(pa.Table.from_batches([states]), max_chunksize=BATCH_ROWS)
    return SortedRun(cluster_id, path, states.nbytes, states.column("bucket").to_numpy()[::BATCH_ROWS].tolist())


def read_portion(tables: Location, run: SortedRun, portion: Portion, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns, with `bucket`, of the rows of a portion out of a run. Raises OSError."""
    first = max(bisect_left(run.buckets, portion.first) - 1, 0)
    options = pa.ipc.IpcReadOptions(included_fields=[STATES.get_field_index(name) for name in names])
    with tables.filesystem().open_input_file(run.path) as stream:
        file = pa.ipc.open_file(stream, options=options)
        for number in range(first, bisect_right(run.buckets, portion.last)):
            batch = file.get_batch(number)
            buckets = batch.column("bucket").to_numpy()
            begin = buckets.searchsorted(np.uint64(portion.first))
            yield batch.slice(begin, buckets.searchsorted(np.uint64(portion.last), side="right") - begin)


class Sizes(NamedTuple):
    """How much work is done at once: rows, and bytes of states in memory."""

    run_rows: int = 131_072
    """How many rows of files a run is made from."""
    portion: int = 128 << 20
    """About how many bytes of the runs one task takes at most."""
    small: int = 1 << 20
    """A file of ended rows is small if it has fewer bytes, and fewer rows than SMALL_ROWS."""
    least: int = 8 << 20
    """About how many bytes a portion has at least, though there are cores for more portions."""


SIZES = Sizes()


class Stale(NamedTuple):
    """A cluster whose topic history does not have everything yet."""

    begin: Position
    """The position at which the history changes at the earliest."""
    boundaries: Sequence[SegmentBoundary]
    events: int
    """How many events there are from `begin` on."""

    @classmethod
    def since(cls, position: Position, cluster: ClusterLogState) -> Self:
        found = segment_boundaries(cluster)
        begin = begin_of_change(position, found)
        return cls(begin, found, cluster.events_from(begin))


class HistorySource(NamedTuple):
    """Files of a cluster that one task reads."""

    cluster_id: str
    table: Table
    files: list[DataFile]


def changes(
    on_workers: ParallelMap,
    cores: int,
    tables: Location,
    *,
    events: Snapshot,
    history: Snapshot,
    stale: Mapping[str, Stale],
    sizes: Sizes = SIZES,
) -> tuple[list[DataFile], list[DataFile]]:
    """Write the files that bring the topic history of some clusters up to date with their events,
    and return what a commit adds and what it removes. The work is dealt out to so many cores.
    Raises OSError and what `on_workers` raises.
    """
    of_events, of_history = events.of_clusters(), history.of_clusters()
    removes = {name: _changed(of_history.get(name, ()), each.begin, sizes.small) for name, each in stale.items()}
    new = {
        name: [file for file in of_events.get(name, ()) if _reaches(file, each.begin)] for name, each in stale.items()
    }
    rows = sum(file.rows for file in chain(*removes.values()))
    on_workers = partial(on_workers, events=rows + sum(each.events for each in stale.values()))
    sources = [*_sources(Table.TOPIC_HISTORY, removes), *_sources(Table.EVENTS, new)]
    extracted: list[tuple[list[SortedRun], list[DataFile]]] = on_workers(
        partial(extract_states, tables=tables, stale=stale, run_rows=sizes.run_rows), sources
    )
    runs = {name: [run for some, _ in extracted for run in some if run.cluster_id == name] for name in stale}
    dealt = [portion for name in stale for portion in _portions(name, runs[name], cores, sizes)]
    made: list[list[DataFile]] = on_workers(partial(build_rows, tables=tables, stale=stale, runs=runs), dealt)
    for run in chain(*runs.values()):
        tables.filesystem().delete_file(run.path)
    return [*chain(*(kept for _, kept in extracted), *made)], [*chain(*removes.values())]


def _changed(files: Sequence[DataFile], begin: Position, small_bytes: int) -> list[DataFile]:
    """Return the files of the topic history that have rows which last at `begin` or begin later,
    and the small ones if there are many.
    """
    found = [file for file in files if file.nulls.get("until_epoch", 1) or _reaches(file, begin, "until_")]
    small = [file for file in files if file.size < small_bytes and file.rows < SMALL_ROWS and file not in found]
    return [*found, *small] if len(small) > MOST_SMALL else found


def _reaches(file: DataFile, position: Position, prefix: str = "") -> bool:
    epoch, sequence = (file.high.get(f"{prefix}{name}") for name in ("epoch", "sequence"))
    return epoch is None or sequence is None or (int(epoch), int(sequence)) >= position


def _low(file: DataFile) -> Position:
    return int(file.low.get("epoch", 0)), int(file.low.get("sequence", 0))


def _sources(table: Table, files: Mapping[str, Sequence[DataFile]]) -> Iterator[HistorySource]:
    for cluster_id, some in files.items():
        waiting: list[DataFile] = []
        for file in some:
            if waiting and sum(each.rows for each in waiting) + file.rows > SOURCE_ROWS:
                yield HistorySource(cluster_id, table, waiting)
                waiting = []
            waiting.append(file)
        if waiting:
            yield HistorySource(cluster_id, table, waiting)


def _portions(cluster_id: str, runs: Sequence[SortedRun], cores: int, sizes: Sizes) -> list[Portion]:
    """Divide the topics of a cluster into portions that are about equal."""
    size = sum(run.size for run in runs)
    count = max(-(-size // sizes.portion), min(cores, -(-size // sizes.least)))
    edges = [number * BUCKETS // max(count, 1) for number in range(count + 1)]
    return [Portion(cluster_id, first, end - 1) for first, end in pairwise(edges)]


def extract_states(
    source: HistorySource, tables: Location, stale: Mapping[str, Stale], run_rows: int
) -> tuple[list[SortedRun], list[DataFile]]:
    """Write the states of topics in some files, and files of the topic history with the rows of it
    that do not change. Raises OSError.
    """
    begin, ends, _ = stale[source.cluster_id]
    has_ended = _is_before("until_", begin)
    read = partial(_batches, tables, source, run_rows)
    kept: list[DataFile] = []
    files = NewFiles(tables, Table.TOPIC_HISTORY, kept)
    with database_with_boundaries(ends) as found:
        if source.table is Table.EVENTS:
            is_all_new = all(_low(file) >= begin for file in source.files)  # a filter would copy all states
            states = (
                states_in_events(found, rows)
                for rows in read(OF_EVENTS, None if is_all_new else ~_is_before("", begin))
            )
        else:
            names, segment = source.table.in_files.names, sum((each.epoch, each.sequence) < begin for each in ends)
            for group in (ds.field("until_epoch") != begin[0], ds.field("until_epoch") == begin[0]):
                for rows in read(names, has_ended & group):
                    files.write(source.cluster_id, rows)
                files.finish()
            lasts = _is_before("from_", begin) & (ds.field("until_epoch").is_null() | ~has_ended)
            states = (states_in_history(found, rows, segment) for rows in read(names, lasts))
        return [write_run(tables, source.cluster_id, rows) for rows in states if rows.num_rows], kept


def build_rows(
    portion: Portion, tables: Location, stale: Mapping[str, Stale], runs: Mapping[str, Sequence[SortedRun]]
) -> list[DataFile]:
    """Write the rows of a portion, and return the files. Raises OSError."""
    name, done = portion.cluster_id, list[DataFile]()
    groups = [NewFiles(tables, Table.TOPIC_HISTORY, done) for _ in range(3)]

    def states(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        return _joined(chain.from_iterable(read_portion(tables, run, portion, names) for run in runs[name]), ROW_GROUP)

    with database_with_boundaries(stale[name].boundaries) as found:
        for rows in history_rows(found, states):
            for files, some in zip(groups, rows, strict=True):
                files.write(name, some)
    for files in groups:
        files.finish()
    return done


def _batches(
    tables: Location, source: HistorySource, rows: int, names: Sequence[str], wanted: ds.Expression | None
) -> Iterator[pa.RecordBatch]:
    """Read some columns; rows that follow each other in a file do so in a batch."""
    options = {"filter": wanted, "batch_size": rows, "use_threads": False}
    return _joined(batches(tables, source.table, source.files, list(names), **options), rows)


def _joined(some: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Join batches to some of so many rows, or of BATCH_BYTES."""
    waiting, size = list[pa.RecordBatch](), 0
    for batch in some:
        waiting.append(batch)
        size += batch.nbytes
        if sum(each.num_rows for each in waiting) >= rows or size >= BATCH_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def _is_before(prefix: str, position: Position) -> ds.Expression:
    """Whether rows begin, or end, before a position; null if they do not."""
    epoch, sequence = ds.field(f"{prefix}epoch"), ds.field(f"{prefix}sequence")
    return (epoch < position[0]) | ((epoch == position[0]) & (sequence < position[1]))

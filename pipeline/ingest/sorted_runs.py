"""Sorted runs: Arrow files with states of topics in the order of the topics' buckets, by which the
tasks of one stage pass them to the next.

A run is small enough to be sorted in memory, and a task reads little more of it than its portion.
Runs are in the table's folder without a commit, so vacuuming removes those that a crash leaves.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa

from ..location import Location, output_stream
from ..schemas import Table
from .topic_states import STATES

BATCH_ROWS = 2048
FOLDER = Table.TOPIC_HISTORY.value
BUCKETS = 1 << 64


class SortedRun(NamedTuple):
    """A file of what is told of topics of one cluster."""

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


def write_run(tables: Location, cluster_id: str, told: pa.RecordBatch) -> SortedRun:
    """Write a run of rows with the columns TOLD, in the order of the buckets. Raises OSError."""
    path = f"{FOLDER}/{uuid4().hex}.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with output_stream(tables, path) as stream, pa.ipc.new_file(stream, STATES, options=options) as file:
        file.write_table(pa.Table.from_batches([told]), max_chunksize=BATCH_ROWS)
    return SortedRun(cluster_id, path, told.nbytes, told.column("bucket").to_numpy()[::BATCH_ROWS].tolist())


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

"""The rows of the table `topic_history`, from what is known of topics and what events tell then.

Rule: a row lasts until something else is told of its topic, or until the next barrier. What lasts
in the end is what is known when more is told. So a history is made part by part, whatever its
length, and a change behind a long history begins where it begins.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..schemas import Table
from .barriers import Barrier, Numbers, Place, Segments
from .limits import microseconds
from .told import CHANGE, TOLD, codes, numbers

ROWS = Table.TOPIC_HISTORY.in_files
CHANGES = pa.schema([TOLD.field(name).with_nullable(True) for name in CHANGE])
NOWHERE = -1


class Rows(NamedTuple):
    """What was made of a part of the log."""

    ended: pa.RecordBatch
    """Rows of `topic_history`."""
    lasting: pa.RecordBatch
    """What is known behind the part, with the columns TOLD."""


def continued(known: pa.RecordBatch, told: Sequence[pa.RecordBatch], begin: Place, barriers: Sequence[Barrier]) -> Rows:
    """Make the rows of some topics of a cluster in a part of its log.

    `known` is what lasts just before `begin`, where the part begins, and `told` what its events
    tell, in any order; both have the columns TOLD. `barriers` are those up to the part's end.
    """
    rows = pa.concat_batches([known, *told])
    segment = Segments((each.epoch, each.sequence) for each in barriers).number(
        numbers(rows, "epoch"), numbers(rows, "sequence")
    )
    segment[: known.num_rows] = len(before(barriers, begin))
    begun, end = _runs(rows, segment)
    lasts = end >= rows.num_rows + len(barriers)
    until = _changes(rows, barriers).take(pa.array(end[~lasts]))
    return Rows(history_rows(rows.take(pa.array(begun[~lasts])), until), rows.take(pa.array(begun[lasts])))


def before(barriers: Sequence[Barrier], place: Place) -> Sequence[Barrier]:
    """Return the barriers before a place."""
    return barriers[: bisect_left(barriers, place, key=lambda each: (each.epoch, each.sequence))]


def history_rows(begun: pa.RecordBatch, until: pa.RecordBatch | None = None) -> pa.RecordBatch:
    """Return rows of `topic_history` that begin as `begun` tells, with the columns TOLD, and end as
    `until` tells, with the columns CHANGE; without it they last.
    """
    columns = {name: begun.column(name) for name in begun.schema.names}
    partitions, factor = _counts(begun.column("replicas"))
    columns |= {"partitions": pa.array(partitions, pa.int32()), "replication_factor": pa.array(factor, pa.int32())}
    columns |= {f"from_{name}": begun.column(name) for name in CHANGE}
    if until is not None:
        columns |= {f"until_{name}": until.column(name) for name in CHANGE}
    nothing = {field.name: pa.nulls(begun.num_rows, field.type) for field in ROWS if field.name not in columns}
    return pa.RecordBatch.from_arrays([(columns | nothing)[name] for name in ROWS.names], schema=ROWS)


def _runs(rows: pa.RecordBatch, segment: Numbers) -> tuple[Numbers, Numbers]:
    """Return the rows that begin a state of a topic, and for each the row that ends it, or behind
    all rows the segment that ends it.

    A run is what was told of a topic one after the other and is the same, with nothing in between
    but the end of the snapshot that tells the next.
    """
    topic, count = codes(rows.column("topic")), rows.num_rows
    order = np.lexsort((*(numbers(rows, name) for name in ("origin", "sequence", "epoch")), topic))
    epoch, sequence, digest, in_snapshot = (
        numbers(rows, name)[order] for name in ("epoch", "sequence", "digest", "in_snapshot")
    )
    is_same_place = (np.diff(epoch) == 0) & (np.diff(sequence) == 0)
    follows = (np.diff(topic[order]) == 0) & (is_same_place | (np.diff(segment[order]) == in_snapshot[1:]))
    first = np.flatnonzero(np.insert(~follows | (np.diff(digest) != 0), 0, True)[:count])
    last = np.append(first, count)[1:] - 1
    follower = np.where(np.append(follows, False)[last], last + 1, NOWHERE)
    is_empty = (follower != NOWHERE) & (epoch[first] == epoch[follower]) & (sequence[first] == sequence[follower])
    is_there = pc.is_valid(rows.column("topic_id")).to_numpy(zero_copy_only=False)[order[first]]
    end = np.where(follower == NOWHERE, count + segment[order[last]], order[follower])
    return order[first[is_there & ~is_empty]], end[is_there & ~is_empty]


def _changes(rows: pa.RecordBatch, barriers: Sequence[Barrier]) -> pa.RecordBatch:
    """Return the events that tell the rows, and behind them the barriers."""
    columns = (
        [each.epoch for each in barriers],
        [each.sequence for each in barriers],
        [microseconds(each.time_ms) for each in barriers],
        [each.cause for each in barriers],
        [None] * len(barriers),
    )
    arrays = [pa.array(column, field.type) for column, field in zip(columns, CHANGES, strict=True)]
    told = [rows.column(name) for name in CHANGE]
    return pa.concat_batches([pa.RecordBatch.from_arrays(each, schema=CHANGES) for each in (told, arrays)])


def _counts(replicas: pa.ListArray) -> tuple[Numbers, Numbers]:
    """Count the partitions of each topic, and the replicas of its first one, 0 if it has none."""
    partitions = replicas.value_lengths().to_numpy()
    rows = np.append(replicas.flatten().value_lengths().to_numpy(), 0)
    return partitions, np.where(partitions > 0, rows[np.cumsum(partitions) - partitions], 0)

"""Computes the rows of `topic_history` from the states in events, in SQL.

A topic's state lasts until an event changes it or its segment of the log ends, whichever is first.
Refused requests show a state, too: after a gap it may be the only one.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..database import database
from ..schemas import BOOLEAN, INT, LONG, STATE, STRING, TIME, Table
from .limits import microseconds
from .segments import SegmentBoundary

POSITION = ("epoch", "sequence")
OF_EVENTS = (
    *("epoch", "sequence", "time", "kind", "resource", "name", "operation", "effect", "principal"),
    *("reassignment", "after", "topics"),
)
ROWS = Table.TOPIC_HISTORY.in_files
CHANGE = ("epoch", "sequence", "time", "cause", "principal")
"""The columns about the event that begins a row of `topic_history`, and about the one that ends it.
"""
STATES = pa.schema(
    {
        "topic": STRING,
        "epoch": INT,
        "origin": LONG,
        "time": TIME,
        "cause": STRING,
        "principal": STRING,
        "state": pa.struct([each.with_nullable(True) for each in STATE]),
        "sequence": LONG,
        "in_snapshot": BOOLEAN,
        "segment": LONG,
        "bucket": pa.uint64(),
        "digest": pa.uint64(),
    }
)
"""The columns of topics' states. `origin` is the event that has the state, which is null
where there is no topic; `sequence` and `time` say where it takes effect, and `segment` counts the
boundaries up to there. `bucket` depends on the topic's name alone. `digest` differs where the state
differs, apart from the time of creation, for which two clocks may differ; it is 0 where there is no
topic.
"""
BOUNDARIES = pa.schema(
    {"number": LONG, "epoch": INT, "sequence": LONG, "time": TIME, "cause": STRING, "principal": STRING, "begin": LONG}
)
DIGEST = """
    if(state IS NULL, 0, hash(
        state.topic_id, flatten(state.replicas), list_transform(state.replicas, lambda each: len(each)),
        list_sort(map_entries(state.configs)), state.marked_for_deletion
    ))
"""
"""The digest of a state. Lengths are needed because DuckDB hashes [[1], [2]] as it does [[1, 2]],
and configs are sorted because their order means nothing.
"""
EVENT_STATES = f"""
    SELECT
        row, name AS topic, epoch, sequence AS origin, time,
        CASE WHEN effect = 'applied' THEN operation WHEN kind = 'decision' THEN 'seen'
            WHEN reassignment THEN 'reassignment' ELSE kind END AS cause,
        if(effect = 'applied', principal, NULL) AS principal, sequence, false AS in_snapshot, segment, hash(name) AS bucket, {DIGEST} AS digest
    FROM rows
    WHERE kind IN ('removal', 'observed') OR (kind = 'decision' AND resource = 'topic' AND name != '')
    UNION ALL
    SELECT
        row, topic, epoch, parts.sequence, boundaries.time, cause, NULL, boundaries.sequence, true, number, hash(topic), {DIGEST}
    FROM parts JOIN boundaries USING (epoch)
    WHERE cause = 'snapshot' AND begin < parts.sequence AND parts.sequence < boundaries.sequence AND state IS NOT NULL
"""
"""A query for the states in events; those of a snapshot take effect at its end."""
HISTORY_STATES = f"""
    SELECT
        row, topic, from_epoch AS epoch, from_sequence AS origin, from_time AS time, from_cause AS cause,
        from_principal AS principal, from_sequence AS sequence, false AS in_snapshot, $segment AS segment, hash(topic) AS bucket, {DIGEST} AS digest
    FROM rows
"""
HISTORY = f"""
    WITH marked AS (
        SELECT
            *, lag(digest) OVER () AS digest_before, lag(segment) OVER () AS segment_before,
            lag(topic) OVER () = topic AND (
                lag((epoch, sequence)) OVER () = (epoch, sequence) OR segment - lag(segment) OVER () = in_snapshot::INT
            ) AS follows
        FROM stateless
    ),
    begun AS (
        SELECT
            *, lead({{{", ".join(f"'{name}': {name}" for name in (*CHANGE, "follows"))}}}) OVER () AS next,
            coalesce(lead(segment_before) OVER (), (SELECT last(segment) FROM stateless)) AS segment_at_end
        FROM marked WHERE follows IS NOT TRUE OR digest != digest_before
    )
    SELECT
        row, {", ".join(f"if(next.follows, next.{name}, boundaries.{name}) AS until_{name}" for name in CHANGE)}
    FROM begun LEFT JOIN boundaries ON number = segment_at_end + 1
    WHERE digest != 0 AND (next.follows AND next.epoch = begun.epoch AND next.sequence = begun.sequence) IS NOT TRUE
    ORDER BY row
"""
"""A query for rows of `topic_history`. A row is what was told of a topic one after the other and is
the same, with nothing in between but the end of the snapshot that tells the next. `stateless` is in
order, so that DuckDB looks from a row at the next one without sorting again.
"""
STATELESS_COLUMNS = [name for name in STATES.names if name != "state"]
"""The columns of TOLD without the states, which are expensive to sort."""
NUMBERED = pa.schema([*(STATES.field(name) for name in STATELESS_COLUMNS), pa.field("row", LONG)])


@contextmanager
def database_with_boundaries(boundaries: Sequence[SegmentBoundary]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with the table of a cluster's boundaries. Raises OSError."""
    rows = [
        {**each._asdict(), "time": microseconds(each.time_ms), "number": number}
        for number, each in enumerate(boundaries, start=1)
    ]
    with database() as found:
        found.register("boundaries", pa.Table.from_pylist(rows, BOUNDARIES))
        yield found


def states_in_events(found: duckdb.DuckDBPyConnection, events: pa.RecordBatch) -> pa.RecordBatch:
    """Return what events of one cluster tell of topics, with the columns TOLD, in the order of the
    buckets. `events` has the columns OF_EVENTS, and is in the order of the file.
    """
    of = {name: events.column(name) for name in OF_EVENTS}
    after, topics = of.pop("after"), of.pop("topics")
    names, states = topics.flatten().flatten()
    parts = {name: of[name].take(pc.list_parent_indices(topics)) for name in POSITION} | {"topic": names}
    of["segment"] = _segments(found, events)
    _register(found, "rows", of, after, 0)
    _register(found, "parts", parts, states, len(after))
    return _sorted_states(found.sql(EVENT_STATES), pa.concat_arrays([after, states]))


def _segments(found: duckdb.DuckDBPyConnection, events: pa.RecordBatch) -> npt.NDArray[np.int64]:
    boundaries = found.table("boundaries").fetchnumpy()
    positions = [np.append(boundaries[name], events.column(name).to_numpy()) for name in POSITION]
    order = np.lexsort(positions[::-1])
    counts = np.empty(len(order), np.int64)
    counts[order] = np.cumsum(order < len(boundaries["number"]))
    return counts[len(boundaries["number"]) :]


def states_in_history(found: duckdb.DuckDBPyConnection, rows: pa.RecordBatch, segment: int) -> pa.RecordBatch:
    """Return rows of `topic_history` that last in a segment of the log as if their first events
    told them there, with the columns TOLD, in the order of the buckets.
    """
    of = {name: rows.column(name) for name in ROWS.names}
    state = pa.StructArray.from_arrays([of.pop(field.name) for field in STATE], fields=list(STATE))
    _register(found, "rows", of, state, 0)
    return _sorted_states(found.sql(HISTORY_STATES, params={"segment": segment}), state)


def _register(
    found: duckdb.DuckDBPyConnection, name: str, columns: dict[str, Any], states: pa.Array, first: int
) -> None:
    """Register a table of these columns, with states and the numbers of rows from `first` on."""
    numbers = np.arange(first, first + len(states))
    found.register(name, pa.table({**columns, "state": states, "row": numbers}))


def _sorted_states(told: duckdb.DuckDBPyRelation, states: pa.StructArray) -> pa.RecordBatch:
    """Add the states, which are expensive to copy, when the rest is in order."""
    rows = _batch(told)
    rows = rows.take(pa.array(np.lexsort([rows.column(name).to_numpy() for name in ("row", "bucket")])))
    of = dict(zip(rows.schema.names, rows.columns, strict=True)) | {"state": states.take(rows.column("row"))}
    return pa.record_batch([of[field.name].cast(field.type) for field in STATES], STATES)


def _batch(found: duckdb.DuckDBPyRelation) -> pa.RecordBatch:
    rows = found.to_arrow_table()
    return pa.record_batch({name: rows[name].combine_chunks() for name in rows.column_names})


def history_rows(
    found: duckdb.DuckDBPyConnection, told: Callable[[Sequence[str]], Iterable[pa.RecordBatch]]
) -> Iterator[tuple[pa.RecordBatch, ...]]:
    """Make the rows of `topic_history` out of what is told of some topics, of which `told` reads
    some columns, always in the same order. Each batch is three, which belong into files of their
    own: rows that have ended, those of them that ended in the last epoch, since the highest
    sequence of a file says where it ends only if all are of one epoch, and rows that last.
    """
    found.register("read", pa.RecordBatchReader.from_batches(NUMBERED, _numbered(told(STATELESS_COLUMNS))))
    found.execute("CREATE TEMP TABLE stateless AS FROM read ORDER BY topic, epoch, sequence, origin, row")
    found.execute(f"CREATE TEMP TABLE history AS {HISTORY}")
    [[last]] = found.sql("SELECT max(until_epoch) FROM history").fetchall()
    first = 0
    for batch in told(STATES.names):
        end = first + batch.num_rows
        ends = _batch(found.sql("FROM history WHERE row >= $first AND row < $end", params={"first": first, "end": end}))
        at, until = pc.subtract(ends.column("row"), first), ends.column("until_epoch")
        groups = (pc.less(until, last), pc.equal(until, last), pc.is_null(until))
        yield tuple(_rows(batch.take(at.filter(group)), ends.filter(group)) for group in groups)
        first = end


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in batches:
        numbers = np.arange(first, first + batch.num_rows)
        yield pa.RecordBatch.from_arrays([*batch.columns, pa.array(numbers)], schema=NUMBERED)
        first += batch.num_rows


def _rows(begun: pa.RecordBatch, ends: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of `topic_history` that begin as `begun` tells, and end as `ends` does."""
    of = dict(zip(STATE.names, begun.column("state").flatten(), strict=True))
    replicas = of["replicas"]
    partitions = replicas.value_lengths().to_numpy()
    of["partitions"] = pa.array(partitions, INT)
    of["replication_factor"] = pa.array(_first_lengths(replicas, partitions), INT)
    of |= {"topic": begun.column("topic"), **{f"from_{name}": begun.column(name) for name in CHANGE}}
    of |= {name: ends.column(name) for name in ends.schema.names}
    return pa.record_batch({name: of[name] for name in ROWS.names}).cast(ROWS)


def _first_lengths(lists: pa.ListArray, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    inner = np.append(lists.flatten().value_lengths().to_numpy(), 0)
    return np.where(lengths > 0, inner[np.cumsum(lengths) - lengths], 0)

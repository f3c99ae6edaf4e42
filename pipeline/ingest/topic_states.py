"""What events tell of topics' states, and the rows of `topic_history` that come of it, in SQL.

Rule: a topic's state lasts until an event tells another one, or until the next barrier, whichever
is first. Events that were refused tell of a state, too: after a gap it may be all there is.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..datafiles import ROW_GROUP
from ..schemas import BOOLEAN, INT, LONG, STATE, STRING, TIME, Table
from .barriers import Barrier
from .limits import microseconds
from .sorting import database

OF_EVENTS = (
    *("epoch", "sequence", "time", "kind", "resource", "name", "operation", "effect", "principal"),
    *("reassignment", "after", "topics"),
)
"""The columns of `events` that tell of topics."""
ROWS = Table.TOPIC_HISTORY.in_files
CHANGE = ("epoch", "sequence", "time", "cause", "principal")
"""What is known of the event that begins a row of `topic_history`, and of the one that ends it."""
TOLD = pa.schema(
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
"""`origin` is the event that tells the state, which is null where there is no topic; `sequence` and
`time` say where it takes effect, and `segment` counts the barriers up to there. `bucket` depends on
the topic's name alone. `digest` differs where the state differs, apart from the time of creation,
for which two clocks may differ.
"""
BARRIERS = pa.schema(
    {"number": LONG, "epoch": INT, "sequence": LONG, "time": TIME, "cause": STRING, "principal": STRING, "begin": LONG}
)
DIGEST = """
    if(state IS NULL, 0, hash(
        state.topic_id, flatten(state.replicas), list_transform(state.replicas, lambda each: len(each)),
        list_sort(map_entries(state.configs)), state.marked_for_deletion
    ))
"""
"""The lengths are needed because DuckDB's hash of [[1], [2]] is that of [[1, 2]], and configs are
sorted because their order tells nothing.
"""
TOLD_BY = f"""
    SELECT
        row, name AS topic, epoch, sequence AS origin, time,
        CASE WHEN effect = 'applied' THEN operation WHEN kind = 'decision' THEN 'seen'
            WHEN reassignment THEN 'reassignment' ELSE kind END AS cause,
        if(effect = 'applied', principal, NULL) AS principal, sequence, false AS in_snapshot, segment, hash(name) AS bucket, digest
    FROM (
        SELECT each.* EXCLUDE (time), each.time, coalesce(number, 0) AS segment
        FROM (
            SELECT * EXCLUDE (state), {DIGEST} AS digest FROM rows
            WHERE kind IN ('removal', 'observed') OR (kind = 'decision' AND resource = 'topic' AND name != '')
        ) AS each
        ASOF LEFT JOIN barriers ON (each.epoch, each.sequence) >= (barriers.epoch, barriers.sequence)
        QUALIFY lag((digest, stretch, segment)) OVER (PARTITION BY name ORDER BY row)
            IS DISTINCT FROM (digest, stretch, segment)
    )
    UNION ALL
    SELECT
        row, topic, epoch, parts.sequence, barriers.time, cause, NULL, barriers.sequence, true, number, hash(topic), {DIGEST}
    FROM parts JOIN barriers USING (epoch)
    WHERE cause = 'snapshot' AND begin < parts.sequence AND parts.sequence < barriers.sequence AND state IS NOT NULL
"""
"""Leaves out only what is known to change nothing: the same state again, with neither a missing
event nor a barrier in between. What a snapshot tells takes effect at its end.
"""
KNOWN_BY = f"""
    SELECT
        row, topic, from_epoch AS epoch, from_sequence AS origin, from_time AS time, from_cause AS cause,
        from_principal AS principal, from_sequence AS sequence, false AS in_snapshot, $segment AS segment, hash(topic) AS bucket, {DIGEST} AS digest
    FROM rows
"""
HISTORY = f"""
    WITH marked AS (
        SELECT
            *, lag(digest) OVER log AS digest_before, lag(segment) OVER log AS segment_before,
            lag((epoch, sequence)) OVER log = (epoch, sequence) OR segment - segment_before = in_snapshot::INT AS follows,
            max(segment) OVER (PARTITION BY topic) AS last_segment
        FROM (SELECT rowid AS row, * FROM places)
        WINDOW log AS (PARTITION BY topic ORDER BY epoch, sequence, origin, row)
    ),
    begun AS (
        SELECT
            *, lead({{{", ".join(f"'{name}': {name}" for name in (*CHANGE, "follows"))}}}) OVER log AS next,
            coalesce(lead(segment_before) OVER log, last_segment) AS segment_at_end
        FROM marked WHERE follows IS NOT TRUE OR digest != digest_before
        WINDOW log AS (PARTITION BY topic ORDER BY epoch, sequence, origin, row)
    )
    SELECT
        row, {", ".join(f"if(next.follows, next.{name}, barriers.{name}) AS until_{name}" for name in CHANGE)}
    FROM begun LEFT JOIN barriers ON number = segment_at_end + 1
    WHERE is_there AND (next.follows AND next.epoch = begun.epoch AND next.sequence = begun.sequence) IS NOT TRUE
"""
"""A row is what was told of a topic one after the other and is the same, with nothing in between
but the end of the snapshot that tells the next.
"""
PLACES = pa.schema([each for each in TOLD if each.name != "state"] + [pa.field("is_there", BOOLEAN)])
"""What is told but for the states, which are dear to sort, and whether there is a topic."""


@contextmanager
def with_barriers(barriers: Sequence[Barrier]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with the table of a cluster's barriers. Raises OSError."""
    rows = [
        {**each._asdict(), "time": microseconds(each.time_ms), "number": number}
        for number, each in enumerate(barriers, start=1)
    ]
    with database() as found:
        found.register("barriers", pa.Table.from_pylist(rows, BARRIERS))
        yield found


def told_by(found: duckdb.DuckDBPyConnection, events: pa.RecordBatch) -> pa.RecordBatch:
    """Return what events of one cluster tell of topics, with the columns TOLD, in the order of the
    buckets. `events` has the columns OF_EVENTS, and is in the order of the file.
    """
    of = {name: events.column(name) for name in OF_EVENTS}
    after, topics, place = of.pop("after"), of.pop("topics"), ("epoch", "sequence")
    epoch, sequence = (np.diff(of[name].to_numpy()) for name in place)
    of["stretch"] = np.cumsum(np.insert((epoch != 0) | (sequence != 1), 0, values=False))
    names, states = topics.flatten().flatten()
    parts = {name: of[name].take(pc.list_parent_indices(topics)) for name in place} | {"topic": names}
    _register(found, "rows", of, after, 0)
    _register(found, "parts", parts, states, len(after))
    return _told(found.sql(TOLD_BY), pa.concat_arrays([after, states]))


def known_by(found: duckdb.DuckDBPyConnection, rows: pa.RecordBatch, segment: int) -> pa.RecordBatch:
    """Return rows of `topic_history` that last in a segment of the log as if their first events
    told them there, with the columns TOLD, in the order of the buckets.
    """
    of = {name: rows.column(name) for name in ROWS.names}
    state = pa.StructArray.from_arrays([of.pop(field.name) for field in STATE], fields=list(STATE))
    _register(found, "rows", of, state, 0)
    return _told(found.sql(KNOWN_BY, params={"segment": segment}), state)


def _register(
    found: duckdb.DuckDBPyConnection, name: str, columns: dict[str, Any], states: pa.Array, first: int
) -> None:
    """Register a table of these columns, with states and the numbers of rows from `first` on."""
    numbers = np.arange(first, first + len(states))
    found.register(name, pa.table({**columns, "state": states, "row": numbers}))


def _told(told: duckdb.DuckDBPyRelation, states: pa.StructArray) -> pa.RecordBatch:
    """Add the states to the rest, which is sorted without them, because they are dear to copy."""
    rows = told.order("bucket, row").to_arrow_table().combine_chunks()
    of = {name: rows.column(name) for name in rows.column_names}
    of["state"] = states.take(of["row"].combine_chunks())
    batches = pa.table({name: of[name] for name in TOLD.names}).cast(TOLD).combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], TOLD)


def history_rows(
    found: duckdb.DuckDBPyConnection, told: Callable[[], Iterable[pa.RecordBatch]]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]]:
    """Make the rows of `topic_history` out of what is told of some topics, in the order in which
    `told` reads it, twice. Each batch is three, which belong into files of their own: rows that
    have ended, those of them that ended in the last epoch, since the highest sequence of a file
    says where it ends only if all are of one epoch, and rows that last.
    """
    found.register("read", pa.RecordBatchReader.from_batches(PLACES, map(_places, told())))
    found.execute("CREATE TEMP TABLE places AS FROM read")
    found.execute(f"CREATE TEMP TABLE history AS {HISTORY}")
    [[last]] = found.sql("SELECT max(until_epoch) FROM history").fetchall()
    ends = found.sql("FROM history ORDER BY row").to_arrow_reader(ROW_GROUP)
    some, first = next(ends, None), 0
    for batch in told():
        while some is not None:
            at = some.column("row").to_numpy() - first
            count = int(at.searchsorted(batch.num_rows))
            rows = _rows(batch.take(pa.array(at[:count])), some.slice(0, count))
            until = rows.column("until_epoch")
            yield tuple(map(rows.filter, (pc.less(until, last), pc.equal(until, last), pc.is_null(until))))
            if count < some.num_rows:
                some = some.slice(count)
                break
            some = next(ends, None)
        first += batch.num_rows


def _places(told: pa.RecordBatch) -> pa.RecordBatch:
    return told.append_column("is_there", pc.is_valid(told.column("state"))).select(PLACES.names)


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
    """Return the length of the first list in each list of lists, and 0 for an empty one."""
    inner = np.append(lists.flatten().value_lengths().to_numpy(), 0)
    return np.where(lengths > 0, inner[np.cumsum(lengths) - lengths], 0)

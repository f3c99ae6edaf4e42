"""What events tell of topics' states, and the rows of `topic_history` that come of it, in SQL.

Rule: a topic's state lasts until an event tells another one, or until the next barrier, whichever
is first. Events that were refused tell of a state, too: after a gap it may be all there is.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa

from ..delta import ROW_GROUP
from ..schemas import BOOLEAN, INT, LONG, STATE, STRING, TIME, Table
from .barriers import Barrier
from .limits import microseconds

MEMORY = "512MB"
"""Of DuckDB in a task; beyond it, it writes to a temporary folder."""
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
    WITH telling AS (
        SELECT *, after AS state FROM rows
        WHERE kind IN ('removal', 'observed') OR (kind = 'decision' AND resource = 'topic' AND name != '')
    ),
    changes AS (
        SELECT row, coalesce(number, 0) AS segment
        FROM (SELECT row, epoch, sequence, name, stretch, {DIGEST} AS digest FROM telling) AS each
        ASOF LEFT JOIN barriers ON (each.epoch, each.sequence) >= (barriers.epoch, barriers.sequence)
        QUALIFY lag((digest, stretch, segment)) OVER (PARTITION BY name ORDER BY row)
            IS DISTINCT FROM (digest, stretch, segment)
    )
    SELECT
        name AS topic, epoch, sequence AS origin, time,
        CASE WHEN effect = 'applied' THEN operation WHEN kind = 'decision' THEN 'seen'
            WHEN reassignment THEN 'reassignment' ELSE kind END AS cause,
        if(effect = 'applied', principal, NULL) AS principal, state, sequence, false AS in_snapshot, segment
    FROM telling JOIN changes USING (row)
    UNION ALL
    SELECT each.topic, epoch, part.sequence, barriers.time, cause, NULL, each.state, barriers.sequence, true, number
    FROM (SELECT epoch, sequence, unnest(topics) AS each FROM rows WHERE kind = 'snapshot_topics') AS part
    JOIN barriers USING (epoch)
    WHERE cause = 'snapshot' AND begin < part.sequence AND part.sequence < barriers.sequence AND each.state IS NOT NULL
"""
"""Leaves out only what is known to change nothing: the same state again, with neither a missing
event nor a barrier in between. What a snapshot tells takes effect at its end.
"""
KNOWN_BY = f"""
    SELECT
        topic, from_epoch AS epoch, from_sequence AS origin, from_time AS time, from_cause AS cause,
        from_principal AS principal, struct_pack({", ".join(field.name for field in STATE)}) AS state,
        from_sequence AS sequence, false AS in_snapshot, $segment AS segment
    FROM rows
"""
HISTORY = f"""
    WITH marked AS (
        SELECT
            *, lag(digest) OVER log AS digest_before, lag(segment) OVER log AS segment_before,
            lag((epoch, sequence)) OVER log = (epoch, sequence) OR segment - segment_before = in_snapshot::INT AS follows,
            max(segment) OVER (PARTITION BY topic) AS last_segment
        FROM told WINDOW log AS (PARTITION BY topic ORDER BY epoch, sequence, origin)
    ),
    begun AS (
        SELECT
            *, lead({{{", ".join(f"'{name}': {name}" for name in (*CHANGE, "follows"))}}}) OVER log AS next,
            coalesce(lead(segment_before) OVER log, last_segment) AS segment_at_end
        FROM marked WHERE follows IS NOT TRUE OR digest != digest_before
        WINDOW log AS (PARTITION BY topic ORDER BY epoch, sequence, origin)
    )
    SELECT
        topic, state.*, len(state.replicas) AS partitions, coalesce(len(state.replicas[1]), 0) AS replication_factor,
        {", ".join(f"begun.{name} AS from_{name}" for name in CHANGE)},
        {", ".join(f"if(next.follows, next.{name}, barriers.{name}) AS until_{name}" for name in CHANGE)}
    FROM begun LEFT JOIN barriers ON number = segment_at_end + 1
    WHERE state IS NOT NULL
        AND (next.follows AND next.epoch = begun.epoch AND next.sequence = begun.sequence) IS NOT TRUE
"""
"""A row is what was told of a topic one after the other and is the same, with nothing in between
but the end of the snapshot that tells the next.
"""
LAST = "(SELECT max(until_epoch) FROM history)"
GROUPS = (f"until_epoch < {LAST}", f"until_epoch = {LAST}", "until_epoch IS NULL")
"""Rows that are in files of their own: those that have ended, those of them that ended in the last
epoch, since the highest sequence of a file says where it ends only if all are of one epoch, and
those that last.
"""


@contextmanager
def database(barriers: Sequence[Barrier]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with the table of a cluster's barriers."""
    rows = [
        {**each._asdict(), "time": microseconds(each.time_ms), "number": number}
        for number, each in enumerate(barriers, start=1)
    ]
    with _duckdb().cursor() as found:
        found.register("barriers", pa.Table.from_pylist(rows, BARRIERS))
        yield found


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    folder = Path(gettempdir(), f"minicontroller-{uuid4().hex}")
    return duckdb.connect(config={"threads": 1, "memory_limit": MEMORY, "temp_directory": str(folder)})


def told_by(found: duckdb.DuckDBPyConnection, events: pa.RecordBatch) -> pa.RecordBatch:
    """Return what events of one cluster tell of topics, with the columns TOLD, in the order of the
    buckets. `events` has the columns OF_EVENTS, and is in the order of the file.
    """
    epoch, sequence = (np.diff(events.column(name).to_numpy()) for name in ("epoch", "sequence"))
    stretch = np.cumsum(np.insert((epoch != 0) | (sequence != 1), 0, values=False))
    rows = pa.Table.from_batches([events]).append_column("stretch", [stretch])
    found.register("rows", rows.append_column("row", [np.arange(len(stretch))]))
    return _told(found.sql(TOLD_BY))


def known_by(found: duckdb.DuckDBPyConnection, rows: pa.RecordBatch, segment: int) -> pa.RecordBatch:
    """Return rows of `topic_history` that last in a segment of the log as if their first events
    told them there, with the columns TOLD, in the order of the buckets.
    """
    found.register("rows", pa.Table.from_batches([rows]))
    return _told(found.sql(KNOWN_BY, params={"segment": segment}))


def _told(told: duckdb.DuckDBPyRelation) -> pa.RecordBatch:
    hashed = told.project(f"*, hash(topic) AS bucket, {DIGEST} AS digest").order("bucket")
    return pa.concat_batches(hashed.to_arrow_table().cast(TOLD).to_batches() or [pa.RecordBatch.from_pylist([], TOLD)])


def history_rows(
    found: duckdb.DuckDBPyConnection, told: Iterable[pa.RecordBatch]
) -> Iterator[Iterator[pa.RecordBatch]]:
    """Make the rows of `topic_history` out of what is told of some topics, in any order, and yield
    them as they belong into files of their own, in the order in which they ended.
    """
    found.register("empty", TOLD.empty_table())
    found.execute("CREATE TEMP TABLE told AS FROM empty")
    for batch in told:
        found.from_arrow(pa.Table.from_batches([batch])).insert_into("told")
    found.execute(f"CREATE TEMP TABLE history AS {HISTORY}")
    for group in GROUPS:
        rows = found.table("history").filter(group).order("until_epoch, until_sequence").select(*ROWS.names)
        yield (batch.cast(ROWS) for batch in rows.to_arrow_reader(ROW_GROUP))

"""What events tell of topics' states, and the states that are known already, in columns of one
form.

Rule: whoever looks at some events leaves out only what it knows to change nothing: the same state
again, with neither a missing event nor a barrier in between. Events that were refused tell of a
state, too: after a gap it may be all there is.
"""

from collections.abc import Sequence
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..schemas import BOOLEAN, INT, LONG, STATE, STRING, TIME
from .barriers import SNAPSHOT, Flags, Numbers, Places

SEEN = "seen"
"""The cause where an event shows a state that it did not make."""
REASSIGNMENT = "reassignment"
"""The cause where a reassignment went on or ended."""
OF_EVENTS = (
    *("epoch", "sequence", "time", "kind", "resource", "name", "operation", "effect", "principal"),
    *("reassignment", "after", "topics"),
)
"""The columns of `events` that tell of topics."""
CHANGE = ("epoch", "sequence", "time", "cause", "principal")
"""What is known of the event that begins a row of `topic_history`, and of the one that ends it."""
NO_TOPIC = -1
"""The number where an event tells of none."""
HASH = pa.uint64()
TOLD = pa.schema(
    [
        pa.field("topic", STRING, nullable=False),
        pa.field("epoch", INT, nullable=False),
        pa.field("origin", LONG, nullable=False),
        pa.field("time", TIME),
        pa.field("cause", STRING, nullable=False),
        pa.field("principal", STRING),
        *(pa.field(field.name, field.type) for field in STATE),
        pa.field("sequence", LONG, nullable=False),
        pa.field("in_snapshot", BOOLEAN, nullable=False),
        pa.field("bucket", HASH, nullable=False),
        pa.field("digest", HASH, nullable=False),
    ]
)
"""`origin` is the event that tells it; `sequence` and `time` say where it takes effect. `topic_id`
and the rest of the state is null where there is no topic. `bucket` depends on the topic's name
alone. `digest` differs where the state differs, apart from the time of creation, for which two
clocks may differ.
"""
HASHES = """
    hash(topic) AS bucket,
    if(topic_id IS NULL, 0, hash(
        topic_id, flatten(replicas), list_transform(replicas, lambda each: len(each)),
        list_sort(map_entries(configs)), marked_for_deletion
    )) AS digest
"""
"""In DuckDB's SQL. The lengths are needed because DuckDB's hash of [[1], [2]] is that of [[1, 2]],
and configs are sorted because their order tells nothing.
"""


def told_by(events: pa.RecordBatch, places: Places) -> pa.RecordBatch:
    """Return what events of one cluster tell of topics, with the columns TOLD, in the order of the
    buckets. `events` has the columns OF_EVENTS, and is in the order of the file.
    """
    tells, one_by_one = _one_by_one(events)
    parts, of_snapshots = _snapshots(events)
    at = np.append(np.arange(len(tells)), parts)
    tells = np.append(tells, np.ones(len(parts), np.bool_))
    in_snapshot = np.arange(len(at)) >= events.num_rows
    told = pa.concat_batches([one_by_one, of_snapshots])
    epoch, origin, time = (numbers(told, name) for name in ("epoch", "origin", "time"))
    sequence, time, segment, takes_effect = places.of(epoch, origin, time, in_snapshot)
    told = _completed(told.set_column(TOLD.names.index("time"), "time", pa.array(time, TIME)), sequence, in_snapshot)
    takes_effect &= tells
    topic = np.where(tells, codes(told.column("topic")), NO_TOPIC)
    order = np.lexsort((at, topic))
    same = [np.diff(each[order]) == 0 for each in (topic, numbers(told, "digest"), _stretches(events)[at], segment)]
    is_new = np.ones(told.num_rows, np.bool_)
    is_new[order[1:]] = ~np.logical_and.reduce([*same, takes_effect[order[:-1]]]) | in_snapshot[order[1:]]
    return _in_order(told, np.flatnonzero(takes_effect & is_new))


def known_by(rows: pa.RecordBatch, is_wanted: pa.BooleanArray) -> pa.RecordBatch:
    """Return those rows of `topic_history` that are wanted as if their first events told them now,
    with the columns TOLD, in the order of the buckets.
    """
    names = ("topic", *(f"from_{name}" for name in CHANGE), *(field.name for field in STATE))
    known = _batch([rows.column(name) for name in names])
    known = _completed(known, numbers(known, "origin"), np.zeros(known.num_rows, np.bool_))
    return _in_order(known, _where(is_wanted))


def _in_order(told: pa.RecordBatch, at: Numbers) -> pa.RecordBatch:
    """Take some rows in the order of their buckets: together, because states are dear to copy."""
    return told.take(pa.array(at[np.argsort(numbers(told, "bucket")[at], kind="stable")]))


def numbers(rows: pa.RecordBatch, name: str) -> Numbers:
    column = rows.column(name)
    found: Numbers = (column.view(LONG) if column.type == HASH else column.cast(LONG)).to_numpy()
    return found


def codes(texts: pa.Array) -> Numbers:
    """Number texts, equal ones alike."""
    found: Numbers = texts.dictionary_encode().indices.to_numpy()
    return found


def _one_by_one(events: pa.RecordBatch) -> tuple[Flags, pa.RecordBatch]:
    """Return what events tell of one topic each, a row for each event, and whether it tells any."""
    kind, name = events.column("kind"), events.column("name")
    is_decision = pc.equal(kind, "decision")
    is_of_topic = pc.and_(is_decision, pc.and_(pc.equal(events.column("resource"), "topic"), pc.not_equal(name, "")))
    tells = _flags(pc.or_kleene(is_of_topic, pc.is_in(kind, pa.array(["removal", "observed"]))))
    is_applied = pc.equal(events.column("effect"), "applied")
    conditions = (is_applied, is_decision, events.column("reassignment"))
    cause = pc.case_when(
        pc.make_struct(*(pc.fill_null(each, False) for each in conditions)),
        *(events.column("operation"), SEEN, REASSIGNMENT, kind),
    )
    principal = pc.if_else(is_applied, events.column("principal"), None)
    return tells, _told(events, pc.fill_null(name, ""), cause, principal, events.column("after"))


def _snapshots(events: pa.RecordBatch) -> tuple[Numbers, pa.RecordBatch]:
    """Return what parts of snapshots tell, behind the numbers of their rows."""
    parts = _where(pc.equal(events.column("kind"), "snapshot_topics"))
    topics = events.column("topics").take(pa.array(parts))
    names, states = topics.flatten().flatten()
    there = _where(pc.is_valid(states))
    at = parts[pc.list_parent_indices(topics).to_numpy()[there]]
    some = events.select(("epoch", "sequence", "time")).take(pa.array(at))
    cause, principal = pa.repeat(SNAPSHOT, len(at)), pa.nulls(len(at), STRING)
    return at, _told(some, names.take(pa.array(there)), cause, principal, states.take(pa.array(there)))


def _told(
    events: pa.RecordBatch, topic: pa.Array, cause: pa.Array, principal: pa.Array, state: pa.StructArray
) -> pa.RecordBatch:
    place = [events.column(name) for name in ("epoch", "sequence", "time")]
    return _batch([topic, *place, cause, principal, *state.flatten()])


def _completed(told: pa.RecordBatch, sequence: Numbers, in_snapshot: Flags) -> pa.RecordBatch:
    """Add the columns that are not known from an event alone."""
    hashes = _duckdb().from_arrow(pa.Table.from_batches([told])).project(HASHES).to_arrow_table()
    made = (column.combine_chunks() for column in hashes.columns)
    return _batch([*told.columns, pa.array(sequence), pa.array(in_snapshot), *made])


def _batch(columns: Sequence[pa.Array]) -> pa.RecordBatch:
    """Make a batch of the first columns of TOLD."""
    return pa.RecordBatch.from_arrays(list(columns), schema=pa.schema(list(TOLD)[: len(columns)]))


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def _stretches(events: pa.RecordBatch) -> Numbers:
    """Number the stretches of events without a gap. [n]"""
    follows = (np.diff(numbers(events, "epoch")) == 0) & (np.diff(numbers(events, "sequence")) == 1)
    return np.append(np.zeros(1, np.int64), np.cumsum(~follows))[: events.num_rows]


def _where(flags: pa.BooleanArray) -> Numbers:
    """Return the numbers of the rows where a flag is true, and not null."""
    return np.flatnonzero(_flags(flags))


def _flags(flags: pa.BooleanArray) -> Flags:
    found: Flags = pc.fill_null(flags, False).to_numpy(zero_copy_only=False)
    return found

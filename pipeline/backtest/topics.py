"""Reads the topics at the begin of a slice, and the existing ones, from the table `topic_history`.

A worker reads only files and row groups whose statistics allow such rows. A state holds after an
event if it began at or before the event, and ended later.
"""

from collections.abc import Iterator, Sequence
from functools import cache

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...audit.event import RecordedState
from ..database import connected
from ..datafiles import DataFile
from ..ingest.sequence_ranges import Position
from ..location import File
from ..schemas import Table
from .existing import Existing
from .reading import columns_of, reading

SCHEMA = Table.TOPIC_HISTORY.in_files
STATE = ("topic", "topic_id", "replicas", "configs", "marked_for_deletion", "internal", "created")
STATES = """
    topic, to_json({'topic_id': topic_id, 'replicas': replicas, 'configs': configs, 'internal': internal,
        'marked_for_deletion': marked_for_deletion, 'created_ms': epoch_us(created) // 1000})
"""
FROM, UNTIL = ("from_epoch", "from_sequence"), ("until_epoch", "until_sequence")
_decoded = msgspec.json.Decoder(RecordedState).decode


def may_have(file: DataFile, after: Position) -> bool:
    """Whether a file may have states that held after an event, as far as its statistics show."""
    begins_later = file.nulls.get(FROM[0]) == 0 and int(file.low.get(FROM[0], 0)) > after[0]
    ended_before = file.nulls.get(UNTIL[0]) == 0 and int(file.high.get(UNTIL[0], after[0])) < after[0]
    return not (begins_later or ended_before)


def states_after(files: Sequence[str], after: Position) -> Iterator[tuple[str, RecordedState]]:
    """Yield the topics after an event, by name. Raises UnreadableTableError."""
    has_begun = pc.field(FROM[0]).is_null() | ~_is_later(FROM, after)
    for file in files:
        lasts = pc.field(UNTIL[0]).is_null() | _is_later(UNTIL, after)
        yield from _states(columns_of([file], SCHEMA, STATE, has_begun & lasts))


def topics_today(files: Sequence[str]) -> Iterator[Existing]:
    """Yield the last states, with the principal that created the topic if the history has it.
    Raises UnreadableTableError.
    """
    if not files:
        return
    there = columns_of(files, SCHEMA, STATE, pc.field(UNTIL[0]).is_null())
    are_theirs = pc.field("topic_id").isin(there.column("topic_id").unique())
    is_creation = pc.field("from_cause") == "create_topic"
    creations = columns_of(files, SCHEMA, ("topic", "topic_id", "from_principal"), is_creation & are_theirs)
    creators: dict[tuple[str, str], str | None] = {}
    for row in creations.to_pylist():
        creators.setdefault((row["topic"], row["topic_id"]), row["from_principal"])
    for topic, state in _states(there):
        yield Existing(topic, state, creators.get((topic, state.topic_id)))


def check_readable(files: Sequence[str]) -> None:
    """Look into files, so that a fault of one is reported before anything relies on it. Raises
    UnreadableTableError.
    """
    for file in files:
        with reading(file):
            found = File.parse(file)
            pq.read_metadata(found.name, filesystem=found.folder.filesystem())


def _is_later(names: tuple[str, str], position: Position) -> pc.Expression:
    epoch, sequence = map(pc.field, names)
    return (epoch > position[0]) | ((epoch == position[0]) & (sequence > position[1]))


def _states(table: pa.Table) -> Iterator[tuple[str, RecordedState]]:
    """Yield the states of a table, by way of JSON: Arrow would make an object of each value."""
    for topic, state in _duckdb().from_arrow(table).project(STATES).fetchall():
        yield topic, _decoded(state)


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    return connected()

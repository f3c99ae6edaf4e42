"""The topics at the begin of slices, and those of today: out of the files of `topic_history`, on
their way through Spark as columns of Arrow.

Rule: each file is read once, whatever the number of slices. A state held after an event if it began
with it or before, and did not end with it or before.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...audit.event import RecordedState
from ..ingest.barriers import Numbers, Segments
from ..schemas import Table
from .existing import Existing
from .reading import NOTHING, columns_of, numbers_of
from .replaying import Place

STATE = ("topic", "topic_id", "replicas", "configs", "marked_for_deletion", "internal", "created")
FROM, UNTIL = ("from_epoch", "from_sequence"), ("until_epoch", "until_sequence")


class Lived(msgspec.Struct, frozen=True):
    """Some topics of a cluster, and which of their states are wanted."""

    file: str
    """Of `topic_history`."""
    begins: tuple[tuple[Place, int], ...]
    """After which event, in the order of the log, with the number of who wants to know."""


class Today(msgspec.Struct, frozen=True):
    """The topics of a cluster, whose last states are wanted."""

    files: tuple[str, ...]
    """Of `topic_history`."""
    number: int
    """Of who wants to know."""


def states_at_begins(lived: Lived) -> Iterator[tuple[int, bytes]]:
    """Yield the states of topics at the begin of slices, each with the slice's number. Raises
    UnreadableTableError.
    """
    table = columns_of([lived.file], Table.TOPIC_HISTORY.in_files, [*STATE, *FROM, *UNTIL])
    begins = Segments(place for place, _ in lived.begins)
    first, end = (_begins_before(table, begins, names) for names in (FROM, UNTIL))
    end[numbers_of(table, UNTIL[0]) == NOTHING] = len(lived.begins)
    for index, (_, number) in enumerate(lived.begins):
        rows = np.flatnonzero((first <= index) & (index < end))
        if len(rows):
            yield number, _packed(table.take(pa.array(rows)).select(STATE))


def states_today(today: Today) -> Iterator[tuple[int, bytes]]:
    """Yield the last states, with the principal that created the topic or null. Raises
    UnreadableTableError.
    """
    schema = Table.TOPIC_HISTORY.in_files
    there = columns_of(today.files, schema, STATE, pc.field(UNTIL[0]).is_null())
    are_theirs = pc.field("topic_id").isin(there.column("topic_id").unique())
    is_creation = pc.field("from_cause") == "create_topic"
    creations = columns_of(today.files, schema, ("topic", "topic_id", "from_principal"), is_creation & are_theirs)
    creators: dict[tuple[str, str], str | None] = {}
    for topic, topic_id, principal in _rows(creations, "topic", "topic_id", "from_principal"):
        creators.setdefault((topic, topic_id), principal)
    if there.num_rows:
        principals = [creators.get((topic, topic_id)) for topic, topic_id in _rows(there, "topic", "topic_id")]
        yield today.number, _packed(there.select(STATE).append_column("principal", pa.array(principals, pa.string())))


def states(packed: bytes) -> Iterator[tuple[str, RecordedState]]:
    """Unpack states by the topic's name."""
    yield from _states(_unpacked(packed))


def existing(packed: bytes) -> Iterator[Existing]:
    """Unpack what `states_today` returned."""
    table = _unpacked(packed)
    for (topic, state), (principal,) in zip(_states(table), _rows(table, "principal"), strict=True):
        yield Existing(topic, state, principal)


def _begins_before(table: pa.Table, begins: Segments, names: Sequence[str]) -> Numbers:
    """Count for each place the slices that begin before it."""
    epoch, sequence = (numbers_of(table, name) for name in names)
    return begins.number(epoch, sequence - 1)


def _rows(table: pa.Table, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table.column(name).to_pylist() for name in names), strict=True)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(packed: bytes) -> pa.Table:
    return pa.ipc.open_stream(packed).read_all().combine_chunks()


def _states(table: pa.Table) -> Iterator[tuple[str, RecordedState]]:
    """Yield the states of a table. Nested columns are taken apart as a whole: value by value, Arrow
    would make an object of each.
    """
    of = {name: table.column(name).chunk(0) for name in STATE}
    rows = of["replicas"].flatten()
    partitions = _parts(rows.flatten().to_pylist(), rows)
    names, values = (texts.to_pylist() for texts in (of["configs"].keys, of["configs"].items))
    created = pc.divide(of["created"].cast(pa.int64()), 1000).to_pylist()
    for topic, topic_id, replicas, configs, marked_for_deletion, internal, created_ms in zip(
        of["topic"].to_pylist(),
        of["topic_id"].to_pylist(),
        _parts(partitions, of["replicas"]),
        _parts(list(zip(names, values, strict=True)), of["configs"]),
        of["marked_for_deletion"].to_pylist(),
        of["internal"].to_pylist(),
        created,
        strict=True,
    ):
        yield topic, RecordedState(
            topic_id=topic_id, replicas=replicas, configs=dict(configs), marked_for_deletion=marked_for_deletion, internal=internal,
            created_ms=created_ms,
        )  # fmt: skip


def _parts(values: list[Any], lists: pa.ListArray) -> list[tuple[Any, ...]]:
    """Divide values into lists."""
    return [tuple(values[begin:end]) for begin, end in pairwise(lists.offsets.to_pylist())]

"""Makes the columns of the table `events` from lines, for the readers of audit files.

msgspec's strict decode alone judges what an event is, and the columns are made of what it decoded,
so no second parser can read a line differently. Rule: column by column, never row by row, because
tens of thousands of lines a second pass here, and states and requests, which are most of a line and
are repeated by the next ones, once for each that is different; only a block with a value that does
not fit is looked at more closely.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple, Union, get_args

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from ...audit.event import (
    AuditEvent,
    Decision,
    Event,
    PolicyDecision,
    RecordedState,
    Requested,
    RuleFinding,
    SnapshotTopics,
    UnreadableLineError,
    decode,
)
from ..schemas import BOOLEAN, DAY, FINDING, INT, LONG, NAMED_STATE, REQUESTED, STATE, STRING, TIME, Table, list_of
from . import limits
from .limits import MAX_MS, MIN_MS
from .raw_fields import Replicas, Text, arrays_of, with_texts
from .staging_result import MAX_REASON

SCHEMA = Table.EVENTS.schema
LINE = "event"
DECISION = "decision"
DAY_MS = 86_400_000

Values = Mapping[str, Any]
"""The values of some events by name, or the columns that are made of them."""
_NO_STATE: tuple[Any, ...] = ("", b"[]", {}, False, False, None)
_NO_REQUEST: tuple[Any, ...] = (b"[]", {}, False, False, False, {})
"""The fields of a state and of a request that stand beneath a null, with replicas as JSON."""


class InvalidLine(NamedTuple):
    """A line that is no event of the tables."""

    number: int
    """The index of the line, from 0."""
    reason: str
    line: bytes


class Block(NamedTuple):
    """The rows that lines make, and the lines that are bad."""

    rows: pa.RecordBatch
    bad: list[InvalidLine]


class _Located(NamedTuple):
    number: int
    line: bytes


def columns(lines: Sequence[bytes]) -> Block:
    """Make rows of lines, in their order. Raises nothing, whatever a line holds."""
    try:
        return Block(event_rows(lines), [])
    except MISFITS:
        return _closely(lines)


def _closely(lines: Sequence[bytes]) -> Block:
    good, bad = list[_Located](), list[InvalidLine]()
    for number, line in enumerate(lines):
        try:
            decode(line)
            line.decode()
            good.append(_Located(number, line))
        except UnreadableLineError as error:
            bad.append(InvalidLine(number, str(error)[:MAX_REASON], line))
        except UnicodeDecodeError:
            bad.append(InvalidLine(number, "not UTF-8", line))
    parts = list(_fitting(good))
    batches = [part for part in parts if not isinstance(part, InvalidLine)]
    bad += [part for part in parts if isinstance(part, InvalidLine)]
    return Block(pa.concat_batches([event_rows([]), *batches]), sorted(bad))


def _fitting(some: Sequence[_Located]) -> Iterator[pa.RecordBatch | InvalidLine]:
    """Yield rows of events, which are halved until those are alone that do not fit."""
    try:
        yield event_rows([each.line for each in some])
    except MISFITS as error:
        if len(some) == 1:
            yield InvalidLine(some[0].number, limits.reason(error)[:MAX_REASON], some[0].line)
            return
        yield from _fitting(some[: len(some) // 2])
        yield from _fitting(some[len(some) // 2 :])


def event_rows(lines: Sequence[bytes]) -> pa.RecordBatch:
    """Make rows of the lines of events. Raises one of MISFITS if a line is none, or if a value does
    not fit into its column.
    """
    if not lines:
        return pa.RecordBatch.from_pylist([], SCHEMA)
    values = dict(zip(_NAMES, zip(*map(_values, map(_decode, lines)), strict=True), strict=True))
    limits.check(values)
    made = {**values, **_made(values), **_of_policies(values["policy"]), LINE: lines}
    return pa.RecordBatch.from_arrays([array(made[field.name], field.type) for field in SCHEMA], schema=SCHEMA)


MISFITS = (*limits.MISFITS, msgspec.DecodeError, RecursionError)
"""The exceptions that `event_rows` raises."""
_KINDS = {with_texts(kind): kind for kind in get_args(AuditEvent)}
_DECISION = next(iter(_KINDS))
_decode: Callable[[bytes], msgspec.Struct] = msgspec.json.Decoder(Union[tuple(_KINDS)]).decode  # noqa: UP007 - of a tuple


_NAMES = (*Decision.__struct_fields__, "kind", "topics", "reassignment", "first_sequence", "last_sequence")
"""The names of the values that columns are made of: the fields of a decision, and those of other
events.
"""


def _values(event: msgspec.Struct) -> tuple[Any, ...]:
    if type(event) is _DECISION:
        return *astuple(event), DECISION, None, None, None, None
    return _PICKED[type(event)]((None, event.__struct_config__.tag, *astuple(event)))


def _picker(kind: type[Event]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    names = [None, "kind", *(_renamed(kind, name) for name in kind.__struct_fields__)]
    return itemgetter(*(names.index(name) if name in names else 0 for name in _NAMES))


def _renamed(kind: type[Event], name: str) -> str | None:
    """Name the column of a field. `topics` is a number in some events, which has none."""
    if name == "topics" and kind is not SnapshotTopics:
        return None
    return "name" if name == "topic" else name


_PICKED = {left: _picker(kind) for left, kind in _KINDS.items()}


def _made(values: Values) -> Values:
    """Make the columns that are not the values of the same name."""
    kind, asked_ms = pa.array(values["kind"], STRING), pa.array(values["asked_ms"], LONG)
    before, after = states(values["before"], values["after"])
    return {
        "kind": kind,
        "time": times(values["time_ms"]),
        "day": pa.array([ms // DAY_MS for ms in values["time_ms"]], INT).cast(DAY),
        "asked_ms": asked_ms,
        "asked": pc.if_else(pc.equal(kind, DECISION), pc.is_valid(asked_ms), pa.scalar(None, BOOLEAN)),
        "requested": requests(values["requested"]),
        "before": before,
        "after": after,
        "partitions_before": _partitions(before),
        "partitions_after": _partitions(after),
        "topics": snapshots(values["topics"]),
        "effect": msgspec.to_builtins(values["effect"]),
    }


def _partitions(states_: pa.StructArray) -> pa.Array:
    return pc.list_value_length(pc.struct_field(states_, "replicas"))


def _of_policies(policies: Sequence[PolicyDecision | None]) -> Values:
    """Make the columns of the policy's verdicts."""
    rows = [_NO_POLICY if policy is None else astuple(policy) for policy in policies]
    values = transposed(rows, PolicyDecision)
    return {
        **{name: values[name] for name in ("policy", "decision", "policy_hash", "rule")},
        "findings": findings(values["findings"]),
        "policy_message": values["message"],
        "policy_us": values["microseconds"],
    }


_NO_POLICY = (None,) * len(PolicyDecision.__struct_fields__)


def array(values: Any, type_: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if (
        len(values) > 1
        and values[0] == values[-1]
        and not pa.types.is_nested(type_)
        and values.count(values[0]) == len(values)
    ):
        return pa.repeat(pa.scalar(values[0], type_), len(values))  # takes a tenth of the time
    return pa.array(values, type_)


def transposed(rows: Sequence[Sequence[Any]], kind: type[msgspec.Struct]) -> dict[str, Sequence[Any]]:
    """Return the fields of structs, which are given as tuples, by name."""
    names = kind.__struct_fields__
    return dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))


def times(milliseconds: Sequence[int | None]) -> pa.Array:
    found = pa.array(milliseconds, LONG)
    ends = pc.min_max(found).as_py()
    for end in ends.values():
        if end is not None and not MIN_MS <= end <= MAX_MS:
            raise ValueError(f"the time {end} ms is in no year that a calendar has")
    return pc.multiply(found, pa.scalar(1000, LONG)).cast(TIME)


def states(*columns: Sequence[Text]) -> Iterator[pa.StructArray]:
    return arrays_of(RecordedState | None, _states, *columns)


def _states(values: Sequence[Any]) -> pa.StructArray:
    fields = transposed([_NO_STATE if value is None else astuple(value) for value in values], RecordedState)
    made = {"replicas": _replicas(fields["replicas"]), "created": times(fields["created_ms"])}
    return _structs(STATE, fields | made, values)


def requests(column: Sequence[Text]) -> pa.StructArray:
    return next(arrays_of(Requested | None, _requests, column))


def _requests(values: Sequence[Any]) -> pa.StructArray:
    fields = transposed([_NO_REQUEST if value is None else astuple(value) for value in values], Requested)
    return _structs(REQUESTED, fields | {"replicas": _replicas(fields["replicas"])}, values)


def _replicas(texts: Sequence[Text]) -> pa.ListArray:
    return next(arrays_of(Replicas, partial(pa.array, type=STATE.field("replicas").type), texts))


def findings(values: Sequence[Sequence[RuleFinding] | None]) -> pa.ListArray:
    flat = [astuple(finding) for some in values if some for finding in some]
    return _lists(_structs(FINDING, transposed(flat, RuleFinding), flat), values)


def snapshots(values: Sequence[Sequence[Any] | None]) -> pa.ListArray:
    flat = [topic for some in values if some for topic in some]
    topics = {"topic": [each.topic for each in flat], "state": next(states([each.state for each in flat]))}
    return _lists(_structs(NAMED_STATE, topics, flat), values)


def _structs(type_: pa.StructType, fields: Mapping[str, Any], values: Sequence[Any]) -> pa.StructArray:
    children = [array(fields[field.name], field.type) for field in type_]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _lists(flat: pa.Array, values: Sequence[Sequence[Any] | None]) -> pa.ListArray:
    """Divide an array into lists as long as the values; they are null where a value is None."""
    offsets = pa.array(accumulate((len(value) if value else 0 for value in values), initial=0), pa.int32())
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(offsets, flat, type=list_of(flat.type), mask=mask)

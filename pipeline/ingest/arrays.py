"""Arrow's arrays of what msgspec decoded: topics' states, requests, findings, snapshots.

Rule: all values of a column at once. A value that does not fit raises ValueError (pa.ArrowInvalid
is one) or OverflowError, and never becomes another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from ...audit.event import RecordedState, Requested, RuleFinding
from ..schemas import FINDING, LONG, NAMED_STATE, REQUESTED, STATE, TIME, list_of
from .limits import MAX_MS, MIN_MS
from .raw_fields import Replicas, Text, arrays_of

_NO_STATE: tuple[Any, ...] = ("", b"[]", {}, False, False, None)
_NO_REQUEST: tuple[Any, ...] = (b"[]", {}, False, False, False, {})
"""The fields of a state and of a request that stand beneath a null, with replicas as JSON."""


def array(values: Any, type_: pa.DataType) -> pa.Array:
    """Make an array of values, unless they are one already."""
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
    """Make structs of their fields; they are null where a value is None."""
    children = [array(fields[field.name], field.type) for field in type_]
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=mask)


def _lists(flat: pa.Array, values: Sequence[Sequence[Any] | None]) -> pa.ListArray:
    """Divide an array into lists as long as the values; they are null where a value is None."""
    offsets = pa.array(accumulate((len(value) if value else 0 for value in values), initial=0), pa.int32())
    mask = pa.array([value is None for value in values], pa.bool_())
    return pa.ListArray.from_arrays(offsets, flat, type=list_of(flat.type), mask=mask)

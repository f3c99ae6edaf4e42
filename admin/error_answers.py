"""Makes responses that refuse a whole request, and finds the errors in responses.

The `Spec` of an API declares how its responses differ. Fields that a version lacks keep their
defaults, because a message with other values there cannot be encoded.
"""

from collections.abc import Collection, Iterator
from typing import Any

from ..protocol.error_codes import ErrorCode
from ..protocol.schema import WireStruct
from .bounds import MAX_REPEATED_BYTES
from .spec import Fields, InnerRows, Rows, Spec


def error_answer(spec: Spec, request: Any, version: int, *, code: ErrorCode, message: str | None = None) -> Any:
    """Return the response that refuses the whole of `request`, with a row for each thing it names.

    UNKNOWN_SERVER_ERROR never carries a message, which might reveal a secret. If the messages of
    the rows would exceed MAX_REPEATED_BYTES together, no row has one.
    """
    response, rows = spec.api.response, spec.rows
    if code == ErrorCode.UNKNOWN_SERVER_ERROR:
        message = None
    if rows is None:
        return response(**_error(response, code, message))
    if version >= rows.since:
        return response(**_rows(rows, request, code, message))
    earlier: Fields = {} if rows.before is None else _rows(rows.before, request, code, message)
    return response(**rows.fixed, **earlier, **_error(response, code, message))


def _rows(rows: Rows, request: Any, code: ErrorCode, message: str | None) -> Fields:
    """Return the field of a response that has the rows, with a row for each thing that the request
    names.
    """
    named = [(fields, getattr(request, field, None) or ()) for field, fields in rows.named_in.items()]
    if rows.distinct:
        by_name = {tuple(fields(thing).values()): (fields, (thing,)) for fields, things in named for thing in things}
        named = [by_name[name] for name in sorted(by_name)]
    if message and sum(_count(rows, things) for _, things in named) * len(message) > MAX_REPEATED_BYTES:
        message = None
    message = rows.default_message(code) if message is None else message
    return {
        rows.field: [_row(rows, thing, fields(thing), code, message) for fields, things in named for thing in things]
    }


def _count(rows: Rows, things: Collection[Any]) -> int:
    """Return the number of rows with an error code for these things."""
    inner = rows.inner
    return len(things) if inner is None else sum(_count_inner(inner, thing) for thing in things)


def _count_inner(rows: InnerRows, thing: Any) -> int:
    inner = rows.inner
    if inner is None:
        return sum(1 for _ in rows.named(thing))
    return sum(_count_inner(inner, part) for part in rows.parts(thing))


def _row(rows: Rows, thing: Any, fields: Fields, code: ErrorCode, message: str | None) -> WireStruct:
    inner = rows.inner
    if inner is None:
        return rows.row(**fields, **rows.fixed, **_error(rows.row, code, message))
    return rows.row(**fields, **_inner_rows(inner, thing, rows.fixed, code, message))


def _inner_rows(rows: InnerRows, thing: Any, fixed: Fields, code: ErrorCode, message: str | None) -> Fields:
    inner = rows.inner
    if inner is None:
        error = {**fixed, **_error(rows.row, code, message)}
        return {rows.field: [rows.row(**each, **error) for each in rows.named(thing)]}
    parts = zip(rows.named(thing), rows.parts(thing), strict=True)
    return {rows.field: [rows.row(**each, **_inner_rows(inner, part, fixed, code, message)) for each, part in parts]}


def _error(struct: type[WireStruct], code: ErrorCode, message: str | None) -> Fields:
    fields = struct.__struct_fields__
    if "error_message" in fields:
        return {"error_code": code, "error_message": message}
    return {"error_code" if "error_code" in fields else "partition_error_code": code}


def refuses_everything(spec: Spec, response: Any, code: ErrorCode) -> bool:
    """Return whether the response has error codes and all of them are `code`, so that nothing of
    the request was done.
    """
    codes = list(error_codes(spec, response))
    return bool(codes) and all(found == code for found in codes)


def error_codes(spec: Spec, response: Any) -> Iterator[int]:
    """Yield the error codes of the rows of the response, and its own one, which counts beside rows
    only if it is an error.
    """
    own = getattr(response, "error_code", None)
    if own is not None and (own or spec.rows is None):
        yield own
    if spec.rows is not None:
        for row in _rows_with_codes(spec.rows, response):
            yield row.error_code


def _rows_with_codes(rows: Rows | InnerRows, outer: Any) -> Iterator[Any]:
    for row in getattr(outer, rows.field):
        if isinstance(row, bytes):
            continue  # it was encoded, and its error noted
        if rows.inner is None:
            yield row
        else:
            yield from _rows_with_codes(rows.inner, row)


def first_error(spec: Spec, response: Any) -> int:
    """Return the first error code of a response, or 0 if it has none. Encoded rows are skipped;
    their errors were noted when they were made.
    """
    code: int = getattr(response, "error_code", 0)
    rows = spec.rows
    while rows is not None and not code:
        code = _first_error_below(rows, response)
        rows = rows.before
    return code


def _first_error_below(rows: Rows | InnerRows, outer: Any) -> int:
    inner = rows.inner
    for row in getattr(outer, rows.field):
        if isinstance(row, bytes):
            continue  # it was encoded, and its error noted
        code: int = row.error_code if inner is None else _first_error_below(inner, row)
        if code:
            return code
    return 0


def first_error_of_row(spec: Spec, field: str, row: Any) -> int:
    """Return the first error code of one row of a response, from the array with this name."""
    rows = spec.rows
    while rows is not None and rows.field != field:
        rows = rows.before
    if rows is None or rows.inner is None:
        return getattr(row, "error_code", 0)
    return _first_error_below(rows.inner, row)

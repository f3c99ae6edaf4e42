"""Makes responses that refuse a whole request, and finds the errors in responses.

The `Spec` of an API declares how its responses differ. Fields that a version lacks keep their
defaults, because a message with other values there cannot be encoded.
"""

from collections.abc import Iterator
from typing import Any

from ...protocol.error_codes import ErrorCode
from ...protocol.registry import KAFKA
from ...protocol.schema import WireStruct
from .bounds import MAX_REPEATED_BYTES
from .spec import Fields, Spec

LOOKED_AT = 16
"""The number of rows of a read's response that are searched for an error. A handler that makes more
rows notes the first error itself (`long_answers.py`).
"""


def error_answer(spec: Spec, request: Any, version: int, *, code: ErrorCode, message: str | None = None) -> Any:
    """Return the response that refuses the whole of `request`, with a row for each thing it names.

    UNKNOWN_SERVER_ERROR never carries a message, which might reveal a secret. If the messages of
    the rows would exceed MAX_REPEATED_BYTES together, no row has one.
    """
    response, rows = KAFKA[spec.key].response, spec.rows
    if code == ErrorCode.UNKNOWN_SERVER_ERROR:
        message = None
    if rows is None:
        return response(**_error(response, code, message))
    named = [(fields, getattr(request, field, None) or ()) for field, fields in rows.named_in.items()]
    if message and sum(len(things) for _, things in named) * len(message) > MAX_REPEATED_BYTES:
        message = None
    if version < rows.since:
        return response(**rows.fixed, **_error(response, code, message))
    error = {**rows.fixed, **_error(rows.row, code, rows.default_message(code) if message is None else message)}
    answered: dict[str, Any] = {
        rows.field: [rows.row(**fields(thing), **error) for fields, things in named for thing in things]
    }
    return response(**answered)


def _error(struct: type[WireStruct], code: ErrorCode, message: str | None) -> Fields:
    if "error_message" in struct.__struct_fields__:
        return {"error_code": code, "error_message": message}
    return {"error_code": code}


def refuses_everything(spec: Spec, response: Any, code: ErrorCode) -> bool:
    """Return whether the response has error codes and all of them are `code`, so that nothing of
    the request was done.
    """
    codes = list(error_codes(spec, response))
    return bool(codes) and all(found == code for found in codes)


def error_codes(spec: Spec, response: Any) -> Iterator[int]:
    """Yield the error code of the response, if it has one, and those of its rows."""
    own = getattr(response, "error_code", None)
    if own is not None:
        yield own
    if spec.rows is not None:
        for row in getattr(response, spec.rows.field):
            yield row.error_code


def first_error(spec: Spec, response: Any) -> int:
    """Return the first error code of a response, or 0 if it has none. Encoded rows are skipped;
    their errors were noted when they were made.
    """
    code: int = getattr(response, "error_code", 0)
    if code or spec.rows is None:
        return code
    rows = getattr(response, spec.rows.field)
    for row in rows if spec.changes is not None else rows[:LOOKED_AT]:
        code = getattr(row, "error_code", 0)
        if code:
            return code
    return 0

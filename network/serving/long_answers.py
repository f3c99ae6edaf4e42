"""Answers with very many rows, made and encoded row by row so that other tasks run in between.

The error code of an encoded row cannot be read, so the first error is noted in the request's
context when its row is made.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TypeVar, cast

from ...process.time_slices import in_time_slices
from ...protocol.compiler import encoder
from ...protocol.schema import WireStruct
from .context import RequestContext

R = TypeVar("R", bound=WireStruct | bytes)

AT_ONCE = 100
"""The most rows that are made without letting other tasks run."""


AT_ONCE_CHARACTERS = 10_000
"""The most characters that all names in a request may have to be hashed without letting other tasks
run.
"""


def are_few(names: Collection[str]) -> bool:
    return len(names) <= AT_ONCE and sum(map(len, names)) <= AT_ONCE_CHARACTERS


def noted(rows: Iterable[R], context: RequestContext) -> Iterator[R]:
    """Yield the rows, and note their first error in `context.first_error`."""
    for row in rows:
        note(getattr(row, "error_code", 0), context)
        yield row


def note(error_code: int, context: RequestContext) -> None:
    if error_code and not context.first_error:
        context.first_error = error_code


async def rows_in_time_slices(rows: Iterable[R], context: RequestContext) -> list[R]:
    """Return the rows for an encoder. All but the first are already encoded; those that were
    encoded before are left as they are.
    """
    all_of_them = noted(rows, context)
    first = await in_time_slices(islice(all_of_them, AT_ONCE))
    rest = await in_time_slices(_encoded(row, context.api_version) for row in all_of_them)
    return [*first, *cast("list[R]", rest)]


def _encoded(row: WireStruct | bytes, version: int) -> bytes:
    return row if isinstance(row, bytes) else encoder(type(row), version)(row)

"""Answers of very many rows, which are made and encoded row by row so that other tasks run in
between.

The error code of a row cannot be read once the row is encoded. Therefore the first error is noted
in the request's context when its row is made.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TypeVar, cast

from ...protocol.compiler import encoder
from ...protocol.schema import WireStruct
from .context import RequestContext
from .time_slices import in_time_slices

R = TypeVar("R", bound=WireStruct)

AT_ONCE = 100
"""The most rows that are made at once, which costs no task."""


AT_ONCE_CHARACTERS = 10_000
"""The most characters that the names in a request may have, together, to be hashed at once."""


def are_few(names: Collection[str]) -> bool:
    return len(names) <= AT_ONCE and sum(map(len, names)) <= AT_ONCE_CHARACTERS


def noted(rows: Iterable[R], context: RequestContext) -> Iterator[R]:
    """Yield the rows, and note the first error among them."""
    for row in rows:
        note(getattr(row, "error_code", 0), context)
        yield row


def note(error_code: int, context: RequestContext) -> None:
    if error_code and not context.first_error:
        context.first_error = error_code


async def rows_in_time_slices(rows: Iterable[R], context: RequestContext) -> list[R]:
    """Return the rows for an encoder, all but the first of them encoded already."""
    all_of_them = noted(rows, context)
    first = await in_time_slices(islice(all_of_them, AT_ONCE))
    rest = await in_time_slices(encoder(type(row), context.api_version)(row) for row in all_of_them)
    return [*first, *cast("list[R]", rest)]

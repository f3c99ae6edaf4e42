"""Answers of very many rows: made and encoded row by row, so that others have their turns between
two of them.

An encoded row does not tell its error to those who count outcomes: the first one is noted when its
row is made.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TypeVar, cast

from ...protocol.compiler import encoder
from ...protocol.schema import WireStruct
from .context import RequestContext
from .time_slices import in_turns

R = TypeVar("R", bound=WireStruct)

AT_ONCE = 100
"""Rows: fewer are made in one turn, which costs no task."""


AT_ONCE_CHARACTERS = 10_000
"""Of all names that are hashed for them."""


def are_few(names: Collection[str]) -> bool:
    return len(names) <= AT_ONCE and sum(map(len, names)) <= AT_ONCE_CHARACTERS


def noted(rows: Iterable[R], context: RequestContext) -> Iterator[R]:
    """Yield rows, and note the first error among them."""
    for row in rows:
        note(getattr(row, "error_code", 0), context)
        yield row


def note(error_code: int, context: RequestContext) -> None:
    if error_code and not context.first_error:
        context.first_error = error_code


async def rows_in_turns(rows: Iterable[R], context: RequestContext) -> list[R]:
    """Return the rows for an encoder, which encodes in one turn only what is not encoded yet."""
    all_of_them = noted(rows, context)
    first = await in_turns(islice(all_of_them, AT_ONCE))
    rest = await in_turns(encoder(type(row), context.api_version)(row) for row in all_of_them)
    return [*first, *cast("list[R]", rest)]

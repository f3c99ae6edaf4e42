"""Answers of very many rows: made and encoded row by row, so that others have their turns between two of them.

The first rows stay as they are: an encoded one does not tell its error to those who count outcomes.
"""

from collections.abc import Collection, Iterator
from itertools import islice
from typing import TypeVar, cast

from ...protocol import registry
from ...protocol.schema import WireStruct
from ..turns import in_turns

R = TypeVar("R", bound=WireStruct)

AT_ONCE = 100
"""Rows: fewer are made in one turn, which costs no task."""


AT_ONCE_CHARACTERS = 10_000
"""Of all names that are hashed for them."""


def are_few(names: Collection[str]) -> bool:
    return len(names) <= AT_ONCE and sum(map(len, names)) <= AT_ONCE_CHARACTERS


async def rows_in_turns(rows: Iterator[R], version: int) -> list[R]:
    """All of them, for an encoder."""
    first = await in_turns(islice(rows, AT_ONCE))
    rest = await in_turns(registry.encoder(type(row), version)(row) for row in rows)
    return [*first, *cast("list[R]", rest)]

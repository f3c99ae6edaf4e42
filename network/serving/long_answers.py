"""Responses with very many rows, encoded row by row so that other tasks run in between."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ...process.steps import Steps
from ...process.time_slices import carried_out
from ...protocol.compiler import encoder
from ...protocol.registry import KAFKA
from ...protocol.schema import WireStruct

R = TypeVar("R", bound=msgspec.Struct)

AT_ONCE = 100
"""The most rows that are encoded without letting other tasks run."""

SeeRow = Callable[[str, WireStruct], None]


def with_encoded_rows(response: R, version: int, see: SeeRow = lambda _field, _row: None) -> Steps[R]:
    """Return the response with each row of its long arrays encoded. Rows that were encoded before
    are left as they are. `see` gets each other row, with the name of its array, before it is
    encoded.
    """
    for field in response.__struct_fields__:
        rows = getattr(response, field)
        kind = _kind(rows) if isinstance(rows, list) and len(rows) > AT_ONCE else None
        if kind is not None:
            encode, encoded = encoder(kind, version), []
            for row in rows:
                if isinstance(row, bytes):
                    encoded.append(row)
                else:
                    see(field, row)
                    encoded.append(encode(row))
                yield
            response = msgspec.structs.replace(response, **{field: encoded})
    return response


def _kind(rows: list[object]) -> type[WireStruct] | None:
    row = next((row for row in rows if isinstance(row, WireStruct)), None)
    return None if row is None else type(row)


async def encoded_response(api_key: int, version: int, correlation_id: int, response: Any) -> bytes:
    """Return a response as it is sent, its size included."""
    response = await carried_out(with_encoded_rows(response, version))
    return KAFKA.encode_response(api_key, version, correlation_id, response)

"""Responses with very many rows, encoded row by row so that other tasks run in between."""

from typing import Any, cast

import msgspec

from ..controller.handlers import SPECS
from ..controller.requests.long_answers import AT_ONCE
from ..controller.requests.time_slices import in_time_slices
from ..protocol.compiler import encoder
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct


async def encoded_response(api_key: int, version: int, correlation_id: int, response: Any) -> bytes:
    """Return a response as it is sent, its size included."""
    spec = SPECS.get(KAFKA[api_key].key)
    rows = None if spec is None else spec.rows
    many: list[WireStruct] = [] if rows is None else getattr(response, rows.field)
    if rows is not None and len(many) > AT_ONCE:
        encode = encoder(type(many[0]), version)
        encoded = cast("list[WireStruct]", await in_time_slices(map(encode, many)))
        response = msgspec.structs.replace(response, **{rows.field: encoded})
    return KAFKA.encode_response(api_key, version, correlation_id, response)

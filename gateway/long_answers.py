"""Responses with very many rows, encoded row by row so that other tasks run in between."""

from typing import Any, cast

import msgspec

from ..network.serving.long_answers import AT_ONCE
from ..process.time_slices import in_time_slices
from ..protocol.compiler import encoder
from ..protocol.registry import KAFKA
from ..protocol.schema import WireStruct


async def encoded_response(api_key: int, version: int, correlation_id: int, response: Any) -> bytes:
    """Return a response as it is sent, its size included."""
    for name in response.__struct_fields__:
        rows = getattr(response, name)
        if isinstance(rows, list) and len(rows) > AT_ONCE and isinstance(rows[0], WireStruct):
            encoded = await in_time_slices(map(encoder(type(rows[0]), version), cast("list[WireStruct]", rows)))
            response = msgspec.structs.replace(response, **{name: encoded})
    return KAFKA.encode_response(api_key, version, correlation_id, response)

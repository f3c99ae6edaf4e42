"""Responses of the gateway with very many rows, encoded so that other tasks run in between."""

from typing import Any

from ..network.serving.long_answers import with_encoded_rows
from ..process.time_slices import carried_out
from ..protocol.registry import KAFKA


async def encoded_response(api_key: int, version: int, correlation_id: int, response: Any) -> bytes:
    """Return a response as it is sent, its size included."""
    response = await carried_out(with_encoded_rows(response, version))
    return KAFKA.encode_response(api_key, version, correlation_id, response)

"""Long responses at the gateway: they are encoded as short ones are, and others have their turn."""

import pytest
import trio

from minicontroller.network.serving.long_answers import encoded_response
from minicontroller.process import time_slices
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.api_versions import ApiVersionsResponse
from minicontroller.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from minicontroller.protocol.registry import KAFKA

MANY = 1_000


@pytest.mark.parametrize("count", [0, 1, 100, 101, MANY])
@pytest.mark.parametrize("version", [0, 8, 12])
async def test_the_bytes_are_those_of_the_codec(count: int, version: int) -> None:
    """A response is the same bytes however many rows it has."""
    topics = [MetadataResponseTopic(name=f"t{number}", error_code=3) for number in range(count)]
    response = MetadataResponse(topics=topics)
    expected = KAFKA.encode_response(ApiKey.METADATA, version, 7, response)
    assert await encoded_response(ApiKey.METADATA, version, 7, response) == expected


async def test_a_response_without_rows_is_encoded() -> None:
    """A response that has no rows is encoded at once."""
    expected = KAFKA.encode_response(ApiKey.API_VERSIONS, 3, 7, ApiVersionsResponse())
    assert await encoded_response(ApiKey.API_VERSIONS, 3, 7, ApiVersionsResponse()) == expected


async def test_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another task runs between the rows of a long response."""
    monkeypatch.setattr(time_slices, "SLICE_SECONDS", 0.0)
    turns = 0

    async def look_on() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look_on)
        topics = [MetadataResponseTopic(name=f"t{number}") for number in range(MANY)]
        await encoded_response(ApiKey.METADATA, 12, 7, MetadataResponse(topics=topics))
        nursery.cancel_scope.cancel()
    assert turns > MANY // 2

"""A client's connection: requests go out together, answers come back in their order."""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import trio

from minicontroller.protocol.frame import FrameBuffer
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.registry import KAFKA

PATIENCE_SECONDS = 9.0
"""For an answer. A node that is frozen gives none."""
MAX_ANSWER_BYTES = 64 << 20


class Lost(Exception):  # noqa: N818
    """The connection ended, or the answer did not come."""


class Request(msgspec.Struct):
    """A message in the version that it is asked in."""

    key: int
    version: int
    message: Any


class Connection:
    """Opened by `open_connection`."""

    def __init__(self, stream: trio.SocketStream, client_id: str) -> None:
        self._stream = stream
        self._client_id = client_id
        self._frames = FrameBuffer(MAX_ANSWER_BYTES)
        self._correlation_id = 0

    async def ask(self, requests: Sequence[Request]) -> AsyncIterator[tuple[Any, float]]:
        """The answers, one by one, with the time of each. Raises Lost."""
        await self.send(requests)
        for request in requests:
            yield await self._answer(request), time.monotonic()

    async def send(self, requests: Sequence[Request]) -> None:
        frames = []
        for request in requests:
            self._correlation_id += 1
            header = RequestHeader(
                api_key=request.key,
                api_version=request.version,
                correlation_id=self._correlation_id,
                client_id=self._client_id,
            )
            frames.append(KAFKA.encode_request(header, request.message))
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                await self._stream.send_all(b"".join(frames))
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError) as error:
            raise Lost from error

    async def _answer(self, request: Request) -> Any:
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                while (frame := self._frames.next_frame()) is None:
                    data = await self._stream.receive_some(1 << 16)
                    if not data:
                        raise Lost
                    self._frames.feed(bytes(data))
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError) as error:
            raise Lost from error
        return KAFKA.decode_response(request.key, request.version, frame)[1]

    async def close(self) -> None:
        await trio.aclose_forcefully(self._stream)


async def open_connection(address: str, client_id: str) -> Connection:
    """Raises Lost."""
    host, _, port = address.rpartition(":")
    try:
        with trio.fail_after(PATIENCE_SECONDS):
            return Connection(await trio.open_tcp_stream(host, int(port)), client_id)
    except (OSError, ValueError, trio.TooSlowError) as error:
        raise Lost from error

"""A node that says what a test wants it to say: our own codec behind a socket, a function for each
API.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from typing import Any

import trio

from minicontroller.client.configuration import Address, ClientConfig
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.errors import ProtocolError
from minicontroller.protocol.frame import FrameBuffer
from minicontroller.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from minicontroller.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct

HOST = "127.0.0.1"
MAX_BYTES = 1 << 20
CLOSE, SILENCE = object(), object()
"""Instead of an answer."""

Answer = WireStruct | bytes | object
Answering = Callable[[Any], Answer]


class FakeNode:
    """Speaks the APIs that it is given answers for; `bytes` go out as the body of the answer.
    `asked` is what it heard.
    """

    def __init__(self, answers: dict[ApiKey, Answering], tls: SSLContext | None = None) -> None:
        self.answers: dict[ApiKey, Answering] = {ApiKey.API_VERSIONS: self.versions, **answers}
        self.asked: list[WireStruct] = []
        self.port = 0
        self._tls = tls

    @property
    def address(self) -> Address:
        return Address(HOST, self.port)

    def heard(self, cls: type[WireStruct]) -> list[Any]:
        return [message for message in self.asked if isinstance(message, cls)]

    def versions(self, _request: object) -> Answer:
        rows = [KAFKA[key] for key in self.answers]
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=row.key, min_version=row.min_version, max_version=row.max_version) for row in rows
            ]
        )

    async def start(self, nursery: trio.Nursery) -> None:
        [listener] = await trio.open_tcp_listeners(0, host=HOST)
        self.port = listener.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, self._greet, [listener])

    async def _greet(self, stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, ProtocolError):  # it is for the client to say what is wrong
            if self._tls is None:
                await self._serve(stream)
            else:
                await self._serve(trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True))

    async def _serve(self, stream: trio.abc.Stream) -> None:
        frames = FrameBuffer(MAX_BYTES)
        while data := await stream.receive_some():
            frames.feed(bytes(data))
            while (frame := frames.next_frame()) is not None:
                header, message, _ = KAFKA.decode_request(frame)
                self.asked.append(message)
                answer = self.answers[ApiKey(header.api_key)](message)
                if answer is CLOSE:
                    return
                if answer is not SILENCE:
                    await stream.send_all(_frame(header.api_key, header.api_version, header.correlation_id, answer))


def _frame(api_key: int, version: int, correlation_id: int, answer: Answer) -> bytes:
    if isinstance(answer, bytes):
        return (len(answer) + 4).to_bytes(4) + correlation_id.to_bytes(4) + answer
    assert isinstance(answer, WireStruct)
    return KAFKA.encode_response(api_key, version, correlation_id, answer)


def metadata(controller_id: int, nodes: dict[int, FakeNode], **fields: Any) -> MetadataResponse:
    brokers = [
        MetadataResponseBroker(node_id=number, host=HOST, port=node.port) for number, node in nodes.items() if node.port
    ]
    return MetadataResponse(brokers=brokers, controller_id=controller_id, cluster_id="fake", **fields)


def config(*nodes: FakeNode, seconds: float = 20.0) -> ClientConfig:
    return ClientConfig(
        bootstrap_servers=tuple(node.address for node in nodes),
        request_timeout_seconds=seconds,
        api_timeout_seconds=seconds,
        retry_backoff_seconds=0.01,
    )


async def with_nodes(nodes: Sequence[FakeNode], test: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        for node in nodes:
            await node.start(nursery)
        await test()
        nursery.cancel_scope.cancel()

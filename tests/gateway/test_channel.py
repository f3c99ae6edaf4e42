"""How much memory the requests of a channel count as, between a client and a broker that hangs."""

import socket
from collections import Counter
from typing import Any, cast

import trio

from minicontroller.controller.network.failures import ConnectionFailures
from minicontroller.controller.network.memory import SMALL_BYTES, RequestMemory
from minicontroller.controller.network.transport import SocketTransport, Transport
from minicontroller.controller.security.caller import Caller, Listener
from minicontroller.gateway.channel import Channel
from minicontroller.gateway.frames import size_of
from minicontroller.gateway.identity.passing import PassedLogins
from minicontroller.gateway.parties import Broker
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.gateway.test_passing import request

ANSWER = size_of(b"\0\0\0\7") + b"\0\0\0\7"


class PassedReview:
    """The review of a request of which everything goes on to the broker."""

    def __init__(self, frame: bytes) -> None:
        self.frame = size_of(frame) + frame

    async def answer(self, frame: bytes | None) -> bytes:
        await trio.lowlevel.checkpoint()
        assert frame is not None
        return size_of(frame) + frame

    def abandon(self) -> None:
        """Note nothing."""


class HangingBroker:
    """A broker that takes requests, all of which are reviewed, and answers when the test does."""

    def __init__(self) -> None:
        near, self.socket = _pair()
        self._transport = SocketTransport(near)

    async def connect(self, _client: Transport) -> Transport:
        await trio.lowlevel.checkpoint()
        return self._transport

    async def review(self, _caller: Caller, frame: bytes) -> PassedReview:
        await trio.lowlevel.checkpoint()
        return PassedReview(frame)

    def may_review(self, _head: object) -> bool:
        return True

    def passes(self, _frame: bytes) -> bool:
        return False

    def answer_of(self, _head: object) -> None:
        """Leave all answers to the broker."""

    def change_of(self, _head: object) -> None:
        """Change no answer."""

    def move_of(self, _head: object) -> None:
        """Move answers as they are."""


def _pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    ends: Any = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in (near, far))
    return cast("tuple[trio.SocketStream, trio.SocketStream]", tuple(ends))


async def test_a_reviewed_request_keeps_its_room_until_the_broker_has_answered() -> None:
    """A large request that was judged and sent counts as memory of requests, the one behind it is
    not read before it is answered, and then the room is given back.
    """
    near, client = _pair()
    broker, memory = HangingBroker(), RequestMemory()
    caller = Caller(Listener(name="CLIENTS"), "127.0.0.1", 50_000)
    login = PassedLogins(must_log_in=False).of(caller)
    channel = Channel(
        SocketTransport(near),
        caller,
        cast("Broker", broker),
        login,
        max_bytes=2**31 - 1,
        failures=ConnectionFailures(),
        memory=memory,
        counts=Counter(),
    )
    topics = [CreatableTopic(name="t" * SMALL_BYTES)]
    asked = request(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics), 7)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(channel.run)
        await client.send_all(asked)
        assert await _received(broker.socket, len(asked)) == asked
        for more in (asked, b""):
            await trio.testing.wait_all_tasks_blocked()
            assert (memory.of_requests, channel.running) == (len(asked), 1)
            await client.send_all(more)
        await broker.socket.send_all(ANSWER)
        assert await _received(client, len(ANSWER)) == ANSWER
        assert await _received(broker.socket, len(asked)) == asked
        await broker.socket.send_all(ANSWER)
        assert await _received(client, len(ANSWER)) == ANSWER
        await trio.testing.wait_all_tasks_blocked()
        assert (memory.of_requests, channel.running) == (0, 0)
        nursery.cancel_scope.cancel()
    await client.aclose()
    await broker.socket.aclose()


async def _received(stream: trio.SocketStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await stream.receive_some(count - len(data))
    return data

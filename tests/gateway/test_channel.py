"""What a channel holds between a client and a broker that hangs: how much memory its requests count
as, and what is left of them when it has ended.
"""

import gc
import socket
from collections import Counter
from typing import Any, cast

import pytest
import trio

from minicontroller.controller.network.failures import ConnectionFailures
from minicontroller.controller.network.memory import SMALL_BYTES, RequestMemory
from minicontroller.controller.network.transport import SocketTransport, Transport
from minicontroller.controller.security.caller import Caller, Listener
from minicontroller.gateway.channel import Channel
from minicontroller.gateway.frames import FrameReader, FrameWriter, size_of
from minicontroller.gateway.identity.passing import PassedLogins
from minicontroller.gateway.parties import Broker
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tests.gateway.test_passing import request

TOPICS = [CreatableTopic(name="t" * SMALL_BYTES)]
LARGE = request(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=TOPICS), 7)
ANSWER = size_of(b"\0\0\0\7") + b"\0\0\0\7"


class PassedReview:
    """The review of a request of which everything goes on to the broker."""

    def __init__(self, frame: bytes) -> None:
        self.frame = size_of(frame) + frame
        self.version = int.from_bytes(frame[2:4], "big")

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

    async def aclose(self) -> None:
        self._transport.close()
        await self.socket.aclose()

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


def _channel(client: trio.SocketStream, broker: HangingBroker, memory: RequestMemory) -> Channel:
    caller = Caller(Listener(name="CLIENTS"), "127.0.0.1", 50_000)
    return Channel(
        SocketTransport(client),
        caller,
        cast("Broker", broker),
        PassedLogins(must_log_in=False).of(caller),
        max_bytes=2**31 - 1,
        failures=ConnectionFailures(),
        memory=memory,
        counts=Counter(),
    )


async def test_a_reviewed_request_keeps_its_room_until_the_broker_has_answered() -> None:
    """A large request that was judged and sent counts as memory of requests, the one behind it is
    not read before it is answered, and then the room is given back.
    """
    near, client = _pair()
    broker, memory = HangingBroker(), RequestMemory()
    channel = _channel(near, broker, memory)
    asked = LARGE
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
    await broker.aclose()


@pytest.mark.parametrize("sent", [LARGE[:-1], LARGE, LARGE + LARGE[:20]], ids=["a half", "a whole", "one and a half"])
async def test_a_channel_that_has_ended_waits_for_no_collector(sent: bytes) -> None:
    """What a client sent is gone with its connection, though the garbage collector has not come."""
    gc.collect()
    gc.disable()
    try:
        near, client = _pair()
        broker, memory = HangingBroker(), RequestMemory()
        async with trio.open_nursery() as nursery:
            channel = _channel(near, broker, memory)
            nursery.start_soon(channel.run)
            await client.send_all(sent)
            await trio.testing.wait_all_tasks_blocked()
            await client.aclose()
            await broker.aclose()
        memory.forget(channel)
        del channel
        left = [each for each in gc.get_objects() if isinstance(each, Channel | FrameReader | FrameWriter)]
        assert left == []
    finally:
        gc.enable()


async def _received(stream: trio.SocketStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await stream.receive_some(count - len(data))
    return data

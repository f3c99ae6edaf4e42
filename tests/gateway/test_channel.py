"""What a channel holds between a client and a broker that hangs: how much memory its requests count
as, and what is left of them when it has ended.
"""

import gc
import socket
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import pytest
import trio
import trio.testing

from minicontroller.gateway import intake, upstream_link
from minicontroller.gateway.apis import APIS
from minicontroller.gateway.broker import OfferedBroker
from minicontroller.gateway.channel import ClientChannel
from minicontroller.gateway.cluster import UpstreamCluster
from minicontroller.gateway.frames import FrameReader, FrameWriter, size_of
from minicontroller.gateway.identity.passing import PassedLogins
from minicontroller.gateway.intake import Shared
from minicontroller.gateway.judging.judged import AskForClient
from minicontroller.gateway.judging.review import Reviewer
from minicontroller.gateway.responses import Responses
from minicontroller.gateway.treatment import Service
from minicontroller.network.failures import ConnectionFailures
from minicontroller.network.memory import SMALL_BYTES, RequestMemory
from minicontroller.network.transport import SocketTransport, Transport
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import REQUEST_START, RequestHeader
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minicontroller.protocol.registry import KAFKA
from minicontroller.security.caller import Caller, Listener
from tests.gateway.test_passing import request

TOPICS = [CreatableTopic(name="t" * SMALL_BYTES)]
LARGE = request(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=TOPICS), 7)
QUESTION = KAFKA.encode_request(
    RequestHeader(api_key=ApiKey.METADATA, api_version=4, client_id=upstream_link.CLIENT_ID),
    MetadataRequest([], allow_auto_topic_creation=False),
)
SMALL = request(ApiKey.METADATA, 4, MetadataRequest([]), 8)
UNKNOWN = REQUEST_START.pack(777, 0, 9)
"""A request of no API that is known."""
ANSWER = size_of(b"\0\0\0\7") + b"\0\0\0\7"


class PassedReview:
    """The review of a request of which everything goes on to the broker."""

    def __init__(self, frame: bytes) -> None:
        self.frame = size_of(frame) + frame
        self.version = int.from_bytes(frame[2:4], "big")

    async def inquire(self, ask: AskForClient) -> None:
        """Ask nothing."""

    async def answer(self, frame: bytes | None) -> bytes:
        await trio.lowlevel.checkpoint()
        assert frame is not None
        return size_of(frame) + frame

    def abandon(self) -> None:
        """Note nothing."""


class AskingReview(PassedReview):
    """The review of a request before which the broker is asked for its topics."""

    is_abandoned = False

    async def inquire(self, ask: AskForClient) -> None:
        await ask(ApiKey.METADATA, 4, MetadataRequest([], allow_auto_topic_creation=False))

    def abandon(self) -> None:
        self.is_abandoned = True


class HangingBroker:
    """A broker that takes requests, all of which are reviewed, and answers when the test does."""

    reviewed: PassedReview

    def __init__(self, review: Callable[[bytes], PassedReview] = PassedReview) -> None:
        self._review = review
        near, self.socket = _pair()
        self._transport = SocketTransport(near)

    async def connect(self, _client: Transport) -> Transport:
        await trio.lowlevel.checkpoint()
        return self._transport

    async def review(self, _caller: Caller, frame: bytes) -> PassedReview:
        await trio.lowlevel.checkpoint()
        self.reviewed = self._review(frame)
        return self.reviewed

    async def aclose(self) -> None:
        self._transport.close()
        await self.socket.aclose()

    def takes(self, _api_key: int) -> bool:
        return True

    def passes(self, _frame: bytes) -> bool:
        return False


class UnjudgingBroker(HangingBroker):
    """A broker to which all requests pass unread."""

    def takes(self, _api_key: int) -> bool:
        return False


def _pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    ends: Any = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in (near, far))
    return cast("tuple[trio.SocketStream, trio.SocketStream]", tuple(ends))


def _channel(client: trio.SocketStream, broker: HangingBroker, memory: RequestMemory) -> ClientChannel:
    caller = Caller(Listener(name="CLIENTS"), "127.0.0.1", 50_000)
    service = Service(APIS)
    shared = Shared(
        service=service,
        responses=Responses(cast("UpstreamCluster", None), service),
        reviewer=lambda: cast("Reviewer", broker),
        forwarding=None,
        failures=ConnectionFailures(),
        memory=memory,
        counts=Counter(),
    )
    login = PassedLogins(must_log_in=False).of(caller)
    return ClientChannel(SocketTransport(client), caller, cast("OfferedBroker", broker), login, shared)


async def test_a_reviewed_request_keeps_its_room_until_the_broker_has_answered() -> None:
    """A large request that was judged and sent counts as memory of requests, the one behind it is
    not read before it is answered, and then the room is given back.
    """
    near, client = _pair()
    broker, memory = HangingBroker(), RequestMemory()
    serving = _channel(near, broker, memory)
    asked = LARGE
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serving.run)
        await client.send_all(asked)
        assert await _received(broker.socket, len(asked)) == asked
        for more in (asked, b""):
            await trio.testing.wait_all_tasks_blocked()
            assert (memory.of_requests, serving.running) == (len(asked), 1)
            await client.send_all(more)
        await broker.socket.send_all(ANSWER)
        assert await _received(client, len(ANSWER)) == ANSWER
        assert await _received(broker.socket, len(asked)) == asked
        await broker.socket.send_all(ANSWER)
        assert await _received(client, len(ANSWER)) == ANSWER
        await trio.testing.wait_all_tasks_blocked()
        assert (memory.of_requests, serving.running) == (0, 0)
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
            serving = _channel(near, broker, memory)
            nursery.start_soon(serving.run)
            await client.send_all(sent)
            await trio.testing.wait_all_tasks_blocked()
            await client.aclose()
            await broker.aclose()
        memory.forget(serving)
        del serving
        left = [each for each in gc.get_objects() if isinstance(each, ClientChannel | FrameReader | FrameWriter)]
        assert left == []
    finally:
        gc.enable()


async def test_a_request_goes_on_when_the_question_before_it_is_answered() -> None:
    """The broker gets the client's request after it has answered the gateway, and the client gets
    the answer to its own request alone.
    """
    near, client = _pair()
    broker = HangingBroker(AskingReview)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_channel(near, broker, RequestMemory()).run)
        await client.send_all(LARGE)
        assert await _received(broker.socket, len(QUESTION)) == QUESTION
        await broker.socket.send_all(KAFKA.encode_response(ApiKey.METADATA, 4, 0, MetadataResponse()))
        assert await _received(broker.socket, len(LARGE)) == LARGE
        await broker.socket.send_all(ANSWER)
        assert await _received(client, len(ANSWER)) == ANSWER
        nursery.cancel_scope.cancel()
    await client.aclose()
    await broker.aclose()


@pytest.mark.parametrize(
    "wrong",
    [size_of(bytes(3)) + bytes(3), size_of(UNKNOWN) + UNKNOWN, bytes(4)],
    ids=["no header", "an unknown API", "no size"],
)
async def test_requests_before_a_wrong_one_are_answered(wrong: bytes) -> None:
    """A client that sends good requests and a wrong one at once gets the responses to the good
    ones, as it does from Kafka, and then the end of its connection.
    """
    near, client = _pair()
    broker = UnjudgingBroker()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_channel(near, broker, RequestMemory()).run)
        await client.send_all(LARGE * 2 + wrong)
        assert await _received(broker.socket, 2 * len(LARGE)) == LARGE * 2
        await broker.socket.send_all(ANSWER * 2)
        assert await _received(client, 2 * len(ANSWER)) == ANSWER * 2
        assert await client.receive_some() == b""
    await client.aclose()
    await broker.aclose()


async def test_the_last_request_before_a_drain_goes_on() -> None:
    """A request whose end comes together with the next one goes to the broker and is answered,
    though the connection is drained meanwhile; the next one is not read.
    """
    near, client = _pair()
    broker = UnjudgingBroker()
    async with trio.open_nursery() as nursery:
        serving = _channel(near, broker, RequestMemory())
        nursery.start_soon(serving.run)
        await client.send_all(LARGE[:-1])
        assert await _received(broker.socket, len(LARGE) - 1) == LARGE[:-1]
        serving.drain()
        await client.send_all(LARGE[-1:] + SMALL)
        assert await _received(broker.socket, 1) == LARGE[-1:]
        await broker.socket.send_all(ANSWER)
        assert await _received(client, len(ANSWER)) == ANSWER
        assert await broker.socket.receive_some() == b""
    await client.aclose()
    await broker.aclose()


async def test_a_client_that_leaves_while_its_request_waits_is_idle() -> None:
    """A judged request waits until the broker has answered the one before it. The client counts as
    waiting meanwhile, also if it has sent more, but no more once it has left.
    """
    near, client = _pair()
    broker = HangingBroker()
    async with trio.open_nursery() as nursery:
        serving = _channel(near, broker, RequestMemory())
        nursery.start_soon(serving.run)
        await client.send_all(SMALL * 3)
        assert await _received(broker.socket, len(SMALL)) == SMALL
        await trio.testing.wait_all_tasks_blocked()
        waits = partial(getattr, serving, "is_waiting_for_us")
        assert (serving.running, waits()) == (1, True)
        await client.aclose()
        with trio.fail_after(5):
            while waits():  # noqa: ASYNC110 - the kernel has no event for it
                await trio.sleep(0.01)
        assert not serving.is_leaving
        serving.cancel()
    assert await broker.socket.receive_some() == b""
    await broker.aclose()


@pytest.mark.parametrize("answer", [b"", size_of(b"no answer") + b"no answer", None], ids=["end", "garbage", "none"])
async def test_a_broker_that_fails_amid_a_question(answer: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that dies, answers nonsense, or does not answer when the gateway asks it in the name
    of a client never gets the client's request: the connection ends, and that is recorded.
    """
    if answer is None:
        monkeypatch.setattr(intake, "INQUIRY_SECONDS", 0.05)
    near, client = _pair()
    broker = HangingBroker(AskingReview)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_channel(near, broker, RequestMemory()).run)
        await client.send_all(LARGE)
        assert await _received(broker.socket, len(QUESTION)) == QUESTION
        if answer:
            await broker.socket.send_all(answer)
        elif answer is not None:
            await broker.socket.send_eof()
        assert await client.receive_some() == b""
        assert await broker.socket.receive_some() == b""
    assert isinstance(broker.reviewed, AskingReview) and broker.reviewed.is_abandoned
    await client.aclose()
    await broker.aclose()


async def _received(stream: trio.SocketStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = await stream.receive_some(count - len(data))
        assert piece, f"the stream ended after {len(data)} of {count} bytes"
        data += piece
    return data

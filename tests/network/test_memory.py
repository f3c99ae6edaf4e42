"""How much of requests and answers is kept over all connections together. Time is trio's mock
clock.
"""

from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from minicontroller.network import memory
from minicontroller.network.limits import ConnectionLimits
from minicontroller.network.serving.context import RequestContext
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from minicontroller.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.support.small_server import (
    CLIENTS,
    NODES,
    TINY_HANDLERS,
    Client,
    Served,
    TinyNode,
    authenticated,
    serving,
    until,
)

pytestmark = pytest.mark.usefixtures("each_transport")

LARGE = MetadataRequest(topics=[MetadataRequestTopic(name="t" * 1000) for _ in range(100)])
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t" * 1000) for _ in range(100)])
ALL = MetadataRequest(topics=None)
LIMITS = ConnectionLimits(max_unfinished_bytes=250_000)


async def begun(served: Served) -> tuple[Client, bytes]:
    """A connection that has sent half of a large request, and the other half."""
    client = await served.connect()
    request = client.encode(1, LARGE)
    half = len(request) // 2
    await client.send(request[:half])
    await wait_all_tasks_blocked()
    return client, request[half:]


def kept(served: Served) -> int:
    """Return the bytes held by the requests of all connections."""
    return sum(each._frames.buffered_bytes for each in served.connections)


async def test_large_requests_wait_for_room_and_small_ones_pass() -> None:
    """Where there is room for two, of three the third is read no further until one is answered, and
    others notice nothing.
    """
    async with serving(limits=LIMITS) as served:
        clients = [await begun(served) for _ in range(3)]
        assert (served.server.memory.waiting, len(served.server.memory._rooms)) == (1, 2)
        assert await served.alive()
        for client, rest in clients:
            await client.send(rest)
            _, answer = await client.answer(MetadataResponse, 1)
            assert len(answer.topics) == 100
        assert (served.server.memory.of_requests, served.server.memory.waiting, kept(served)) == (0, 0, 0)
        for client, _ in clients:
            await client.stream.aclose()


async def test_many_that_begin_large_requests_cost_little() -> None:
    """However many connections announce and send: together they have what is allowed, and what is
    small of each.
    """
    async with serving(limits=LIMITS) as served:
        clients = [await begun(served) for _ in range(40)]
        for _ in range(3):
            for client, rest in clients:
                await client.send(rest[:1000])
            await wait_all_tasks_blocked()
        assert served.server.memory.of_requests <= 250_000
        assert kept(served) <= 250_000 + 40 * memory.SMALL_BYTES
        assert await served.alive()
        for client, _ in clients:
            await client.stream.aclose()


async def test_who_sends_nothing_makes_room(autojump_clock: MockClock) -> None:
    """A connection that holds memory and sends nothing is closed only when another one needs the
    memory.
    """
    async with serving(limits=LIMITS) as served:
        holders = [await begun(served) for _ in range(2)]
        await trio.sleep(100)
        both = set(served.connections)
        assert len(both) == 2
        client, rest = await begun(served)
        await client.send(rest)
        await client.answer(MetadataResponse, 1)
        assert await holders[0][0].ended()
        assert served.server.memory.closed == 1
        (closed,) = both - served.connections
        assert closed._frames.buffered_bytes == 0
        for each in (client, *(holder for holder, _ in holders)):
            await each.stream.aclose()


async def test_who_sends_a_byte_now_and_then_makes_room(autojump_clock: MockClock) -> None:
    """Room is kept by sending at some rate, and not by a sign of life."""
    async with serving(limits=LIMITS) as served:
        holders = [await begun(served) for _ in range(2)]

        async def trickle(client: Client, rest: bytes) -> None:
            with suppress(trio.BrokenResourceError):
                for byte in rest:
                    await client.send(bytes([byte]))
                    await trio.sleep(1)

        async with trio.open_nursery() as nursery:
            for holder, rest in holders:
                nursery.start_soon(trickle, holder, rest)
            client, rest = await begun(served)
            await client.send(rest)
            await client.answer(MetadataResponse, 1)
            nursery.cancel_scope.cancel()
        for each in (client, *(holder for holder, _ in holders)):
            await each.stream.aclose()


async def test_the_smallest_is_next() -> None:
    """Of the requests that wait for memory, the smallest gets it first."""
    async with serving(limits=ConnectionLimits(max_unfinished_bytes=125_000)) as served:
        holder, rest = await begun(served)
        giants = [await begun(served) for _ in range(3)]
        client = await served.connect()
        middle = MetadataRequest(topics=LARGE.topics and LARGE.topics[:20])
        await client.send(client.encode(1, middle))
        await client.answer(MetadataResponse, 1)
        await holder.send(rest)
        await holder.answer(MetadataResponse, 1)
        for each in (client, holder, *(giant for giant, _ in giants)):
            await each.stream.aclose()


async def test_what_is_carried_out_still_takes_room() -> None:
    """A large request is counted until it is answered, so that those who come wait, and gives its
    room back with its connection.
    """
    async with serving(limits=LIMITS) as served:
        running = [await served.connect() for _ in range(2)]
        for client in running:
            await client.send(client.encode(7, CREATE))
        await until(lambda: served.node.waiting == 2)
        waiting, rest = await begun(served)
        assert served.server.memory.waiting == 1
        await running[0].stream.aclose()
        await waiting.send(rest)
        await waiting.answer(MetadataResponse, 1)
        served.node.gate.set()
        await running[1].answer(CreateTopicsResponse, 7)
        assert served.server.memory.of_requests == 0
        for client in (waiting, running[1]):
            await client.stream.aclose()


async def test_nodes_wait_for_no_room() -> None:
    """A connection between nodes does not wait for memory that clients hold."""
    async with serving(listeners=[CLIENTS, NODES], limits=LIMITS) as served:
        holders = [await begun(served) for _ in range(3)]
        async with await authenticated(served, "node", "node-secret") as node:
            answer = await node.ask(1, LARGE, MetadataResponse)
            assert len(answer.topics) == 100
        assert served.server.memory.waiting == 1
        for client, _ in holders:
            await client.stream.aclose()


async def test_a_large_request_is_forgotten_when_it_is_answered() -> None:
    """A connection on which nothing comes any more keeps nothing of what came."""
    async with serving() as served, await served.connect() as client:
        await client.ask(1, LARGE, MetadataResponse)
        (connection,) = served.connections
        assert len(connection._frames._whole) == 0


async def test_answers_that_nobody_takes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """If unread answers exceed their limit, the connection that has read nothing for the longest is
    closed, and no other.
    """
    monkeypatch.setattr(memory, "UNREAD_BYTES", 50_000_000)
    row = MetadataResponseTopic(name="n" * 30_000)

    def huge(_node: TinyNode, _ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
        return MetadataResponse(topics=[row] * (1 if request.topics is None else 600))

    async with serving(handlers={**TINY_HANDLERS, ApiKey.METADATA: huge}) as served:
        clients = []
        for _ in range(4):
            client = await served.connect()
            clients.append(client)
            await client.send(client.encode(1, MetadataRequest(topics=[])))
            await wait_all_tasks_blocked()
        assert served.server.memory.of_answers <= 50_000_000
        assert served.server.memory.closed == 2
        for client in clients[2:]:
            _, answer = await client.answer(MetadataResponse, 1)
            assert len(answer.topics) == 600
        await until(lambda: served.server.memory.of_answers == 0)
        for client in clients:
            await client.stream.aclose()

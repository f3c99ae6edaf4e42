"""Answers of one connection: their order, their bounds, and what happens when either end goes."""

import gc
import weakref
from collections.abc import Awaitable

import msgspec
import pytest
import trio

from minicontroller.cluster.cache import MetadataCache
from minicontroller.network import connection
from minicontroller.network.limits import ConnectionLimits
from minicontroller.network.server import Server
from minicontroller.network.serving.context import RequestContext
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.network.serving.routes import routed
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from minicontroller.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from minicontroller.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from minicontroller.protocol.registry import KAFKA, Registry
from minicontroller.security.caller import Listener
from tests.support.small_server import CLIENTS, NODES, TINY_HANDLERS, Client, TinyNode, authenticated, serving, until
from tests.support.specs import specs_with

pytestmark = pytest.mark.usefixtures("each_transport")

OTHERS = Listener(name="OTHERS", host="127.0.0.1")
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t")])


def metadata_of(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


async def test_a_request_begins_when_the_one_before_it_is_answered() -> None:
    """A request on a connection begins only after the one before it is answered, reads included."""
    async with serving() as served, await served.connect() as client:
        await client.send(client.encode(7, CREATE) + client.encode(1, metadata_of("later")) + client.encode(7, CREATE))
        await until(lambda: served.node.waiting == 1)
        assert await client.silent()
        assert len(served.node.seen) == 1
        served.node.gate.set()
        first, created = await client.answer(CreateTopicsResponse, 7)
        second, metadata = await client.answer(MetadataResponse, 1)
        assert (first, second) == (1, 2)
        assert (created.topics[0].name, metadata.topics[0].name) == ("t", "later")
        assert (await client.answer(CreateTopicsResponse, 7))[0] == 3


async def test_requests_that_come_while_one_runs_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """However they are torn, and also if they are more than is read ahead of the
    request that runs.
    """
    monkeypatch.setattr(connection, "READ_AHEAD_BYTES", 1000)
    async with serving() as served, await served.connect() as client, trio.open_nursery() as nursery:
        asked = 2000
        requests = b"".join(
            client.encode(7, CREATE) if number % 3 == 0 else client.encode(1, metadata_of("t" * (number % 50)))
            for number in range(asked)
        )

        async def send_in_pieces() -> None:
            for start in range(0, len(requests), 777):
                await client.send(requests[start : start + 777])
                await trio.lowlevel.checkpoint()

        nursery.start_soon(send_in_pieces)
        await until(lambda: served.node.waiting == 1)
        assert len(served.node.seen) == 1
        (open_one,) = served.connections
        assert open_one._frames.buffered_bytes < 1000 + 64 * 1024
        served.node.gate.set()
        for number in range(asked):
            correlation_id = int.from_bytes((await client.frame())[:4])
            assert correlation_id == number + 1


async def test_a_slow_request_holds_up_no_other_connection() -> None:
    """Connections do not know of each other."""
    async with serving() as served, await served.connect() as slow:
        await slow.send(slow.encode(7, CREATE))
        await until(lambda: served.node.waiting == 1)
        assert await served.alive()


async def test_a_disconnect_cancels_what_its_requests_wait_for() -> None:
    """When a client disconnects, its waiting request is cancelled, and the requests behind it are
    not begun.
    """
    async with serving() as served:
        async with await served.connect() as client:
            await client.send(client.encode(7, CREATE) + client.encode(7, CREATE))
            await until(lambda: served.node.waiting == 1)
        await until(lambda: served.node.cancelled == 1 and not served.connections)
        assert len(served.node.seen) == 1
        assert await served.alive()


def big_metadata(node: TinyNode, ctx: RequestContext, _request: MetadataRequest) -> MetadataResponse:
    node.seen.append(ctx)
    return MetadataResponse(topics=[MetadataResponseTopic(name="x" * 32_000) for _ in range(8)])


async def test_a_client_that_does_not_read_its_answers_is_not_read() -> None:
    """With more answers queued than the bound (and what the kernel takes) no further request is
    answered, until it reads.
    """
    handlers = {**TINY_HANDLERS, ApiKey.METADATA: big_metadata}
    async with serving(handlers=handlers) as served, await served.connect() as client, trio.open_nursery() as nursery:
        asked = 200
        requests = b"".join(client.encode(1, metadata_of("t")) for _ in range(asked))
        nursery.start_soon(client.send, requests)
        await trio.testing.wait_all_tasks_blocked(0.05)
        answered = len(served.node.seen)
        assert answered < asked / 2
        (open_one,) = served.connections
        assert open_one._outbox.queued_bytes < connection.MAX_QUEUED_BYTES + 256_000
        for number in range(1, asked + 1):
            assert (await client.answer(MetadataResponse, 1))[0] == number
        assert len(served.node.seen) == asked


async def test_an_unreadable_request_behind_one_that_runs_ends_the_connection() -> None:
    """The request before it is answered first."""
    async with serving() as served, await served.connect() as client:
        await client.send(client.encode(7, CREATE) + (4).to_bytes(4) + bytes(4))
        await until(lambda: served.node.waiting == 1)
        assert await client.silent()
        served.node.gate.set()
        assert (await client.answer(CreateTopicsResponse, 7))[0] == 1
        assert await client.ended()
        assert served.server.failures.protocol_errors == 1


async def test_a_frame_larger_than_the_limit_ends_the_connection() -> None:
    """`socket.request.max.bytes` is looked at before anything of the frame is kept."""
    async with serving(limits=ConnectionLimits(max_request_bytes=1000)) as served:
        async with await served.connect() as client:
            await client.send((1001).to_bytes(4))
            assert await client.ended()
        async with await served.connect() as client:
            await client.ask(1, metadata_of("x" * 900), MetadataResponse)


async def test_nodes_are_answered_as_it_comes_and_clients_in_order() -> None:
    """On a connection of a node a slow request holds up no other; the same user is no node at
    another listener.
    """
    async with serving(listeners=[CLIENTS, NODES]) as served:
        async with await authenticated(served, "node", "node-secret") as peer:
            await peer.send(peer.encode(7, CREATE) + peer.encode(1, metadata_of("quick")))
            assert (await peer.answer(MetadataResponse, 1))[0] == 4
            served.node.gate.set()
            assert (await peer.answer(CreateTopicsResponse, 7))[0] == 3
        served.node.gate = trio.Event()
        async with await authenticated(served, "alice", "alice-secret") as client:
            before = len(served.node.seen)
            await client.send(client.encode(7, CREATE) + client.encode(1, metadata_of("quick")))
            await until(lambda: served.node.waiting == 1)
            assert await client.silent()
            assert len(served.node.seen) == before + 1, "the second is begun when the first is answered"


async def test_leftover_bytes_of_a_node_end_its_connection() -> None:
    """Trailing bytes are accepted from clients, and end the connection of a node, because there
    they would hide a bug.
    """
    async with serving(listeners=[NODES]) as served, await authenticated(served, "node", "node-secret") as peer:
        whole = peer.encode(1, metadata_of("t"))
        await peer.send((len(whole) - 4 + 1).to_bytes(4) + whole[4:] + b"x")
        assert await peer.ended()


class Exploding(Exception):  # noqa: N818
    """The exception that a faulty handler raises."""


def explode(_node: object, _ctx: RequestContext, _request: object) -> Awaitable[object]:
    raise Exploding


async def test_an_exception_costs_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    """A handler's exception is answered UNKNOWN_SERVER_ERROR; other requests on the connection are
    answered as usual.
    """
    handlers = {**TINY_HANDLERS, ApiKey.DESCRIBE_CLUSTER: explode}
    async with serving(handlers=handlers) as served, await served.connect() as client:
        before, failing, after = (
            client.encode(1, metadata_of("before")),
            client.encode(0, DescribeClusterRequest()),
            client.encode(1, metadata_of("after")),
        )
        await client.send(before + failing + after)
        await client.answer(MetadataResponse, 1)
        _, answer = await client.answer(DescribeClusterResponse, 0)
        assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        _, metadata = await client.answer(MetadataResponse, 1)
        assert metadata.topics[0].name == "after"
        assert served.dispatcher.counters.unexpected_errors == 1
    assert "DescribeClusterRequest v0 of (not authenticated) (client 'test' at 127.0.0.1)" in caplog.text
    assert "Exploding" in caplog.text


async def test_two_listeners_speak_two_dialects() -> None:
    """A listener that was opened with other routes answers what these have, in the versions of
    their registry, and the first listener what it did.
    """
    async with serving() as served:
        registry = Registry([ApiKey.METADATA], lambda key: msgspec.structs.replace(KAFKA[key], max_version=5))
        kafkas, cache = specs_with(TINY_HANDLERS, served.node), MetadataCache()
        apis = [*kafkas, *(msgspec.structs.replace(each, registry=registry) for each in kafkas if each.key in registry)]
        assert len([*routed(apis, cache, lambda: True)]) == len(kafkas)
        routes = routed(apis, cache, lambda: True, registry=registry)
        server = Server()
        await server.open([CLIENTS], served.dispatcher)
        await server.open([OTHERS], Dispatcher(routes))
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            for listener, versions in ((CLIENTS, (5, 6)), (OTHERS, (5,))):
                for version in versions:
                    client = Client(await trio.open_tcp_stream("127.0.0.1", server.ports[listener.name]))
                    async with client:
                        answer = await client.ask(version, metadata_of("t"), MetadataResponse)
                        assert [topic.name for topic in answer.topics] == ["t"]
            for version, request in ((6, metadata_of("t")), (7, CREATE)):
                async with Client(await trio.open_tcp_stream("127.0.0.1", server.ports[OTHERS.name])) as client:
                    await client.send(client.encode(version, request))
                    assert await client.ended()
            nursery.cancel_scope.cancel()


async def created_and_throttled(
    node: TinyNode, ctx: RequestContext, _request: CreateTopicsRequest
) -> CreateTopicsResponse:
    node.seen.append(ctx)
    await trio.lowlevel.checkpoint()
    return CreateTopicsResponse(throttle_time_ms=20_000)


async def test_a_throttled_client_is_answered_and_then_not_heard(autojump_clock: trio.testing.MockClock) -> None:
    """The answer comes at once; the next request begins when the time is over, and other clients do
    not wait.
    """
    routes = {**TINY_HANDLERS, ApiKey.CREATE_TOPICS: created_and_throttled}
    async with serving(handlers=routes) as served, await served.connect() as client:
        began = trio.current_time()
        assert (await client.ask(7, CREATE, CreateTopicsResponse)).throttle_time_ms == 20_000
        assert trio.current_time() - began < 1
        assert await served.alive()
        assert trio.current_time() - began < 1
        await client.ask(1, metadata_of("later"), MetadataResponse)
        assert trio.current_time() - began >= 20


async def test_a_throttled_client_does_not_delay_the_shutdown() -> None:
    """A node that stops does not wait until the quota of a client lets it speak again."""
    routes = {**TINY_HANDLERS, ApiKey.CREATE_TOPICS: created_and_throttled}
    async with serving(handlers=routes) as served, await served.connect() as client:
        await client.ask(7, CREATE, CreateTopicsResponse)
        with trio.fail_after(20):
            await served.server.shutdown(30)


@pytest.mark.parametrize("leaves", ["when it was answered", "in the middle of a request", "without reading answers"])
async def test_a_connection_that_ended_is_no_garbage(leaves: str) -> None:
    """What a connection held is free when it ends. The garbage collector of a node comes seldom, so
    that closed connections could take more memory than open ones.
    """
    async with serving() as served:
        gc.disable()
        try:
            client = await served.connect()
            await client.ask(1, metadata_of("first"), MetadataResponse)
            (served_connection,) = served.connections
            ended = weakref.ref(served_connection)
            del served_connection
            match leaves:
                case "in the middle of a request":
                    await client.send(client.encode(1, metadata_of("half"))[:-1])
                case "without reading answers":
                    wanted = client.encode(1, MetadataRequest(topics=[MetadataRequestTopic(name="t" * 200)] * 100))
                    with trio.move_on_after(0.2):
                        await client.send(wanted * 1000)
            await trio.aclose_forcefully(client.stream)
            await until(lambda: not served.connections)
            await until(lambda: ended() is None, what="the end of the object")
        finally:
            gc.enable()

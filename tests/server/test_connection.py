"""Answers of one connection: their order, their bounds, and what happens when either end goes."""

from collections.abc import Awaitable

import pytest
import trio

from minicontroller.controller import connection
from minicontroller.controller.connection_quotas import ConnectionLimits
from minicontroller.controller.context import RequestContext
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from minicontroller.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.server.harness import CLIENTS, NODES, TINY_HANDLERS, Client, Served, TinyNode, serving, until

CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t")])


def metadata_of(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)])


async def test_answers_come_in_the_order_of_the_requests() -> None:
    """A request that is answered at once waits for the answer of the one before it that is not."""
    async with serving() as served, await served.connect() as client:
        await client.send(client.encode(7, CREATE) + client.encode(1, metadata_of("later")))
        await until(lambda: served.node.waiting == 1 and len(served.node.seen) == 2)
        assert await client.silent()
        served.node.gate.set()
        first, created = await client.answer(CreateTopicsResponse, 7)
        second, metadata = await client.answer(MetadataResponse, 1)
        assert (first, second) == (1, 2)
        assert (created.topics[0].name, metadata.topics[0].name) == ("t", "later")


async def test_requests_of_one_connection_run_together() -> None:
    """A request does not wait for the one before it on its connection to be done: thus they can share a commit."""
    async with serving() as served, await served.connect() as client:
        await client.send(b"".join(client.encode(7, CREATE) for _ in range(10)))
        await until(lambda: served.node.waiting == 10)
        served.node.gate.set()
        assert [(await client.answer(CreateTopicsResponse, 7))[0] for _ in range(10)] == list(range(1, 11))


async def test_a_slow_request_holds_up_no_other_connection() -> None:
    """Connections do not know of each other."""
    async with serving() as served, await served.connect() as slow:
        await slow.send(slow.encode(7, CREATE))
        await until(lambda: served.node.waiting == 1)
        assert await served.alive()


async def test_a_disconnect_cancels_what_its_requests_wait_for() -> None:
    """Whoever waits for a topic to be complete is cancelled with the connection of his request."""
    async with serving() as served:
        async with await served.connect() as client:
            await client.send(client.encode(7, CREATE) + client.encode(7, CREATE))
            await until(lambda: served.node.waiting == 2)
        await until(lambda: served.node.cancelled == 2 and not served.server.connections)
        assert await served.alive()


async def test_no_more_than_so_many_requests_of_a_connection_run() -> None:
    """The 65th request of a connection is not begun before one of the 64 that wait is answered."""
    async with serving() as served, await served.connect() as client:
        for _ in range(connection.MAX_RUNNING + 10):
            await client.send(client.encode(7, CREATE))
        await until(lambda: served.node.waiting == connection.MAX_RUNNING)
        await trio.testing.wait_all_tasks_blocked(0.02)
        assert served.node.waiting == connection.MAX_RUNNING
        served.node.gate.set()
        for number in range(1, connection.MAX_RUNNING + 11):
            assert (await client.answer(CreateTopicsResponse, 7))[0] == number


def big_metadata(node: TinyNode, ctx: RequestContext, _request: MetadataRequest) -> MetadataResponse:
    node.seen.append(ctx)
    return MetadataResponse(topics=[MetadataResponseTopic(name="x" * 32_000) for _ in range(8)])


async def test_a_client_that_does_not_read_its_answers_is_not_read() -> None:
    """With more answers queued than the bound (and what the kernel takes) no further request is answered, until it reads."""
    handlers = {**TINY_HANDLERS, ApiKey.METADATA: big_metadata}
    async with serving(handlers=handlers) as served, await served.connect() as client, trio.open_nursery() as nursery:
        asked = 200
        requests = b"".join(client.encode(1, metadata_of("t")) for _ in range(asked))
        nursery.start_soon(client.send, requests)
        await trio.testing.wait_all_tasks_blocked(0.05)
        answered = len(served.node.seen)
        assert answered < asked / 2
        (open_one,) = served.server.connections
        assert open_one._outbox.queued_bytes < connection.MAX_QUEUED_BYTES + 256_000
        for number in range(1, asked + 1):
            assert (await client.answer(MetadataResponse, 1))[0] == number
        assert len(served.node.seen) == asked


async def test_answers_behind_a_slow_one_are_bounded_too() -> None:
    """Answers that are ready and wait for their turn count like those that wait for the client."""
    handlers = {**TINY_HANDLERS, ApiKey.METADATA: big_metadata}
    async with serving(handlers=handlers) as served, await served.connect() as client, trio.open_nursery() as nursery:
        requests = client.encode(7, CREATE) + b"".join(client.encode(1, metadata_of("t")) for _ in range(50))
        nursery.start_soon(client.send, requests)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len(served.node.seen) <= 1 + 5  # 5 answers of 256 kB are beyond the bound of 1 MiB
        served.node.gate.set()
        await client.answer(CreateTopicsResponse, 7)
        for number in range(2, 52):
            assert (await client.answer(MetadataResponse, 1))[0] == number


async def test_a_frame_larger_than_the_limit_ends_the_connection() -> None:
    """`socket.request.max.bytes` is looked at before anything of the frame is kept."""
    async with serving(limits=ConnectionLimits(max_request_bytes=1000)) as served:
        async with await served.connect() as client:
            await client.send((1001).to_bytes(4))
            assert await client.ended()
        async with await served.connect() as client:
            await client.ask(1, metadata_of("x" * 900), MetadataResponse)


async def authenticated(served: Served, username: str, password: str) -> Client:
    client = await served.connect(NODES)
    await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    token = f"\0{username}\0{password}".encode()
    answer = await client.ask(2, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    assert answer.error_code == ErrorCode.NONE
    return client


async def test_nodes_are_answered_as_it_comes_and_clients_in_order() -> None:
    """On a connection of a node a slow request holds up no other; the same user is no node at another listener."""
    async with serving(listeners=[CLIENTS, NODES]) as served:
        async with await authenticated(served, "node", "node-secret") as peer:
            await peer.send(peer.encode(7, CREATE) + peer.encode(1, metadata_of("quick")))
            assert (await peer.answer(MetadataResponse, 1))[0] == 4
            served.node.gate.set()
            assert (await peer.answer(CreateTopicsResponse, 7))[0] == 3
        served.node.gate = trio.Event()
        async with await authenticated(served, "alice", "alice-secret") as client:
            await client.send(client.encode(7, CREATE) + client.encode(1, metadata_of("quick")))
            await until(lambda: served.node.waiting == 1)
            assert await client.silent()


async def test_leftover_bytes_of_a_node_end_its_connection() -> None:
    """What is accepted from clients is a bug that must not hide when a node does it."""
    async with serving(listeners=[NODES]) as served, await authenticated(served, "node", "node-secret") as peer:
        whole = peer.encode(1, metadata_of("t"))
        await peer.send((len(whole) - 4 + 1).to_bytes(4) + whole[4:] + b"x")
        assert await peer.ended()


class Exploding(Exception):  # noqa: N818
    """What a handler with a bug raises."""


def explode(_node: object, _ctx: RequestContext, _request: object) -> Awaitable[object]:
    raise Exploding


async def test_an_accident_costs_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    """A handler's bug answers UNKNOWN_SERVER_ERROR to its request; the requests around it on the same connection do not notice."""
    handlers = {**TINY_HANDLERS, ApiKey.DESCRIBE_CLUSTER: explode}
    async with serving(handlers=handlers) as served, await served.connect() as client:
        before, accident, after = (
            client.encode(1, metadata_of("before")),
            client.encode(0, DescribeClusterRequest()),
            client.encode(1, metadata_of("after")),
        )
        await client.send(before + accident + after)
        await client.answer(MetadataResponse, 1)
        _, answer = await client.answer(DescribeClusterResponse, 0)
        assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        _, metadata = await client.answer(MetadataResponse, 1)
        assert metadata.topics[0].name == "after"
        assert served.line.counters.accidents == 1
    assert "DescribeClusterRequest v0 of an unauthenticated caller (client 'test' at 127.0.0.1)" in caplog.text
    assert "Exploding" in caplog.text

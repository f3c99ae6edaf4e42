"""Writes at a node that is not the controller: two real servers, one of which forwards to the other.

Requirements K4-5, K590-1 to K590-6. Time is trio's mock clock.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from minicontroller.controller.cluster.image import Broker, Endpoint
from minicontroller.controller.cluster.metadata_cache import MetadataCache
from minicontroller.controller.context import RequestContext
from minicontroller.controller.errors import Refusal
from minicontroller.controller.forwarding import REPLY_GRACE_SECONDS, SUCCEEDED_SECONDS, Forwarder
from minicontroller.controller.security.caller import MAX_SOFTWARE_CHARACTERS
from minicontroller.controller.security.credentials import PlainCredentials
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import DecidedElement
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.server.harness import (
    CLIENTS,
    NODES,
    SASL,
    TINY_HANDLERS,
    Client,
    Served,
    TinyNode,
    created_when_open,
    serving,
    until,
)

CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t"), CreatableTopic(name="u")], timeout_ms=10_000)
NODE = PlainCredentials("node", "node-secret")


class Recorder:
    """Creates at once, and remembers who asked for what."""

    def __init__(self, code: ErrorCode = ErrorCode.NONE) -> None:
        self.code = code
        self.calls: list[tuple[RequestContext, Any]] = []

    def create(self, _node: object, ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        self.calls.append((ctx, request))
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=topic.name, error_code=self.code, error_message="", num_partitions=3)
                for topic in request.topics
            ]
        )

    def delete(self, _node: object, ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
        self.calls.append((ctx, request))
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name=topic.name) for topic in request.topics])


class Pair:
    """Node 1 at `near`, which forwards; node 2 at `far`."""

    def __init__(self, near: Served, far: Served, cache: MetadataCache, recorder: Recorder) -> None:
        self.near = near
        self.far = far
        self.cache = cache
        self.recorder = recorder

    def elect(self, broker_id: int, epoch: int = 1, *, port: int | None = None) -> None:
        """Node 1 is told who rules."""
        endpoint = Endpoint("NODES", "127.0.0.1", port or self.far.server.ports["NODES"], "SASL_PLAINTEXT")
        self.cache.apply(
            controller_id=broker_id,
            controller_epoch=epoch,
            brokers=[Broker(1), Broker(2, (endpoint,)), Broker(3)],
        )


@asynccontextmanager
async def pair(
    *,
    credentials: PlainCredentials | None = NODE,
    far_handler: Callable[..., Any] | None = None,
    near_handler: Callable[..., Any] | None = None,
    elected: bool = True,
) -> AsyncIterator[Pair]:
    recorder, cache = Recorder(), MetadataCache()
    far_handlers = {
        **TINY_HANDLERS,
        ApiKey.CREATE_TOPICS: far_handler or recorder.create,
        ApiKey.DELETE_TOPICS: recorder.delete,
    }
    near_node = TinyNode()
    near_handlers = {**far_handlers, ApiKey.CREATE_TOPICS: near_handler or recorder.create}
    async with AsyncExitStack() as stack:
        far = await stack.enter_async_context(serving(handlers=far_handlers, listeners=[CLIENTS, NODES]))
        nursery = await stack.enter_async_context(trio.open_nursery())
        near_node.forwarder = Forwarder(
            nursery, broker_id=1, cache=cache, inter_broker_listener="NODES", credentials=credentials
        )
        near = await stack.enter_async_context(
            serving(handlers=near_handlers, listeners=[CLIENTS, SASL, NODES], node=near_node)
        )
        both = Pair(near, far, cache, recorder)
        if elected:
            both.elect(2)
        yield both
        nursery.cancel_scope.cancel()


def codes(answer: CreateTopicsResponse) -> list[int]:
    return [topic.error_code for topic in answer.topics]


# ------------------------------------------------------------------ what travels


async def test_the_controller_learns_who_asked() -> None:
    """K590-3, K590-5: the newest version, with principal, address, client id, software and version of him who asked; the answer in his."""
    async with pair() as nodes, await nodes.near.connect(SASL) as client:
        await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
        await client.ask(2, token, SaslAuthenticateResponse)
        said = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.6.0")
        await client.ask(3, said, ApiVersionsResponse)
        answer = await client.ask(2, CREATE, CreateTopicsResponse, client_id="admin-7")
        ((ctx, _),) = nodes.recorder.calls
        assert (ctx.principal, ctx.client_host, ctx.client_id) == ("User:alice", "127.0.0.1", "admin-7")
        assert (ctx.api_version, ctx.client_api_version) == (7, 2)
        assert (ctx.software, ctx.received_node) == ("librdkafka/2.6.0", 1)
        assert ctx.forwarded
        assert ctx.from_peer
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [("t", 0), ("u", 0)]


async def test_what_a_newer_node_tells_besides() -> None:
    """Tags of a forwarded request that are not known here do no harm, and no name of a client is kept beyond the limit."""
    async with pair() as nodes, await nodes.far.connect(NODES) as node:
        await login(node, "node")
        header = {"principal_name": "User:al", "software": "x" * 10_000, "unknown_tags": {9: b"new", 200: b""}}
        assert codes(await node.ask(7, CREATE, CreateTopicsResponse, **header)) == [0, 0]
        ((ctx, _),) = nodes.recorder.calls
        assert (ctx.principal, ctx.software) == ("User:al", "x" * MAX_SOFTWARE_CHARACTERS)


async def test_an_anonymous_caller_stays_anonymous() -> None:
    """Who proved nothing at the node that forwards is nobody at the controller."""
    async with pair() as nodes, await nodes.near.connect() as client:
        await client.ask(7, CREATE, CreateTopicsResponse)
        assert nodes.recorder.calls[0][0].principal is None


async def test_deletions_by_name_are_forwarded_as_states() -> None:
    """DeleteTopics says names elsewhere since version 6: an old client's names reach the controller in the newest form."""
    async with pair() as nodes, await nodes.near.connect() as client:
        answer = await client.ask(1, DeleteTopicsRequest(topic_names=["t", "u"], timeout_ms=1000), DeleteTopicsResponse)
        assert [result.name for result in answer.responses] == ["t", "u"]
        ((ctx, request),) = nodes.recorder.calls
        assert [topic.name for topic in request.topics] == ["t", "u"]
        assert ctx.client_api_version == 1


async def test_all_requests_share_one_connection_and_overtake_each_other() -> None:
    """K4-5: one multiplexed connection between two nodes; a slow request of one client holds up no other's."""
    gate = trio.Event()

    async def slow_for_t(_node: object, _ctx: object, request: CreateTopicsRequest) -> CreateTopicsResponse:
        if request.topics[0].name == "t":
            await gate.wait()
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=topic.name) for topic in request.topics])

    async with pair(far_handler=slow_for_t) as nodes, await nodes.near.connect() as slow:
        await slow.send(slow.encode(7, CREATE))
        for _ in range(5):
            async with await nodes.near.connect() as quick:
                other = CreateTopicsRequest(topics=[CreatableTopic(name="quick")])
                assert codes(await quick.ask(7, other, CreateTopicsResponse)) == [0]
        assert len(nodes.far.server.connections) == 1
        gate.set()
        await slow.answer(CreateTopicsResponse, 7)


async def test_a_client_that_goes_takes_back_only_its_waiting() -> None:
    """A disconnected client's forwarded request is awaited no more; the shared connection goes on."""
    gate = trio.Event()

    async def gated(_node: object, _ctx: object, _request: object) -> CreateTopicsResponse:
        await gate.wait()
        return CreateTopicsResponse()

    async with pair(far_handler=gated) as nodes, await nodes.near.connect() as stays:
        async with await nodes.near.connect() as goes:
            await goes.send(goes.encode(7, CREATE))
            await stays.send(stays.encode(7, CREATE))
            await until(lambda: sum(connection.running for connection in nodes.far.server.connections) == 2)
        await until(lambda: len(nodes.near.server.connections) == 1)
        gate.set()
        await stays.answer(CreateTopicsResponse, 7)


# ------------------------------------------------------------------ no controller


async def test_without_a_controller_a_request_waits_for_one(autojump_clock: MockClock) -> None:
    """It is woken by the election, not by a clock, and the controller is told how much of the client's time is left."""
    async with pair(elected=False) as nodes, await nodes.near.connect() as client:
        await client.send(client.encode(7, CREATE))
        await trio.sleep(4)
        assert nodes.recorder.calls == []
        elected = trio.current_time()
        nodes.elect(2)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [0, 0]
        assert trio.current_time() == elected
        assert nodes.recorder.calls[0][1].timeout_ms == pytest.approx(6000, abs=10)


@pytest.mark.parametrize(("timeout_ms", "seconds"), [(10_000, 10), (0, 30), (-1, 30)])
async def test_nobody_waits_for_a_controller_for_ever(
    timeout_ms: int, seconds: float, autojump_clock: MockClock
) -> None:
    """At the request's timeout, or `request.timeout.ms` if it has none, every topic carries REQUEST_TIMED_OUT."""
    async with pair(elected=False) as nodes, await nodes.near.connect() as client:
        began = trio.current_time()
        asked = CreateTopicsRequest(topics=CREATE.topics, timeout_ms=timeout_ms)
        await client.send(client.encode(7, asked))
        await trio.sleep(seconds - 1)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert trio.current_time() - began == pytest.approx(seconds)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT] * 2


async def test_a_forwarded_request_is_never_forwarded_again() -> None:
    """K590-4: a node that is not the controller answers NOT_CONTROLLER to a request of a node, though it could forward it."""
    async with pair() as nodes, await nodes.near.connect(NODES) as peer:
        await peer.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = SaslAuthenticateRequest(auth_bytes=b"\0node\0node-secret")
        await peer.ask(2, token, SaslAuthenticateResponse)
        answer = await peer.ask(7, CREATE, CreateTopicsResponse, principal_name="User:alice")
        assert codes(answer) == [ErrorCode.NOT_CONTROLLER] * 2
        assert nodes.recorder.calls == []


async def test_not_controller_is_asked_again_at_the_next_one(autojump_clock: MockClock) -> None:
    """The client never reads NOT_CONTROLLER: its request waits and goes to whoever is elected next."""
    async with pair() as nodes, await nodes.near.connect() as client:
        nodes.far.node.controller = None
        await client.send(client.encode(7, CREATE))
        await trio.sleep(0.05)
        assert await client.silent()
        nodes.far.node.controller = "again"
        nodes.elect(2, epoch=2)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [0, 0]
        assert len(nodes.recorder.calls) == 1


async def test_a_controller_that_has_not_begun_is_asked_again(autojump_clock: MockClock) -> None:
    """Elected but not serving yet: no news will come of it, so it is tried every tenth of a second."""
    async with pair() as nodes, await nodes.near.connect() as client:
        nodes.far.node.controller = None
        await client.send(client.encode(7, CREATE))
        await trio.sleep(0.35)
        nodes.far.node.controller = "ready"
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [0, 0]


async def free_port() -> int:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listener.socket.getsockname()[1]
    await listener.aclose()
    return port


async def test_a_controller_that_cannot_be_reached_has_done_nothing(autojump_clock: MockClock) -> None:
    """Connection refused: the request goes to the next controller as soon as it is known."""
    async with pair(elected=False) as nodes, await nodes.near.connect() as client:
        nodes.elect(2, port=await free_port())
        await client.send(client.encode(7, CREATE))
        await trio.sleep(3)
        nodes.elect(2, epoch=2)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [0, 0]


# ------------------------------------------------------------------ in doubt


async def test_a_broken_connection_leaves_the_request_in_doubt() -> None:
    """Sent and not answered: REQUEST_TIMED_OUT, in the sense of "may still happen", and never sent a second time."""
    arrived = 0

    async def never(_node: object, _ctx: object, _request: object) -> CreateTopicsResponse:
        nonlocal arrived
        arrived += 1
        await trio.sleep_forever()
        raise AssertionError

    async with pair(far_handler=never) as nodes, await nodes.near.connect() as client:
        await client.send(client.encode(7, CREATE))
        await until(lambda: arrived == 1)
        for connection in nodes.far.server.connections:
            connection.cancel()
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert "may have been done" in str(answer.topics[0].error_message)
        assert arrived == 1


async def test_what_a_stopping_controller_has_not_read_is_done_by_the_next(autojump_clock: MockClock) -> None:
    """K590-2: what it has read it answers; what comes later is sent to its successor, and no client sees anything of it."""
    here = Recorder()
    async with (
        pair(far_handler=created_when_open, near_handler=here.create) as nodes,
        await nodes.near.connect() as early,
        await nodes.near.connect() as late,
        trio.open_nursery() as nursery,
    ):
        await early.send(early.encode(7, CREATE))
        await until(lambda: nodes.far.node.waiting == 1)
        nursery.start_soon(nodes.far.server.shutdown, 30)
        await trio.testing.wait_all_tasks_blocked()
        await late.send(late.encode(7, CREATE))
        await trio.testing.wait_all_tasks_blocked()
        nodes.far.node.gate.set()
        assert codes((await early.answer(CreateTopicsResponse, 7))[1]) == [0, 0]
        assert here.calls == []
        nodes.near.node.controller = "this one"
        nodes.elect(1, epoch=2)
        assert codes((await late.answer(CreateTopicsResponse, 7))[1]) == [0, 0]
        assert len(nodes.far.node.seen) == len(here.calls) == 1


async def test_nobody_waits_for_a_controller_that_was_succeeded(autojump_clock: MockClock) -> None:
    """K590-2: what was sent to a frozen controller is in doubt, and said to be, soon after this node is told of another one; the
    next request goes there.
    """
    here = Recorder()
    async with (
        pair(far_handler=created_when_open, near_handler=here.create) as nodes,
        await nodes.near.connect() as client,
    ):
        await client.send(client.encode(7, CREATE))
        await until(lambda: nodes.far.node.waiting == 1)
        nodes.near.node.controller = "this one"
        before = trio.current_time()
        nodes.elect(1, epoch=2)
        assert codes((await client.answer(CreateTopicsResponse, 7))[1]) == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert trio.current_time() - before == SUCCEEDED_SECONDS
        assert codes(await client.ask(7, CREATE, CreateTopicsResponse)) == [0, 0]


async def test_a_controller_that_is_elected_again_keeps_its_requests(autojump_clock: MockClock) -> None:
    """After another one ruled for a moment: it lives, and answers them itself."""
    async with pair(far_handler=created_when_open) as nodes, await nodes.near.connect() as client:
        await client.send(client.encode(7, CREATE))
        await until(lambda: nodes.far.node.waiting == 1)
        nodes.elect(3, epoch=2)
        nodes.elect(2, epoch=3)
        await trio.sleep(SUCCEEDED_SECONDS * 2)
        nodes.far.node.gate.set()
        assert codes((await client.answer(CreateTopicsResponse, 7))[1]) == [0, 0]


async def test_a_controller_that_hangs_is_given_up(autojump_clock: MockClock) -> None:
    """No answer within the request's timeout and the grace for its journey: REQUEST_TIMED_OUT."""

    async def never(_node: object, _ctx: object, _request: object) -> CreateTopicsResponse:
        await trio.sleep_forever()
        raise AssertionError

    async with pair(far_handler=never) as nodes, await nodes.near.connect() as client:
        began = trio.current_time()
        await client.send(client.encode(7, CREATE))
        await trio.sleep(9)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert trio.current_time() - began == pytest.approx(10 + REPLY_GRACE_SECONDS)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT] * 2


async def test_nodes_that_do_not_know_each_other_say_so(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong inter-broker password: nothing is done, the client reads a timeout, and the log tells why, without the password."""
    stale = PlainCredentials("node", "stale-password")
    async with pair(credentials=stale) as nodes, await nodes.near.connect() as client:
        await client.send(client.encode(7, CREATE))
        await trio.sleep(9)
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT] * 2
    assert caplog.text.count("it does not accept us as 'node'") == 1
    assert "stale-password" not in caplog.text
    assert nodes.recorder.calls == []


# ------------------------------------------------------------------ at home


async def test_the_controller_itself_does_not_forward() -> None:
    """A client of the controller's own node is answered there."""
    async with pair(elected=False) as nodes, await nodes.near.connect() as client:
        nodes.near.node.controller = "this one"
        answer = await client.ask(7, CREATE, CreateTopicsResponse)
        assert codes(answer) == [0, 0]
        assert not nodes.recorder.calls[0][0].forwarded


async def test_who_loses_the_election_meanwhile_forwards() -> None:
    """A handler that finds its node is no longer the controller has done nothing: the request goes to the new one."""

    async def lose(node: TinyNode, _ctx: object, _request: object) -> CreateTopicsResponse:
        await trio.lowlevel.checkpoint()
        node.controller = None
        raise Refusal(ErrorCode.NOT_CONTROLLER)

    async with pair(near_handler=lose) as nodes, await nodes.near.connect() as client:
        nodes.near.node.controller = "about to lose"
        nodes.elect(2)
        answer = await client.ask(7, CREATE, CreateTopicsResponse)
        assert codes(answer) == [0, 0]
        assert nodes.recorder.calls[0][0].forwarded


async def test_forwarding_can_be_off() -> None:
    """`controller.forwarding.enable=false`: plain NOT_CONTROLLER for every topic, with the empty text that Kafka sends."""
    async with pair() as nodes, await nodes.near.connect() as client:
        nodes.near.node.forwarder = None
        created = await client.ask(4, CREATE, CreateTopicsResponse)
        assert [(topic.error_code, topic.error_message) for topic in created.topics] == [(41, ""), (41, "")]
        deleted = await client.ask(5, DeleteTopicsRequest(topic_names=["t"]), DeleteTopicsResponse)
        assert [(r.name, r.error_code, r.error_message) for r in deleted.responses] == [("t", 41, None)]


# ------------------------------------------------------------------ forgery


async def login(client: Client, username: str) -> None:
    await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    token = f"\0{username}\0{username}-secret".encode()
    answer = await client.ask(2, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
    assert answer.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    "tags",
    [
        {"principal_name": "User:admin"},
        {"client_host": "10.0.0.1"},
        {"client_api_version": 3},
        {"on_behalf_of_api": 3},
        {"received_node": 3},
        {"software": "librdkafka/2.6.0"},
        {"decided": [DecidedElement(resource_name="t")]},
    ],
    ids=["principal", "address", "version", "api", "node", "software", "decisions"],
)
async def test_only_nodes_speak_for_others(tags: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    """K590-6: the tags of a forwarded request are refused with 31 from anyone else, whoever and wherever he is; counted, logged."""
    async with pair() as nodes:
        served = nodes.far
        async with await served.connect() as anonymous:
            answer = await anonymous.ask(7, CREATE, CreateTopicsResponse, **tags)
            assert codes(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        async with await served.connect(NODES) as alice:
            await login(alice, "alice")
            answer = await alice.ask(7, CREATE, CreateTopicsResponse, **tags)
            assert codes(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        async with await nodes.near.connect(SASL) as node_elsewhere:
            await login(node_elsewhere, "node")
            answer = await node_elsewhere.ask(7, CREATE, CreateTopicsResponse, **tags)
            assert codes(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        assert (served.line.counters.forged_forwarding, nodes.near.line.counters.forged_forwarding) == (2, 1)
        assert nodes.recorder.calls == []
    assert caplog.text.count("is no node of this cluster") == 3

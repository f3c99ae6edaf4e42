"""Writes at a node that is not the controller: two real servers, one of which forwards to the
other.

Requirements K4-5, K590-3 to K590-6.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec
import pytest
import trio

from minicontroller.cluster.cache import first_update_number
from minicontroller.cluster.errors import Refusal
from minicontroller.network.limits import ConnectionLimits
from minicontroller.network.serving.context import RequestContext
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.errors import ProtocolError
from minicontroller.protocol.header import DecidedElement, RequestOrigin
from minicontroller.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from minicontroller.security.caller import MAX_SOFTWARE_CHARACTERS
from tests.protocol.instances import samples
from tests.serving.pair import CREATE, codes, pair
from tests.support.small_server import (
    NODES,
    SASL,
    Client,
    TinyNode,
    until,
)
from tests.support.specs import APIS

# ------------------------------------------------------------------ what travels


async def test_the_controller_learns_who_asked() -> None:
    """K590-3a, K590-3b, K590-5a: a request is forwarded in the newest version with its client's
    principal, address, client id, software and version, and answered in the client's version.
    """
    async with pair() as nodes, await nodes.near.connect(SASL) as client:
        await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret")
        await client.ask(2, token, SaslAuthenticateResponse)
        said = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.6.0")
        await client.ask(3, said, ApiVersionsResponse)
        answer = await client.ask(2, CREATE, CreateTopicsResponse, client_id="admin-7")
        ((ctx, _),) = nodes.recorder.calls
        assert (ctx.origin.principal, ctx.origin.client_host, ctx.client_id) == ("User:alice", "127.0.0.1", "admin-7")
        assert (ctx.header.api_version, ctx.origin.api_version) == (7, 2)
        assert (ctx.origin.software, ctx.origin.received_node) == ("librdkafka/2.6.0", 1)
        assert ctx.forwarded
        assert ctx.caller.from_peer
        assert [(topic.name, topic.error_code) for topic in answer.topics] == [("t", 0), ("u", 0)]


async def test_what_a_newer_node_tells_besides() -> None:
    """Tags of a forwarded request that are not known here do no harm, and no name of a client is
    kept beyond the limit.
    """
    async with pair() as nodes, await nodes.far.connect(NODES) as node:
        await login(node, "node")
        origin = RequestOrigin("User:al", software="x" * 10_000)
        header = {"origin": origin, "unknown_tags": {9: b"new", 200: b""}}
        assert codes(await node.ask(7, CREATE, CreateTopicsResponse, **header)) == [0, 0]
        ((ctx, _),) = nodes.recorder.calls
        assert (ctx.origin.principal, ctx.origin.software) == ("User:al", "x" * MAX_SOFTWARE_CHARACTERS)


async def test_what_the_controller_had_told_travels_back() -> None:
    """K4-6a: the answer's header has the update number, and the forwarding node delays reads until
    it has received that update.
    """
    number = first_update_number(7) + 3

    async def told(_node: object, ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        await trio.lowlevel.checkpoint()
        ctx.notes.update_number = number
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=topic.name) for topic in request.topics])

    async with pair(far_handler=told) as nodes, await nodes.near.connect() as client:
        assert codes(await client.ask(7, CREATE, CreateTopicsResponse)) == [0, 0]
        assert nodes.cache.is_behind
        nodes.cache.updated_to(number)
        assert not nodes.cache.is_behind


async def test_an_anonymous_caller_stays_anonymous() -> None:
    """A client that is unauthenticated at the forwarding node is unauthenticated at the
    controller.
    """
    async with pair() as nodes, await nodes.near.connect() as client:
        await client.ask(7, CREATE, CreateTopicsResponse)
        assert nodes.recorder.calls[0][0].origin.principal is None


async def test_a_user_who_is_called_anonymous() -> None:
    """A user named ANONYMOUS is an authenticated user, at the controller as at the
    forwarding node.
    """
    async with pair() as nodes, await nodes.near.connect(SASL) as client:
        await login(client, "ANONYMOUS")
        await client.ask(7, CREATE, CreateTopicsResponse)
        assert nodes.recorder.calls[0][0].origin.principal == "User:ANONYMOUS"


async def test_deletions_by_name_are_forwarded_as_states() -> None:
    """DeleteTopics says names elsewhere since version 6: an old client's names reach the controller
    in the newest form.
    """
    async with pair() as nodes, await nodes.near.connect() as client:
        answer = await client.ask(1, DeleteTopicsRequest(topic_names=["t", "u"], timeout_ms=1000), DeleteTopicsResponse)
        assert [result.name for result in answer.responses] == ["t", "u"]
        ((ctx, request),) = nodes.recorder.calls
        assert [topic.name for topic in request.topics] == ["t", "u"]
        assert ctx.origin.api_version == 1


@pytest.mark.parametrize("key", [key for key, spec in APIS.items() if spec.at_controller], ids=lambda key: key.name)
async def test_every_api_of_the_controller_is_forwarded_from_every_version(key: ApiKey) -> None:
    """What an older version alone can say keeps no request back, and an API without tags in any
    version travels in an Envelope: the controller learns who asked, and its answer comes back.
    """
    api, calls = KAFKA[key], list[RequestContext]()

    def answer(_node: object, ctx: RequestContext, _request: object) -> object:
        calls.append(ctx)
        ctx.notes.update_number = 0
        return api.response()

    async with pair(handlers={key: answer}) as nodes, await nodes.near.connect(SASL) as client:
        await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        await client.ask(2, SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), SaslAuthenticateResponse)
        for version in range(api.min_version, api.max_version + 1):
            for request in readable(key, version):
                assert await client.ask(version, request, api.response, client_id="me") == api.response()
                ctx, origin = calls[-1], calls[-1].origin
                assert (ctx.header.api_version, ctx.client_id, origin.api_version) == (api.max_version, "me", version)
                assert (origin.principal, origin.client_host, origin.received_node) == ("User:alice", "127.0.0.1", 1)
        assert calls


def readable(key: ApiKey, version: int) -> Iterator[WireStruct]:
    """Requests that Kafka's classes can read, with time to be answered."""
    check = APIS[key].check_readable
    for request in samples(KAFKA[key].request, version):
        patient = msgspec.structs.replace(request, timeout_ms=9_000) if hasattr(request, "timeout_ms") else request
        with suppress(ProtocolError):
            if check is not None:
                check(patient)
            yield patient


async def test_all_requests_share_one_connection_and_overtake_each_other() -> None:
    """K4-5: one multiplexed connection between two nodes; a slow request of one client holds up no
    other's.
    """
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
    """A disconnected client's forwarded request is awaited no more; the shared
    connection goes on.
    """
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


async def test_a_forwarded_request_is_never_forwarded_again() -> None:
    """K590-4a: a node that is not the controller answers NOT_CONTROLLER to a request of a node,
    though it could forward it.
    """
    async with pair() as nodes, await nodes.near.connect(NODES) as peer:
        await peer.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        token = SaslAuthenticateRequest(auth_bytes=b"\0node\0node-secret")
        await peer.ask(2, token, SaslAuthenticateResponse)
        answer = await peer.ask(7, CREATE, CreateTopicsResponse, origin=RequestOrigin("User:alice"))
        assert codes(answer) == [ErrorCode.NOT_CONTROLLER] * 2
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
    """A handler that finds its node is no longer the controller has done nothing: the request goes
    to the new one.
    """

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
    """With `controller.forwarding.enable=false` every topic is answered a plain NOT_CONTROLLER,
    with the empty text that Kafka sends.
    """
    async with pair(forwards=False) as nodes, await nodes.near.connect() as client:
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
    "claimed",
    [
        RequestOrigin(principal="User:admin"),
        RequestOrigin(client_host="10.0.0.1"),
        RequestOrigin(api_version=3),
        RequestOrigin(api_key=3),
        RequestOrigin(received_node=3),
        RequestOrigin(software="librdkafka/2.6.0"),
        RequestOrigin(decided=[DecidedElement(resource_name="t")]),
        RequestOrigin(correlation_id=3),
    ],
    ids=["principal", "address", "version", "api", "node", "software", "decisions", "correlation"],
)
async def test_only_nodes_speak_for_others(claimed: RequestOrigin, caplog: pytest.LogCaptureFixture) -> None:
    """K590-6b: the tags of a forwarded request are refused with 31 from everyone but nodes, at
    every listener, and the refusal is counted and logged.
    """
    async with pair() as nodes:
        served = nodes.far
        async with await served.connect() as anonymous:
            answer = await anonymous.ask(7, CREATE, CreateTopicsResponse, origin=claimed)
            assert codes(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        async with await served.connect(NODES) as alice:
            await login(alice, "alice")
            answer = await alice.ask(7, CREATE, CreateTopicsResponse, origin=claimed)
            assert codes(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        async with await nodes.near.connect(SASL) as node_elsewhere:
            await login(node_elsewhere, "node")
            answer = await node_elsewhere.ask(7, CREATE, CreateTopicsResponse, origin=claimed)
            assert codes(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        assert (served.dispatcher.counters.forged_forwarding, nodes.near.dispatcher.counters.forged_forwarding) == (
            2,
            1,
        )
        assert nodes.recorder.calls == []
    assert caplog.text.count("is not a node of this cluster") == 3


async def test_the_largest_request_is_forwarded() -> None:
    """One of exactly `socket.request.max.bytes`, which grows on its way, is answered, and the link
    serves the next one.
    """
    limits = ConnectionLimits(max_request_bytes=4_000)
    async with pair(limits=limits) as nodes, await nodes.near.connect() as client:
        empty = len(client.encode(2, CREATE, client_id="")) - 4
        for _ in range(2):
            await client.send(client.encode(2, CREATE, client_id="x" * (limits.max_request_bytes - empty)))
            _, answer = await client.answer(CreateTopicsResponse, 2)
            assert codes(answer) == [0, 0]
        assert len(nodes.far.server.connections) == 1

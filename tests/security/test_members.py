"""Nodes that know each other by the cluster's secret, over real sockets; and strangers at the same
listener, who get nothing.

Requirements K4-5, K590-5, K590-6.
"""

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
import trio
from trio.testing import MockClock

from minicontroller.cluster.entities import Broker, Endpoint
from minicontroller.network.peer import PeerConnection, PeerUnavailable
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestOrigin
from minicontroller.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from minicontroller.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from minicontroller.protocol.messages.create_topics import CreateTopicsResponse
from minicontroller.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from minicontroller.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from minicontroller.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from minicontroller.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from minicontroller.security.caller import Listener
from minicontroller.security.credentials import Credentials, PlainCredentials
from minicontroller.security.node_proof import MECHANISM, Membership
from tests.serving.pair import CREATE, Recorder, codes, pair
from tests.support.small_server import NODES, PATIENCE_SECONDS, TINY_HANDLERS, Client, Served, TinyNode, serving, until

SECRETS = [b"the first secret of the cluster!", b"the second secret of the cluster"]
ALICE = RequestOrigin("User:alice", "10.0.0.1", 7)
PASSWORD = PlainCredentials("node", "node-secret")
OPEN = Listener(name="NODES", host="127.0.0.1", inter_broker=True)
"""Kafka's default: one listener for clients and nodes, at which nobody authenticates."""
ALL = MetadataRequest(topics=None)


class Member:
    """Node 2, with its server, and what node 1 shows it."""

    def __init__(self, served: Served, two: Membership, one: Membership, recorder: Recorder) -> None:
        self.served, self.two, self.one, self.recorder = served, two, one, recorder
        self.port = served.server.ports[OPEN.name]
        two.advertise([self.address])

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def logins(self, *more: Credentials) -> Sequence[Credentials]:
        return (self.one.credentials(2, self.address), *more)

    def peer(self, nursery: trio.Nursery, logins: Sequence[Credentials] | None = None) -> PeerConnection:
        return PeerConnection(
            nursery, "127.0.0.1", self.port, client_id="1", logins=self.logins() if logins is None else logins
        )

    async def connect(self) -> Client:
        return await self.served.connect(OPEN)


@asynccontextmanager
async def member(listener: Listener = OPEN, secrets: Sequence[bytes] = SECRETS) -> AsyncIterator[Member]:
    """`secrets[0]` is what both nodes know."""
    two, one = (Membership("cluster", node, lambda: secrets[0]) for node in (2, 1))
    recorder = Recorder()
    handlers = {**TINY_HANDLERS, ApiKey.CREATE_TOPICS: recorder.create, ApiKey.UPDATE_METADATA: agree}
    listener = msgspec.structs.replace(listener, node_proof=two.exchange)
    async with serving(handlers=handlers, listeners=[listener]) as served:
        yield Member(served, two, one, recorder)


def agree(_node: TinyNode, _ctx: object, _request: object) -> UpdateMetadataResponse:
    return UpdateMetadataResponse()


async def update(peer: PeerConnection) -> int:
    answer = await peer.request(ApiKey.UPDATE_METADATA, 8, UpdateMetadataRequest())
    assert isinstance(answer, UpdateMetadataResponse)
    return answer.error_code


# ------------------------------------------------------------------ nodes


async def test_a_node_is_believed_where_nobody_authenticates() -> None:
    """At a PLAINTEXT listener that clients use as well, a node forwards and sends control requests;
    the client keeps its own principal.
    """
    async with member() as two, trio.open_nursery() as nursery:
        peer = two.peer(nursery)
        answer = await peer.request(ApiKey.CREATE_TOPICS, 7, CREATE, origin=ALICE)
        assert isinstance(answer, CreateTopicsResponse)
        assert codes(answer) == [0, 0]
        ((ctx, _),) = two.recorder.calls
        assert (ctx.origin.principal, ctx.origin.client_host, ctx.forwarded, ctx.caller.from_peer) == (
            "User:alice",
            "10.0.0.1",
            True,
            True,
        )
        assert await update(peer) == ErrorCode.NONE
        async with await two.connect() as client:
            await client.ask(1, ALL, MetadataResponse)
            assert not two.served.node.seen[-1].caller.from_peer
        nursery.cancel_scope.cancel()


async def test_two_nodes_forward_without_any_login() -> None:
    """Node 1 sends a write on to the controller, whose listener is the one of the clients."""
    two, one = (Membership("cluster", node, lambda: SECRETS[0]) for node in (2, 1))

    def logins(broker: Broker, endpoint: Endpoint) -> Sequence[Credentials]:
        two.advertise([endpoint.address])
        return (one.credentials(broker.broker_id, endpoint.address),)

    listener = msgspec.structs.replace(OPEN, node_proof=two.exchange)
    async with pair(logins=logins, far_listener=listener) as nodes, await nodes.near.connect() as client:
        assert codes(await client.ask(7, CREATE, CreateTopicsResponse)) == [0, 0]
        assert [ctx.forwarded for ctx, _ in nodes.recorder.calls] == [True]


async def test_where_nodes_have_a_user_he_is_shown_as_well() -> None:
    """At a listener with SASL the proof opens the way for the password, and the password is what
    makes a node.
    """
    async with member(NODES) as two, trio.open_nursery() as nursery:
        assert await update(two.peer(nursery, two.logins(PASSWORD))) == ErrorCode.NONE
        assert two.served.server.connections
        with pytest.raises(PeerUnavailable, match="did not answer"):
            await update(two.peer(nursery))
        nursery.cancel_scope.cancel()


async def test_a_broker_of_another_kind_logs_in_as_ever() -> None:
    """A real Kafka broker, which knows of no proof, is a node by the user that was configured for
    nodes.
    """
    async with member(NODES) as two, trio.open_nursery() as nursery:
        assert await update(two.peer(nursery, [PASSWORD])) == ErrorCode.NONE
        nursery.cancel_scope.cancel()


async def test_a_new_secret_ends_what_the_old_one_proved() -> None:
    """A request that runs is answered, by its old connection; the next one goes by a connection
    that rests on the new secret.
    """
    secrets = list(SECRETS)
    async with member(secrets=secrets) as two, trio.open_nursery() as nursery:
        peer = two.peer(nursery)
        assert await update(peer) == ErrorCode.NONE
        (first,) = two.served.server.connections
        del secrets[0]
        two.served.server.drain_nodes()
        assert await update(peer) == ErrorCode.NONE
        await until(lambda: first not in two.served.server.connections)
        assert len(two.served.server.connections) == 1
        nursery.cancel_scope.cancel()


async def test_whoever_is_connected_to_by_an_old_proof_hears_no_more() -> None:
    """An old proof's connection is used no more, even if the other end, which may be the thief of
    the secret, keeps it open.
    """
    secrets = list(SECRETS)
    async with member(secrets=secrets) as two, trio.open_nursery() as nursery:
        peer = two.peer(nursery)
        assert await update(peer) == ErrorCode.NONE
        (first,) = two.served.server.connections
        del secrets[0]
        assert await update(peer) == ErrorCode.NONE
        await until(lambda: first not in two.served.server.connections)
        nursery.cancel_scope.cancel()


async def test_a_login_is_shown_anew_before_its_end(autojump_clock: MockClock) -> None:
    """With `connections.max.reauth.ms` nodes authenticate again in time, so that no request is left
    in doubt by the end of the session.
    """
    gate, asked = trio.Event(), 0

    async def slow(_node: TinyNode, _ctx: object, _request: object) -> UpdateMetadataResponse:
        nonlocal asked
        asked += 1
        await gate.wait()
        return UpdateMetadataResponse()

    short = msgspec.structs.replace(NODES, reauthenticate_ms={"PLAIN": 60_000})
    handlers = {**TINY_HANDLERS, ApiKey.UPDATE_METADATA: slow}
    async with serving(handlers=handlers, listeners=[short]) as served, trio.open_nursery() as nursery:
        port = served.server.ports["NODES"]
        peer = PeerConnection(nursery, "127.0.0.1", port, client_id="1", logins=[PASSWORD])
        async with trio.open_nursery() as asking:
            for _ in range(3):
                asking.start_soon(update, peer)
                await trio.sleep(55)
            assert len(served.server.connections) == asked == 3
            gate.set()
        await until(lambda: len(served.server.connections) == 1)
        nursery.cancel_scope.cancel()


# ------------------------------------------------------------------ strangers who connect


NODES_ONLY: Mapping[ApiKey, tuple[int, Any, Any]] = {
    ApiKey.UPDATE_METADATA: (8, UpdateMetadataRequest(controller_epoch=2**31 - 1), UpdateMetadataResponse),
    ApiKey.LEADER_AND_ISR: (7, LeaderAndIsrRequest(controller_epoch=2**31 - 1), LeaderAndIsrResponse),
    ApiKey.STOP_REPLICA: (4, StopReplicaRequest(controller_epoch=2**31 - 1), StopReplicaResponse),
    ApiKey.CONTROLLED_SHUTDOWN: (3, ControlledShutdownRequest(broker_id=1), ControlledShutdownResponse),
    ApiKey.ALTER_PARTITION: (3, AlterPartitionRequest(broker_id=1), AlterPartitionResponse),
    ApiKey.ENVELOPE: (0, EnvelopeRequest(request_principal=b"", client_host_address=b""), EnvelopeResponse),
}


@pytest.mark.parametrize("key", NODES_ONLY, ids=lambda key: key.name.lower())
async def test_an_unproven_peer_does_not_act_as_a_node(key: ApiKey, caplog: pytest.LogCaptureFixture) -> None:
    """Requests of nodes are refused with 31 from a peer without the proof, counted each time and
    logged once per connection.
    """
    version, request, response = NODES_ONLY[key]
    async with member() as two, await two.connect() as stranger:
        for _ in range(3):
            answer = await stranger.ask(version, request, response)
            assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert two.served.dispatcher.counters.forged_node_requests == 3
        assert caplog.text.count("but is not a node of this cluster") == 1


async def test_an_unproven_peer_does_not_forward(caplog: pytest.LogCaptureFixture) -> None:
    """The tags of a forwarded request are refused with 31 from a peer without the proof, counted
    each time and logged once per connection.
    """
    async with member() as two, await two.connect() as stranger:
        for _ in range(3):
            answer = await stranger.ask(7, CREATE, CreateTopicsResponse, origin=RequestOrigin("User:admin"))
            assert codes(answer) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
        assert two.recorder.calls == []
        assert two.served.dispatcher.counters.forged_forwarding == 3
        assert caplog.text.count("but is not a node of this cluster") == 1


async def handshake(client: Client) -> int:
    answer = await client.ask(1, SaslHandshakeRequest(mechanism=MECHANISM), SaslHandshakeResponse)
    return answer.error_code


async def show(client: Client, token: bytes) -> SaslAuthenticateResponse:
    return await client.ask(2, SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)


async def test_a_wrong_proof_ends_the_connection(autojump_clock: MockClock) -> None:
    """A wrong proof is answered with 58, counted, and the connection closed after the guesser's
    pause.
    """
    async with member() as two, await two.connect() as stranger:
        assert await handshake(stranger) == ErrorCode.NONE
        hello = next(two.one.credentials(2, two.address).exchange())
        assert (await show(stranger, hello)).error_code == ErrorCode.NONE
        assert (await show(stranger, b'{"proof":"00"}')).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert await stranger.ended()
        assert two.served.server.failures.failed_authentications[MECHANISM] == 1


async def test_a_recorded_proof_opens_nothing(autojump_clock: MockClock) -> None:
    """All that a node sent, sent again: the same bytes prove nothing on another connection."""
    async with member() as two:
        tokens = two.one.credentials(2, two.address).exchange()
        async with await two.connect() as node:
            await handshake(node)
            recorded = [next(tokens)]
            recorded.append(tokens.send((await show(node, recorded[0])).auth_bytes))
            assert (await show(node, recorded[1])).error_code == ErrorCode.NONE
        async with await two.connect() as stranger:
            await handshake(stranger)
            await show(stranger, recorded[0])
            assert (await show(stranger, recorded[1])).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
            assert await stranger.ended()


async def test_half_a_proof_is_none() -> None:
    """Between the handshake and the proof, a peer keeps the principal that it had before."""
    async with member() as two, await two.connect() as stranger:
        await handshake(stranger)
        await show(stranger, next(two.one.credentials(2, two.address).exchange()))
        answer = await stranger.ask(8, UpdateMetadataRequest(), UpdateMetadataResponse)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await stranger.ask(1, ALL, MetadataResponse)


async def test_clients_learn_nothing_of_the_proof() -> None:
    """To a client the listener is one without SASL, as Kafka's; and one with SASL offers him what
    it is configured to offer.
    """
    async with member() as two, await two.connect() as client:
        answer = await client.ask(1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        assert (await show(client, b"\0node\0node-secret")).error_code == ErrorCode.ILLEGAL_SASL_STATE
    async with member(NODES) as two, await two.connect() as client:
        answer = await client.ask(1, SaslHandshakeRequest(mechanism="NOTHING"), SaslHandshakeResponse)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])


async def test_a_proof_is_no_login() -> None:
    """A listener that wants a user is not content with a node: nothing is answered before the
    login.
    """
    async with member(NODES) as two, await two.connect() as node:
        await handshake(node)
        tokens = two.one.credentials(2, two.address).exchange()
        answer = await show(node, next(tokens))
        assert (await show(node, tokens.send(answer.auth_bytes))).error_code == ErrorCode.NONE
        await node.send(node.encode(1, ALL))
        assert await node.ended()


# ------------------------------------------------------------------ strangers who are connected to


async def test_an_unproven_peer_gets_no_name_and_no_password(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A peer that does not support the proof (an older node, a real broker, another program) is
    sent one handshake, without a name or password.
    """
    caplog.set_level(logging.INFO)
    for listener in (OPEN, NODES):
        async with serving(listeners=[listener]) as stranger, trio.open_nursery() as nursery:
            port = stranger.server.ports[listener.name]
            proof = Membership("cluster", 1, lambda: SECRETS[0]).credentials(2, f"127.0.0.1:{port}")
            peer = PeerConnection(nursery, "127.0.0.1", port, client_id="1", logins=(proof, PASSWORD))
            with pytest.raises(PeerUnavailable, match="does not know how nodes prove themselves") as caught:
                await peer.request(ApiKey.CREATE_TOPICS, 7, CREATE, origin=ALICE)
            assert (caught.value.unproved, caught.value.in_doubt) == (True, False)
            assert stranger.node.seen == []
            assert [row for row in stranger.dispatcher.metrics.outcomes if row[0] != ApiKey.SASL_HANDSHAKE] == []
            nursery.cancel_scope.cancel()


async def test_a_thief_of_an_address_gets_no_password() -> None:
    """A peer that knows the mechanism but not the secret is sent a hello, and neither proof nor
    password.
    """
    heard: list[str] = []

    class Thief:
        def step(self, token: bytes) -> Any:
            heard.append(token.decode())
            return Membership("cluster", 2, lambda: b"a secret of his own").exchange().step(token)

    thieves = msgspec.structs.replace(NODES, node_proof=Thief)
    async with serving(listeners=[thieves]) as thief, trio.open_nursery() as nursery:
        port = thief.server.ports["NODES"]
        proof = Membership("cluster", 1, lambda: SECRETS[0]).credentials(2, f"127.0.0.1:{port}")
        peer = PeerConnection(nursery, "127.0.0.1", port, client_id="1", logins=(proof, PASSWORD))
        with pytest.raises(PeerUnavailable) as caught:
            await peer.request(ApiKey.CREATE_TOPICS, 7, CREATE, origin=ALICE)
        assert not caught.value.in_doubt
        assert len(heard) == 1
        nursery.cancel_scope.cancel()


async def test_answers_of_an_unproven_peer_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Before the proof, answers of a peer are limited to the length of a login's, and the log keeps
    little of them.
    """

    async def talk(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all((200_000).to_bytes(4) + b"\0\0\0\1" + bytes(199_996))

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, talk, 0)
        port = listeners[0].socket.getsockname()[1]
        peer = PeerConnection(nursery, "127.0.0.1", port, client_id="1", logins=[PASSWORD])
        with pytest.raises(PeerUnavailable) as caught, trio.fail_after(PATIENCE_SECONDS):
            await update(peer)
        assert not caught.value.in_doubt
        assert len(caplog.text) < 1_000
        nursery.cancel_scope.cancel()


async def test_a_client_is_sent_to_a_controller_that_proves_nothing() -> None:
    """If the controller cannot prove itself, the client gets NOT_CONTROLLER at once, and can ask
    the controller itself.
    """
    one = Membership("cluster", 1, lambda: SECRETS[0])
    async with (
        pair(logins=lambda broker, endpoint: (one.credentials(broker.broker_id, endpoint.address),)) as nodes,
        await nodes.near.connect() as client,
    ):
        assert codes(await client.ask(7, CREATE, CreateTopicsResponse)) == [ErrorCode.NOT_CONTROLLER] * 2
        assert nodes.recorder.calls == []
        assert +nodes.forwarder.outcomes == {"not_reached": 1}

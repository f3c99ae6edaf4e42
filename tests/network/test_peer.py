"""The way to another node: many requests on one connection, and what is known when it breaks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
from trio.testing import MockClock

from minicontroller.admin.bounds import MAX_BETWEEN_NODES_BYTES
from minicontroller.network.node_frames import GO_AWAY
from minicontroller.network.peer import (
    CONNECT_TIMEOUT_SECONDS,
    RECONNECT_BACKOFF_SECONDS,
    PeerConnection,
    PeerUnavailable,
    TooLargeForPeer,
)
from minicontroller.network.serving.context import RequestContext
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.frame import FrameBuffer
from minicontroller.protocol.header import RequestOrigin
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeResponse
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from minicontroller.security.credentials import PlainCredentials
from tests.support.small_server import CLIENTS, NODES, TINY_HANDLERS, Served, TinyNode, client_tls, serving, until

pytestmark = pytest.mark.usefixtures("each_transport")

NODE = PlainCredentials("node", "node-secret")
ALICE = RequestOrigin("User:alice", "10.0.0.1", 7)


def create(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name)])


class Gates:
    """Each topic's creation waits for the topic's own gate."""

    def __init__(self) -> None:
        self.events: dict[str, trio.Event] = {}

    async def create(self, _node: TinyNode, _ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
        name = request.topics[0].name
        self.events[name] = trio.Event()
        await self.events[name].wait()
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=name)])


@asynccontextmanager
async def connected(
    *,
    gates: Gates | None = None,
    credentials: PlainCredentials | None = NODE,
    max_bytes: int = MAX_BETWEEN_NODES_BYTES,
) -> AsyncIterator[tuple[Served, PeerConnection]]:
    handlers = TINY_HANDLERS if gates is None else {**TINY_HANDLERS, ApiKey.CREATE_TOPICS: gates.create}
    async with serving(handlers=handlers, listeners=[CLIENTS, NODES]) as served, trio.open_nursery() as nursery:
        listener = CLIENTS if credentials is None else NODES
        port = served.server.ports[listener.name]
        logins = () if credentials is None else (credentials,)
        yield (
            served,
            PeerConnection(
                nursery, "127.0.0.1", port, client_id="7", logins=logins, tls=client_tls, max_bytes=max_bytes
            ),
        )
        nursery.cancel_scope.cancel()


async def ask_metadata(peer: PeerConnection, name: str) -> str | None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    answer = await peer.request(ApiKey.METADATA, 12, request)
    assert isinstance(answer, MetadataResponse)
    return answer.topics[0].name


@pytest.mark.parametrize("credentials", [NODE, None])
async def test_it_connects_when_it_is_asked_and_says_who_it_is(credentials: PlainCredentials | None) -> None:
    """A peer connects at the first request, authenticates first if it has credentials, sends no
    ApiVersions, and uses the node's client id.
    """
    async with connected(credentials=credentials) as (served, peer):
        assert not served.server.connections
        assert await ask_metadata(peer, "t") == "t"
        assert served.node.seen[0].client_id == "7"
        assert served.node.seen[0].caller.from_peer is (credentials is not None)
        assert await ask_metadata(peer, "u") == "u"
        assert len(served.server.connections) == 1


async def test_answers_find_their_askers_in_any_order() -> None:
    """Requests in flight that are answered in reverse order each get their own answer."""
    gates = Gates()
    names = [f"t{number}" for number in range(50)]
    answers: dict[str, str] = {}
    async with connected(gates=gates) as (served, peer):

        async def ask(name: str) -> None:
            answer = await peer.request(ApiKey.CREATE_TOPICS, 7, create(name))
            assert isinstance(answer, CreateTopicsResponse)
            answers[name] = answer.topics[0].name

        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(ask, name)
            await until(lambda: len(gates.events) == len(names))
            for name in reversed(names):
                gates.events[name].set()
        assert answers == {name: name for name in names}
        assert len(served.server.connections) == 1


async def test_who_gives_up_waiting_disturbs_nobody() -> None:
    """A cancelled request's late answer is dropped; the connection goes on."""
    gates = Gates()
    async with connected(gates=gates) as (_, peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.request, ApiKey.CREATE_TOPICS, 7, create("abandoned"))
            await until(lambda: "abandoned" in gates.events)
            nursery.cancel_scope.cancel()
        gates.events["abandoned"].set()
        assert await ask_metadata(peer, "t") == "t"


async def test_a_large_request_is_not_cut_by_its_askers_end() -> None:
    """Half of a request in the kernel, and its asker cancelled: the rest follows all the same, and
    the stream stays whole.
    """
    gates = Gates()
    async with connected(gates=gates) as (_, peer):
        large = CreateTopicsRequest(topics=[CreatableTopic(name=f"{number:030000}") for number in range(1000)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.request, ApiKey.CREATE_TOPICS, 7, large)
            while peer._link is None or peer._link.outbox.queued_bytes == 0:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        with trio.fail_after(30):
            assert await ask_metadata(peer, "t") == "t"


async def test_a_connection_that_breaks_leaves_its_requests_in_doubt() -> None:
    """Requests that were sent and not answered when the connection breaks are in doubt; the next
    request makes a new connection.
    """
    gates = Gates()
    async with connected(gates=gates) as (served, peer):

        async def cut() -> None:
            await until(lambda: "t" in gates.events)
            for connection in list(served.server.connections):
                connection.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(cut)
            with pytest.raises(PeerUnavailable) as caught:
                await peer.request(ApiKey.CREATE_TOPICS, 7, create("t"))
        assert caught.value.in_doubt
        assert await ask_metadata(peer, "t") == "t"


async def test_a_node_that_stops_leaves_nothing_in_doubt(autojump_clock: MockClock) -> None:
    """K4-5: of requests forwarded to it, it answers what it has read, and says of the rest that it
    has not read it.
    """
    gates = Gates()
    async with connected(gates=gates) as (served, peer), trio.open_nursery() as nursery:
        told: dict[str, str] = {}

        async def ask(name: str) -> None:
            try:
                await peer.request(ApiKey.CREATE_TOPICS, 7, create(name), origin=ALICE)
                told[name] = "done"
            except PeerUnavailable as error:
                told[name] = "in doubt" if error.in_doubt else "not done"

        nursery.start_soon(ask, "read")
        await until(lambda: "read" in gates.events)
        nursery.start_soon(served.server.shutdown, 30)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, "unread")
        await trio.testing.wait_all_tasks_blocked()
        assert told == {}
        gates.events["read"].set()
        await until(lambda: len(told) == 2)
        assert told == {"read": "done", "unread": "not done"}
        assert set(gates.events) == {"read"}


async def test_a_go_away_that_comes_with_the_end_of_the_login_is_heard() -> None:
    """K4-5: what is sent to a node that stopped reading while it let us in is not in doubt, also if
    all that it said came at once.
    """

    async def let_in_and_stop(stream: trio.SocketStream) -> None:
        frames = FrameBuffer(MAX_BETWEEN_NODES_BYTES)
        answers: list[tuple[WireStruct, bytes]] = [
            (SaslHandshakeResponse(mechanisms=["PLAIN"]), b""),
            (SaslAuthenticateResponse(), GO_AWAY),
        ]
        for answer, go_away in answers:
            while (frame := frames.next_frame()) is None:
                frames.feed(await stream.receive_some())
            asked, _, _ = KAFKA.decode_request(frame)
            said = KAFKA.encode_response(asked.api_key, asked.api_version, asked.correlation_id, answer)
            await stream.send_all(said + go_away)
        while await stream.receive_some():
            pass

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, let_in_and_stop, 0)
        port = listeners[0].socket.getsockname()[1]
        peer = PeerConnection(nursery, "127.0.0.1", port, client_id="7", logins=(NODE,))
        with trio.fail_after(30), pytest.raises(PeerUnavailable, match="it stops") as caught:
            await peer.request(ApiKey.CREATE_TOPICS, 7, create("t"), origin=ALICE)
        assert not caught.value.in_doubt
        nursery.cancel_scope.cancel()


async def test_nodes_are_heard_until_the_last_client_is_answered(autojump_clock: MockClock) -> None:
    """A stopping node accepts requests of other nodes, on new connections too, until its clients
    are answered.
    """
    async with connected() as (served, peer), await served.connect() as client, trio.open_nursery() as nursery:
        await client.send(client.encode(7, create("t")))
        await until(lambda: served.node.waiting == 1)
        nursery.start_soon(served.server.shutdown, 30)
        await trio.testing.wait_all_tasks_blocked()
        assert await ask_metadata(peer, "told") == "told"
        served.node.gate.set()
        _, answer = await client.answer(CreateTopicsResponse, 7)
        assert [topic.error_code for topic in answer.topics] == [0]
        await until(lambda: not served.server.connections)
        with pytest.raises(PeerUnavailable):
            await ask_metadata(peer, "late")


async def test_an_idle_connection_is_not_trusted(autojump_clock: MockClock) -> None:
    """The other end closes it after ten minutes: a request that met this moment would be left in
    doubt, so a new one is made.
    """
    async with connected() as (served, peer):
        await ask_metadata(peer, "t")
        (first,) = served.server.connections
        await trio.sleep(530)
        await ask_metadata(peer, "t")
        assert list(served.server.connections) == [first]
        await trio.sleep(550)
        await ask_metadata(peer, "t")
        await until(lambda: first not in served.server.connections)
        assert len(served.server.connections) == 1


async def test_closing_tells_who_waits() -> None:
    """`close` ends every wait, in doubt."""
    gates = Gates()
    async with connected(gates=gates) as (_, peer), trio.open_nursery() as nursery:

        async def close() -> None:
            await until(lambda: "t" in gates.events)
            peer.close()

        nursery.start_soon(close)
        with pytest.raises(PeerUnavailable, match="closed from this end") as caught:
            await peer.request(ApiKey.CREATE_TOPICS, 7, create("t"))
        assert caught.value.in_doubt


async def test_a_node_that_is_not_there_has_got_nothing(autojump_clock: MockClock) -> None:
    """Connection refused is no doubt; attempts are a tenth of a second apart; and it connects once
    the node is there.
    """
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    async with trio.open_nursery() as nursery:
        peer = PeerConnection(nursery, "127.0.0.1", port, client_id="7", tls=client_tls)
        began = trio.current_time()
        for _ in range(4):
            with pytest.raises(PeerUnavailable, match="cannot reach") as caught:
                await ask_metadata(peer, "t")
            assert not caught.value.in_doubt
        assert trio.current_time() - began == pytest.approx(3 * RECONNECT_BACKOFF_SECONDS)
        async with serving(listeners=[msgspec.structs.replace(CLIENTS, port=port)]):
            assert await ask_metadata(peer, "t") == "t"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [(b"\0\0\0\x05\0\0\0\1\xff", True), (b"\xff\xff\xff\xff", True), (b"", True)],
    ids=["no such answer", "no frame", "nothing"],
)
async def test_a_peer_that_talks_nonsense_is_unavailable(answer: bytes, doubt: bool) -> None:
    """Any malformed answer leaves the request in doubt, and nothing hangs."""

    async def babble(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(answer)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, babble, 0)
        port = listeners[0].socket.getsockname()[1]
        peer = PeerConnection(nursery, "127.0.0.1", port, client_id="7")
        with trio.fail_after(30), pytest.raises(PeerUnavailable) as caught:
            await ask_metadata(peer, "t")
        assert caught.value.in_doubt is doubt
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("credentials", [PlainCredentials("node", "wrong"), PlainCredentials("nobody", "wrong")])
async def test_a_refused_login_is_not_in_doubt(credentials: PlainCredentials, autojump_clock: MockClock) -> None:
    """A request behind a failed authentication was not sent and is not in doubt; the password is in
    no text.
    """
    async with connected(credentials=credentials) as (served, peer):
        with pytest.raises(PeerUnavailable, match="does not accept us as") as caught:
            await ask_metadata(peer, "t")
        assert not caught.value.in_doubt
        assert "wrong" not in str(caught.value) + repr(credentials)
        assert served.node.seen == []


def test_correlation_ids_and_versions_are_those_of_the_wire() -> None:
    """Requests between nodes carry header version 2: the newest versions of all APIs of the
    controller are flexible.
    """
    for key in (ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.ALTER_CONFIGS):
        api = KAFKA[key]
        assert api.request_header_version(api.max_version) == 2


async def test_what_is_too_large_fails_by_itself() -> None:
    """A request or an answer beyond the bound fails, and the others on the connection get their
    answers over it.
    """
    gates = Gates()
    async with connected(gates=gates, max_bytes=1_000) as (served, peer), trio.open_nursery() as nursery:
        nursery.start_soon(peer.request, ApiKey.CREATE_TOPICS, 7, create("patient"))
        await until(lambda: "patient" in gates.events)
        with pytest.raises(TooLargeForPeer) as unsent:
            await ask_metadata(peer, "n" * 1_000)
        assert not unsent.value.in_doubt
        many = MetadataRequest(topics=[MetadataRequestTopic(name=str(number)) for number in range(38)])
        for _ in range(3):
            with pytest.raises(PeerUnavailable) as unread:
                await peer.request(ApiKey.METADATA, 12, many)
            assert unread.value.in_doubt
            assert await ask_metadata(peer, "small") == "small"
        assert len(served.server.connections) == 1
        gates.events["patient"].set()


async def test_whoever_asks_meanwhile_shares_the_attempt(autojump_clock: MockClock) -> None:
    """Requests to a host that accepts connections and does not answer fail together after one
    attempt; a cancelled one does not end it.

    One who leaves does not end the attempt of the others.
    """
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    waited: list[float] = []

    async def ask() -> None:
        began = trio.current_time()
        with pytest.raises(PeerUnavailable, match="no answer in time"):
            await ask_metadata(peer, "t")
        waited.append(trio.current_time() - began)

    async with trio.open_nursery() as nursery:
        port = listener.socket.getsockname()[1]
        peer = PeerConnection(nursery, "127.0.0.1", port, client_id="7", logins=(NODE,))
        async with trio.open_nursery() as askers:
            with trio.move_on_after(1):
                await ask_metadata(peer, "t")
            for _ in range(4):
                askers.start_soon(ask)
        assert waited == [pytest.approx(CONNECT_TIMEOUT_SECONDS - 1)] * 4
        nursery.cancel_scope.cancel()
    await listener.aclose()


async def test_closing_ends_an_attempt(autojump_clock: MockClock) -> None:
    """Closing a peer ends its connection attempt at once."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        port = listener.socket.getsockname()[1]
        peer = PeerConnection(nursery, "127.0.0.1", port, client_id="7", logins=(NODE,))

        async def close() -> None:
            await trio.sleep(1)
            peer.close()

        nursery.start_soon(close)
        with pytest.raises(PeerUnavailable, match="closed") as caught:
            await ask_metadata(peer, "t")
        assert not caught.value.in_doubt
        nursery.cancel_scope.cancel()
    await listener.aclose()

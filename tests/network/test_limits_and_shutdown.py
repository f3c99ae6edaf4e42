"""How many connections, for how long, and how a server ends. Time is trio's mock clock."""

import errno
import os
import socket
from typing import Self

import msgspec
import pytest
import trio
from trio.testing import MockClock

from minicontroller.network.limits import ConnectionLimits, room_for_connections
from minicontroller.network.server import Acceptor, PortTakenError, Server, check_addresses
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from minicontroller.security.caller import Listener
from tests.support.ports import free_port
from tests.support.small_server import CLIENTS, TINY_HANDLERS, Client, open_stream, serving, until

pytestmark = pytest.mark.usefixtures("each_transport")

CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t")])
ALL = MetadataRequest(topics=None)
INTERNAL = Listener(name="INTERNAL", host="127.0.0.1", inter_broker=True)


async def test_port_0_is_a_free_port_and_reported() -> None:
    """Each listener reports the port at which it listens."""
    async with serving(listeners=[CLIENTS, INTERNAL]) as served:
        assert len({served.server.ports["CLIENTS"], served.server.ports["INTERNAL"], 0}) == 3
        assert await served.alive(INTERNAL)


async def test_a_port_that_is_taken_is_an_error_at_once() -> None:
    """A node that cannot have its port does not start half, and says which listener it was."""
    async with serving() as served:
        port = served.server.ports["CLIENTS"]
        with pytest.raises(OSError, match=rf"Listener CLIENTS cannot listen on 127\.0\.0\.1, port {port}: .* in use"):
            await Server().open([msgspec.structs.replace(CLIENTS, port=port)], served.dispatcher)


# ------------------------------------------------------------------ how many


async def test_an_address_with_too_many_connections_is_refused() -> None:
    """`max.connections.per.ip`: one more is closed at once, and has its place when another goes."""
    async with serving(limits=ConnectionLimits(max_connections_per_ip=1)) as served:
        async with await served.connect() as first:
            await first.ask(1, ALL, MetadataResponse)
            async with await served.connect() as second:
                assert await second.ended()
        await until(lambda: not served.server.connections)
        assert await served.alive()


async def test_an_address_may_have_a_limit_of_its_own() -> None:
    """`max.connections.per.ip.overrides` wins, in both directions."""
    generous = ConnectionLimits(max_connections_per_ip=0, per_ip_overrides={"127.0.0.1": 2})
    async with serving(limits=generous) as served, await served.connect() as first, await served.connect() as second:
        await first.ask(1, ALL, MetadataResponse)
        await second.ask(1, ALL, MetadataResponse)
        async with await served.connect() as third:
            assert await third.ended()
    none = ConnectionLimits(per_ip_overrides={"127.0.0.1": 0})
    async with serving(limits=none) as served, await served.connect() as client:
        assert await client.ended()


async def test_a_full_node_keeps_newcomers_waiting() -> None:
    """`max.connections`: the next one is not refused, it is answered when there is room."""
    async with serving(limits=ConnectionLimits(max_connections=1)) as served, await served.connect() as second:
        await until(lambda: len(served.server.connections) == 1)
        async with await served.connect() as third:
            await third.send(third.encode(1, ALL))
            assert await third.silent()
            await second.stream.aclose()
            await third.answer(MetadataResponse, 1)


async def test_a_node_finds_room_in_a_full_house() -> None:
    """The inter-broker listener is exempt from `max.connections`: the client that was quiet the
    longest makes room.
    """
    limits = ConnectionLimits(max_connections=2)
    async with (
        serving(listeners=[CLIENTS, INTERNAL], limits=limits) as served,
        await served.connect() as quiet,
        await served.connect() as busy,
    ):
        await quiet.ask(1, ALL, MetadataResponse)
        await busy.ask(1, ALL, MetadataResponse)
        async with await served.connect(INTERNAL) as node:
            await node.ask(1, ALL, MetadataResponse)
            assert await quiet.ended()
            await busy.ask(1, ALL, MetadataResponse)


async def test_a_listener_may_have_a_limit_of_its_own() -> None:
    """`listener.name.<name>.max.connections` holds newcomers of that listener back, and of no
    other.
    """
    small = Listener(name="SMALL", host="127.0.0.1")
    limits = ConnectionLimits(of_listeners={"SMALL": 1})
    async with serving(listeners=[CLIENTS, small], limits=limits) as served, await served.connect(small) as first:
        await first.ask(1, ALL, MetadataResponse)
        async with await served.connect(small) as second:
            await second.send(second.encode(1, ALL))
            assert await second.silent()
            assert await served.alive()


async def test_limits_may_change_while_the_server_runs(autojump_clock: MockClock) -> None:
    """A higher limit lets those in who wait, and a lower one closes the connections that are too
    many by it.
    """
    async with serving(limits=ConnectionLimits(max_connections=1)) as served, await served.connect() as first:
        await first.ask(1, ALL, MetadataResponse)
        served.server.limit(ConnectionLimits(max_connections=3))
        others = [await served.connect() for _ in range(2)]
        for client in others:
            await client.ask(1, ALL, MetadataResponse)
        served.server.limit(ConnectionLimits(max_connections=1))
        await until(lambda: len(served.connections) == 1)
        served.server.limit(ConnectionLimits(max_connections_per_ip=1))
        async with await served.connect() as one_too_many:
            assert await one_too_many.ended()
        for client in others:
            await client.stream.aclose()


async def test_quiet_connections_make_room(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """In a full node those on which nothing happens are closed for newcomers, not one whose request
    runs; one line of the log says so.
    """
    async with serving(limits=ConnectionLimits(max_connections=3)) as served, await served.connect() as busy:
        await busy.send(busy.encode(7, CREATE))
        await until(lambda: served.node.waiting == 1)
        idle = [await served.connect() for _ in range(2)]
        newcomers = [await served.connect() for _ in range(2)]
        before = trio.current_time()
        for client in newcomers:
            await client.ask(1, ALL, MetadataResponse)
        assert trio.current_time() - before < 10
        assert [await client.ended() for client in idle] == [True, True]
        for client in (*idle, *newcomers):
            await client.stream.aclose()
        served.node.gate.set()
        await busy.answer(CreateTopicsResponse, 7)
    assert caplog.text.count("to make room") == 1


async def test_who_has_the_most_makes_room_first(autojump_clock: MockClock) -> None:
    """When connections must be closed, the address with the most connections loses one first."""
    async with serving(limits=ConnectionLimits(max_connections=4)) as served:
        port = served.server.ports["CLIENTS"]
        modest = Client(await open_stream(port, local_address="127.0.0.2"))
        await modest.ask(1, ALL, MetadataResponse)
        await trio.sleep(60)
        greedy = [await served.connect() for _ in range(12)]
        async with await served.connect() as client:
            await client.ask(1, ALL, MetadataResponse)
        await modest.ask(1, ALL, MetadataResponse)
        for client in (modest, *greedy):
            await client.stream.aclose()


async def test_where_nodes_and_clients_meet_nobody_takes_all() -> None:
    """At a full listener that nodes and clients share, idle clients' connections are closed to make
    room.
    """
    limits = ConnectionLimits(max_connections=3)
    async with serving(listeners=[INTERNAL], limits=limits) as served:
        idle = [await served.connect(INTERNAL) for _ in range(10)]
        assert await served.alive(INTERNAL)
        await until(lambda: len(served.server.connections) <= limits.max_connections)
        for client in idle:
            await client.stream.aclose()


@pytest.mark.parametrize(
    ("allowed", "nodes", "room"),
    [(1024, 1, 768), (1024, 3, 213), (100, 1, 50), (100, 60, 1), (1_048_576, 1, 1_048_320)],
)
def test_there_is_room_for_as_many_as_leave_a_reserve(allowed: int, nodes: int, room: int) -> None:
    """Connections of all nodes of a process together leave what the process itself needs, and half
    of the little that there may be.
    """
    assert room_for_connections(allowed, nodes) == room


class OutOfFiles:
    """A listener whose first accepts fail as the kernel fails them."""

    def __init__(self, listener: trio.SocketListener, failures: list[int]) -> None:
        self._listener = listener
        self._failures = failures

    async def accept(self) -> trio.SocketStream:
        if self._failures:
            code = self._failures.pop(0)
            raise OSError(code, os.strerror(code))
        return await self._listener.accept()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._listener.aclose()


async def test_addresses_are_looked_at_without_keeping_them() -> None:
    """Connections are refused while a node waits for its store, and an address that cannot be bound
    is reported at once.
    """
    free = msgspec.structs.replace(CLIENTS, port=free_port())
    await check_addresses([free, INTERNAL])
    with pytest.raises(OSError, match="all attempts to connect"):
        await trio.open_tcp_stream("127.0.0.1", free.port)
    with pytest.raises(PortTakenError, match="Listener CLIENTS cannot listen"):
        await check_addresses([free, free])


async def test_running_out_of_files_is_waited_out(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """EMFILE and its like end neither the listener nor the connections: accepting goes on after a
    tenth of a second, and one line says so.
    """
    async with serving(listeners=[]) as idle:
        server = Server()
        await server.open([CLIENTS], idle.dispatcher)
        (acceptor,) = server._acceptors
        failing = OutOfFiles(acceptor.socket, [errno.EMFILE, errno.ENFILE, errno.ENOBUFS])
        server._acceptors = [Acceptor(CLIENTS, acceptor.make, failing)]  # type: ignore[arg-type]
        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with Client(await trio.open_tcp_stream("127.0.0.1", server.ports["CLIENTS"])) as client:
                await client.ask(1, ALL, MetadataResponse)
            assert trio.current_time() - started == pytest.approx(0.3)
            nursery.cancel_scope.cancel()
    assert caplog.text.count("cannot accept a connection") == 1


# ------------------------------------------------------------------ for how long


async def test_an_idle_connection_is_closed(autojump_clock: MockClock) -> None:
    """`connections.max.idle.ms` after its last request, and not much later; a truncated frame is
    idle too.
    """
    async with (
        serving(limits=ConnectionLimits(max_idle_seconds=600)) as served,
        await served.connect() as quiet,
        await served.connect() as busy,
        await served.connect() as torn,
    ):
        await quiet.ask(1, ALL, MetadataResponse)
        await torn.send(b"\0\0")
        for _ in range(7):
            await busy.ask(1, ALL, MetadataResponse)
            await trio.sleep(90)
        with trio.fail_after(60):
            assert await quiet.ended()
            assert await torn.ended()
        await busy.ask(1, ALL, MetadataResponse)


async def test_a_request_that_runs_keeps_its_connection(autojump_clock: MockClock) -> None:
    """A connection is not idle while a request of it is being carried out."""
    async with serving(limits=ConnectionLimits(max_idle_seconds=10)) as served, await served.connect() as client:
        await client.send(client.encode(7, CREATE))
        await trio.sleep(100)
        served.node.gate.set()
        await client.answer(CreateTopicsResponse, 7)


# ------------------------------------------------------------------ how it ends


async def test_shutdown_ends_idle_connections_at_once(autojump_clock: MockClock) -> None:
    """At shutdown no connection is accepted, idle connections end, and the server does not wait for
    the grace period.
    """
    async with serving() as served:
        async with await served.connect() as client:
            await client.ask(1, ALL, MetadataResponse)
            before = trio.current_time()
            await served.server.shutdown(grace_seconds=30)
            assert trio.current_time() == before
            assert await client.ended()
        with pytest.raises(OSError, match="connect"):
            await served.connect()


async def test_shutdown_lets_running_requests_be_answered(autojump_clock: MockClock) -> None:
    """At shutdown requests that were read are answered within the grace period, and no more are
    read.
    """
    async with serving() as served, await served.connect() as client, trio.open_nursery() as nursery:
        await client.send(client.encode(7, CREATE) + client.encode(7, CREATE))
        await until(lambda: served.node.waiting == 1)
        nursery.start_soon(served.server.shutdown, 30)
        await trio.testing.wait_all_tasks_blocked()
        await client.send(client.encode(7, CREATE))
        await trio.sleep(20)
        served.node.gate.set()
        assert [(await client.answer(CreateTopicsResponse, 7))[0] for _ in range(2)] == [1, 2]
        assert await client.ended()
        assert len(served.node.seen) == 2


def huge(_node: object, _ctx: object, _request: MetadataRequest) -> MetadataResponse:
    return MetadataResponse(topics=[MetadataResponseTopic(name="x" * 32_000) for _ in range(1000)])


async def test_a_listener_that_is_opened_during_the_shutdown(autojump_clock: MockClock) -> None:
    """A listener that is opened while the server waits for running requests accepts nobody."""
    async with serving() as served, await served.connect() as client, trio.open_nursery() as nursery:
        await client.send(client.encode(7, CREATE))
        await until(lambda: served.node.waiting == 1)
        nursery.start_soon(served.server.shutdown, 30)
        await trio.testing.wait_all_tasks_blocked()
        late = msgspec.structs.replace(CLIENTS, name="LATE")
        await served.server.open([late], served.dispatcher)
        with pytest.raises(OSError, match="connect"):
            await served.connect(late)
        served.node.gate.set()


async def test_shutdown_does_not_cut_an_answer_in_two() -> None:
    """An answer that the client has half of is sent to its end before the connection ends."""
    async with serving(handlers={**TINY_HANDLERS, ApiKey.METADATA: huge}) as served, await served.connect() as client:
        await client.send(client.encode(1, ALL))
        await trio.testing.wait_all_tasks_blocked(0.02)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(served.server.shutdown, 30)
            await trio.testing.wait_all_tasks_blocked(0.02)
            _, answer = await client.answer(MetadataResponse, 1)
            assert len(answer.topics) == 1000
            assert await client.ended()


async def test_shutdown_cuts_off_what_outlives_the_grace(autojump_clock: MockClock) -> None:
    """A request that still runs after the grace is cancelled, and the server returns."""
    async with serving() as served, await served.connect() as client:
        await client.send(client.encode(7, CREATE))
        await until(lambda: served.node.waiting == 1)
        before = trio.current_time()
        await served.server.shutdown(grace_seconds=30)
        assert trio.current_time() - before == 30
        assert served.node.cancelled == 1
        assert await client.ended()


async def test_a_reset_connection_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A connection that a client resets leaves no task behind and no line in the log."""
    async with serving() as served:
        client = await served.connect()
        await client.send(client.encode(7, CREATE))
        await until(lambda: served.node.waiting == 1)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await client.socket.aclose()
        await until(lambda: not served.server.connections)
        assert served.node.cancelled == 1
        assert await served.alive()
    assert caplog.text == ""

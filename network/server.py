"""The listeners of a node, and the connections that they accept.

Each connection is a task of its own, and an error in it ends no other. An error of a listener ends
the server, because a node that is down is noticed, and one that misses a listener may not be.

Shutdown has one sequence (`shutdown`): stop accepting, cancel idle reads, let running requests be
answered for a while, cancel. Clients come first and nodes second, because a client's request may
wait for a message of another node, such as who the active controller is now.
"""

import errno
import heapq
import logging
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Protocol

import msgspec
import trio

from ..cluster.quotas.connection_rates import ConnectionRates
from ..process.observe.logs import RateLimitedLog
from ..security.authorizer import java_address
from ..security.caller import Caller, Listener, about_caller
from .binding import OVERLOADED, open_listeners, port_of
from .connection import Connection, FrameHandler
from .failures import ConnectionFailures
from .limits import QUIET_SECONDS, ConnectionLimits, ConnectionQuotas
from .memory import RequestMemory
from .tls import Handshakes, TlsTransport
from .transport import SocketTransport, Transport

log = logging.getLogger("minicontroller.server")

OVERLOADED_PAUSE_SECONDS = 0.1  # as trio.serve_listeners
SWEEPS_PER_IDLE_TIME = 10
"""How often idle connections are looked for: one is closed at most 1.1 times
`connections.max.idle.ms` after its last request.
"""


SHARE_THAT_MAKES_ROOM = 100
"""A node that is full closes one of so many connections at a time, and at least one."""


MOST_REFUSED = 100
"""How many connections that were refused are kept open for a while."""


class PortTakenError(OSError):
    """Another process listens on the port."""


class ServedConnection(Protocol):
    """An accepted connection, as the server sees it."""

    caller: Caller
    last_active: float
    """trio's time of the last sign of the client."""

    @property
    def running(self) -> int:
        """How many of its requests wait for something."""

    @property
    def is_secure(self) -> bool:
        """Whether the TLS handshake is over, if there is one."""

    @property
    def is_leaving(self) -> bool: ...

    @property
    def is_waiting_for_us(self) -> bool:
        """Whether the client waits for a response, and so is not idle."""

    async def run(self) -> None:
        """Serve until the connection ends. Raises only for defects of this program."""

    def drain(self) -> None:
        """Read no more, and end when the running requests are answered."""

    def cancel(self) -> None: ...


MakeConnection = Callable[[Transport, Caller], ServedConnection]


class Acceptor(msgspec.Struct, frozen=True):
    """One socket of a listener, and what makes the connections that it accepts."""

    listener: Listener
    make: MakeConnection
    socket: trio.SocketListener
    accepting: trio.CancelScope = msgspec.field(default_factory=trio.CancelScope)


class Server:
    """The listeners of a node: `open`, then `run` until `shutdown`. Between `open` and `run` the
    kernel queues connections.
    """

    def __init__(self, limits: ConnectionLimits | None = None, rates: ConnectionRates | None = None) -> None:
        self.rates = rates
        self.connections: set[ServedConnection] = set()
        self.ports: dict[str, int] = {}
        """The bound port of each listener by name, also where the configured port is 0."""
        self.failures = ConnectionFailures()
        self._quotas = ConnectionQuotas(limits or ConnectionLimits())
        self.memory = RequestMemory(self.limits.max_unfinished_bytes)
        self._acceptors: list[Acceptor] = []
        self._begin: Callable[[Acceptor], None] | None = None
        """Begins to accept, while the server runs."""
        self._closed_to: set[bool] = set()
        """Whose listeners are closed for ever: those of clients (False), those of nodes (True)."""
        self._is_shut_down = trio.Event()
        self._changed = trio.lowlevel.ParkingLot()
        self._handshakes = Handshakes()
        self._refused_now = 0
        self._overloaded, self._refused, self._closed = RateLimitedLog(log), RateLimitedLog(log), RateLimitedLog(log)

    async def open(self, listeners: Iterable[Listener], handler: FrameHandler) -> None:
        """Bind listeners whose requests this handler answers. Others can follow, with another
        handler. Raises OSError.
        """
        await self.open_for(listeners, partial(self._connection, handler))

    async def open_for(self, listeners: Iterable[Listener], make: MakeConnection) -> None:
        """Bind listeners at which `make` makes the connections; also while the server runs. One
        that is opened when the server has begun to shut down is closed at once. Raises OSError.
        """
        for listener in listeners:
            for mechanism in listener.mechanisms:
                self.failures.failed_authentications.setdefault(mechanism, 0)
            for opened in await _listening(listener):
                acceptor = Acceptor(listener, make, opened)
                self._acceptors.append(acceptor)
                self.ports[listener.name] = port_of(opened)
                if listener.inter_broker in self._closed_to:
                    await opened.aclose()
                elif self._begin is not None:
                    self._begin(acceptor)

    def stop_listening(self, name: str) -> set[ServedConnection]:
        """Close the sockets of a listener, and return the connections that it has."""
        for acceptor in [each for each in self._acceptors if each.listener.name == name]:
            self._acceptors.remove(acceptor)
            acceptor.accepting.cancel()
            acceptor.socket.socket.close()
        self.ports.pop(name, None)
        return {each for each in self.connections if each.caller.listener.name == name}

    @property
    def limits(self) -> ConnectionLimits:
        return self._quotas.limits

    def limit(self, limits: ConnectionLimits) -> None:
        """Follow other limits on the number of connections, and close connections of clients that
        are too many by them.
        """
        self._quotas.limits = limits
        if self._quotas.excess():
            self._make_room(self._clients(), self._quotas.excess())
        self._changed.unpark_all()

    @property
    def listeners(self) -> Sequence[Listener]:
        return list({acceptor.listener.name: acceptor.listener for acceptor in self._acceptors}.values())

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until `shutdown`."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._sweep)
            nursery.start_soon(self.memory.run)
            self._begin = lambda acceptor: nursery.start_soon(self._accept, acceptor, nursery)
            for each in self._acceptors:
                self._begin(each)
            task_status.started()
            await self._is_shut_down.wait()
            await self._wait(lambda: not self.connections)
            nursery.cancel_scope.cancel()

    async def shutdown(self, grace_seconds: float) -> None:
        """Stop serving, and return when the last connection has ended."""
        self._stop_accepting(inter_broker=False)
        await self.drain({each for each in self.connections if not each.caller.may_be_a_node}, grace_seconds)
        self._stop_accepting(inter_broker=True)
        await self.drain(set(self.connections), grace_seconds)
        self._is_shut_down.set()

    def _stop_accepting(self, *, inter_broker: bool) -> None:
        self._closed_to.add(inter_broker)
        for acceptor in self._acceptors:
            if acceptor.listener.inter_broker == inter_broker:
                acceptor.accepting.cancel()

    def drain_nodes(self) -> None:
        """End the connections of nodes whose proof no longer holds, when their requests are
        answered. The nodes connect again.
        """
        for connection in self.connections:
            if connection.caller.rests_on_proof:
                connection.drain()

    async def drain(self, leaving: set[ServedConnection], grace_seconds: float) -> None:
        """End connections when their running requests are answered, or after a while."""
        await trio.lowlevel.checkpoint()
        for connection in leaving:
            connection.drain()
        with trio.move_on_after(grace_seconds):
            await self._wait(lambda: not leaving & self.connections)
        for connection in leaving & self.connections:
            log.warning(
                "cutting off %s with %d requests running", connection.caller, connection.running,
                extra=about_caller(connection.caller),
            )  # fmt: skip
            connection.cancel()
        await self._wait(lambda: not leaving & self.connections)

    # ------------------------------------------------------------------ accepting

    async def _accept(self, acceptor: Acceptor, nursery: trio.Nursery) -> None:
        with acceptor.accepting:
            async with acceptor.socket:
                while True:
                    await self._accept_next(acceptor, nursery)

    async def _accept_next(self, acceptor: Acceptor, nursery: trio.Nursery) -> None:
        while self._must_wait(acceptor.listener):
            await self._wait_for_room(acceptor)
        try:
            stream = await acceptor.socket.accept()
        except OSError as error:
            if error.errno not in OVERLOADED:
                raise
            self._overloaded.say(
                logging.ERROR, "cannot accept a connection: %s; trying again", os.strerror(error.errno)
            )
            self._make_room(self._clients())
            await trio.sleep(OVERLOADED_PAUSE_SECONDS)
        else:
            if self.rates is not None:
                await self._slow_down(self.rates, acceptor.listener, stream)
            self._start(acceptor, stream, nursery)

    async def _slow_down(self, rates: ConnectionRates, listener: Listener, stream: trio.SocketStream) -> None:
        """Wait as long as the rate of new connections demands; later connections wait behind."""
        is_protected = listener.inter_broker and len(self.ports) > 1
        wait_ms = rates.wait_ms(listener.name, is_protected=is_protected)
        if wait_ms:
            try:
                await trio.sleep(wait_ms / 1000)
            except BaseException:
                stream.socket.close()
                raise

    def _must_wait(self, listener: Listener) -> bool:
        if self._quotas.listener_is_full(listener.name):
            return True
        return not listener.inter_broker and self._quotas.is_full()

    async def _wait_for_room(self, acceptor: Acceptor) -> None:
        """Wait, when a new connection has no place, until that may have changed."""
        await trio.lowlevel.wait_readable(acceptor.socket.socket)
        at = None if self._quotas.is_full() else acceptor.listener
        quiet = trio.current_time() - QUIET_SECONDS
        self._make_room(
            each
            for each in self._clients(at)
            if each.last_active <= quiet
            and not each.running
            and (not each.is_secure or self._quotas.has_its_share(each.caller.host))
        )
        with trio.move_on_after(QUIET_SECONDS):
            await self._changed.park()

    def _start(self, acceptor: Acceptor, stream: trio.SocketStream, nursery: trio.Nursery) -> None:
        """Start a connection, unless the node stops or the address has too many connections."""
        listener = acceptor.listener
        if listener.inter_broker in self._closed_to:  # accepted during shutdown
            stream.socket.close()
            return
        try:
            host, port = stream.socket.getpeername()[:2]
        except OSError:  # closed by the client already
            stream.socket.close()
            return
        is_protected = listener.inter_broker and len(self.ports) > 1
        refused_ms = 0 if self.rates is None or is_protected else self.rates.refused_ms(java_address(host))
        if refused_ms:
            self._refused.say(logging.WARNING, "refused a connection of %s: its quota of connections is used up", host)
            nursery.start_soon(self._close_later, stream, refused_ms / 1000)
            return
        if not self._quotas.add(listener.name, host):
            self._refused.say(logging.WARNING, "refused a connection of %s: the address has too many", host)
            stream.socket.close()
            return
        connection = acceptor.make(self._transport(listener, stream), Caller(listener, host, port))
        if self._quotas.excess():
            self._make_room(self._clients())
        self.connections.add(connection)
        nursery.start_soon(self._guarded, connection)

    def _connection(self, handler: FrameHandler, transport: Transport, caller: Caller) -> Connection:
        return Connection(
            transport,
            caller,
            handler,
            max_request_bytes=self.limits.max_request_bytes,
            memory=self.memory,
            failures=self.failures,
            max_unauthenticated_bytes=self.limits.max_unauthenticated_bytes,
            failed_authentication_delay=self.limits.failed_authentication_delay_seconds,
        )

    async def _close_later(self, stream: trio.SocketStream, seconds: float) -> None:
        """Close a refused connection after a while, so that its client does not come again at
        once, or at once if too many are kept for that.
        """
        self._refused_now += 1
        try:
            if self._refused_now <= MOST_REFUSED:
                await trio.sleep(seconds)
        finally:
            self._refused_now -= 1
            stream.socket.close()

    def _transport(self, listener: Listener, stream: trio.SocketStream) -> Transport:
        if listener.tls is None:
            return SocketTransport(stream)
        return TlsTransport(stream, listener.tls.server_context(), handshakes=self._handshakes)

    async def _guarded(self, connection: ServedConnection) -> None:
        """Run a connection, and log an exception that ends it."""
        caller = connection.caller
        try:
            await connection.run()
        except Exception:
            log.exception("the connection of %s failed", caller, extra=about_caller(caller))
        finally:
            self.connections.discard(connection)
            self.memory.forget(connection)
            self._quotas.remove(caller.listener.name, caller.host)
            self._changed.unpark_all()

    # ------------------------------------------------------------------ ending connections

    def _clients(self, listener: Listener | None = None) -> Iterator[ServedConnection]:
        return (
            each
            for each in self.connections
            if not each.caller.from_peer
            and not each.is_leaving
            and (listener is None or each.caller.listener is listener)
        )

    def _make_room(self, clients: Iterable[ServedConnection], least: int = 1) -> None:
        """Close the least important connections, several at a time, because finding them means
        looking at all.
        """
        count = max(least, len(self.connections) // SHARE_THAT_MAKES_ROOM)
        for connection in heapq.nsmallest(count, clients, key=self._importance):
            self._closed.say(
                logging.WARNING, "closing %s to make room", connection.caller, extra=about_caller(connection.caller)
            )
            connection.cancel()

    def _importance(self, connection: ServedConnection) -> tuple[bool, bool, bool, int, float]:
        """Return a key that orders connections: those whose handshake is not over are the least
        important.
        """
        caller = connection.caller
        of_address = self._quotas.of_address(caller.host)
        return (
            connection.is_secure,
            caller.listener.inter_broker,
            connection.running > 0,
            -of_address,
            connection.last_active,
        )

    async def _sweep(self) -> None:
        """Close idle connections. One task does so for all, because a timer for each would cost
        more.
        """
        most = self.limits.max_idle_seconds
        if math.isinf(most):
            return
        while True:
            await trio.sleep(most / SWEEPS_PER_IDLE_TIME)
            deadline = trio.current_time() - most
            for connection in list(self.connections):
                if connection.last_active <= deadline and not connection.is_waiting_for_us:
                    connection.cancel()

    async def _wait(self, reached: Callable[[], bool]) -> None:
        while not reached():
            await self._changed.park()


async def check_addresses(listeners: Iterable[Listener]) -> None:
    """Raise OSError if `Server.open` would. No address stays open, so that clients that connect
    before the node serves are refused and try another broker.
    """
    async with AsyncExitStack() as all_of_them:
        for listener in listeners:
            for opened in await _listening(listener):
                await all_of_them.enter_async_context(opened)


async def _listening(listener: Listener) -> list[trio.SocketListener]:
    try:
        return await open_listeners(listener.host, listener.port)
    except OSError as error:
        where = (listener.host or "all addresses") + (f", port {listener.port}" if listener.port else "")
        kind = PortTakenError if error.errno == errno.EADDRINUSE else OSError
        raise kind(f"Listener {listener.name} cannot listen on {where}: {error.strerror or error}.") from error

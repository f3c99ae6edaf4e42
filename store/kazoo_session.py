"""A session with ZooKeeper as kazoo keeps it; the only module that knows kazoo.

kazoo finds a server, opens the session, authenticates, sends heartbeats, opens the connection again
and ends the session. The store's requests go past it (`server_connection.py`).

Rule: kazoo is used by its public names only. A client of kazoo's is started once and ended once;
after that another `KazooSession` is made.

The SASL login runs in kazoo's thread, on the connection as kazoo sees it, before the first request
of the store. A login that the server refuses is a `LoginRefused`; a connection that breaks
meanwhile is an OSError, after which kazoo tries again.
"""

import errno
import secrets
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import AuthFailedError, WriterNotClosedException  # type: ignore[import-untyped]
from kazoo.protocol.states import KazooState, KeeperState  # type: ignore[import-untyped]
from kazoo.retry import KazooRetry  # type: ignore[import-untyped]

from .base import SessionState
from .digest_md5 import DigestError, DigestLogin, DigestMd5
from .jute import AUTHENTICATION_FAILED, CONNECTION_LOSS, FRAME_SIZE, INT, REPLY_HEADER, REQUEST_HEADER
from .kazoo_handler import KazooHandler, ReachabilityLog
from .server_connection import ServerConnection

CLOSE_SECONDS = 2.0
"""How long a server may take to end the session in good order."""
RETRY_SECONDS = 0.5
"""The longest pause between two rounds of connection attempts."""
SASL = 102
FIRST_TOKEN_XID = 1
NONCE_BYTES = 24


class SessionOwner(Protocol):
    """Who hears of a session; each method is called in the event loop, in order."""

    def connected(self, connection: ServerConnection, session_id: int, *, may_be_behind: bool) -> None:
        """The session is open on this connection; the server may be behind what the session saw."""

    def received(self, connection: ServerConnection, frames: list[bytes]) -> None:
        """The server has sent these frames, without their sizes, on this connection."""

    def disconnected(self, state: SessionState, error: int) -> None:
        """The session is suspended or has expired; unanswered requests fail with this error."""

    def ended(self, failure: Exception | None) -> None:
        """Nothing more will come; `failure` is the error that kazoo did not know how to handle."""


class KazooSession:
    """A client of kazoo's, which opens a session and, should it expire, another one. Raises
    ValueError if `hosts` is no list of host:port.

    `post` runs a call in the event loop. `pause_seconds` pass before the first attempt to connect.
    """

    def __init__(
        self,
        hosts: str,
        owner: SessionOwner,
        post: Callable[[Callable[[], object]], None],
        *,
        timeout_ms: int,
        authentication: Iterable[tuple[str, str]],
        log: ReachabilityLog,
        tls: ssl.SSLContext | None = None,
        login: DigestLogin | None = None,
        pause_seconds: float = 0.0,
    ) -> None:
        self._owner = owner
        self._post = post
        self._log = log
        self._logs_in = login is not None
        self._handler = KazooHandler(
            lambda connection, frames: post(partial(owner.received, connection, frames)),
            lambda failure: post(partial(owner.ended, failure)),
            pause_seconds=pause_seconds,
            tls=tls,
            log_in=None if login is None else partial(self._log_in, login, timeout_ms / 1000),
            on_attempt=self._accept_older_data,
        )
        self._timeout_seconds = timeout_ms / 1000
        self._lost_at: float | None = None
        self._client = KazooClient(
            hosts,
            timeout=timeout_ms / 1000,
            handler=self._handler,
            auth_data=list(authentication),
            logger=log,
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=RETRY_SECONDS),
            command_retry=KazooRetry(max_tries=0),
        )
        self._client.add_listener(self._state_changed)
        self._end = threading.Thread(target=self._stop, name="zookeeper-end", daemon=True)
        self._lock = threading.Lock()
        self.is_ending = False

    @property
    def identity(self) -> tuple[int, bytes] | None:
        """The id and the password of the session; None while it is not connected."""
        identity: tuple[int, bytes] | None = self._client.client_id
        return identity

    def start(self) -> None:
        self._client.start_async()

    def end(self) -> None:
        """End the session behind what was asked before, without waiting; in any thread, and more
        than once without harm.
        """
        with self._lock:
            if not self.is_ending:
                self.is_ending = True
                self._end.start()

    def finish(self) -> None:
        """End the session and wait for it. The connection is cut if the server does not answer."""
        self.end()
        self._end.join(CLOSE_SECONDS)
        if self._end.is_alive():
            self._handler.cut()
            self._end.join(CLOSE_SECONDS)

    def _stop(self) -> None:
        self._handler.closing.set()
        try:
            self._client.stop()
        except WriterNotClosedException:
            return  # kazoo's thread waits for the resolver; it ends when that answers
        self._client.close()

    def _log_in(self, login: DigestLogin, timeout_seconds: float, connection: ServerConnection) -> None:
        """Log in, in kazoo's thread; kazoo knows a refusal by its own error."""
        try:
            log_in(connection, login, timeout_seconds)
        except LoginRefused as refusal:
            self._log.login_refused(str(refusal))
            raise AuthFailedError("SASL") from None
        self._log.logged_in()
        self._tell_connected(connection)

    def _tell_connected(self, connection: ServerConnection) -> None:
        may_be_behind = self._client.last_zxid == 0
        self._post(partial(self._owner.connected, connection, self._client.client_id[0], may_be_behind=may_be_behind))

    def _accept_older_data(self) -> None:
        """Have servers be asked that know less than the last one did, once the session must be
        over. A server whose data was lost or restored refuses every client that has seen more than
        it has, and would do so for ever.
        """
        if self._lost_at is not None and time.perf_counter() - self._lost_at > self._timeout_seconds:
            self._client.last_zxid = 0

    def _state_changed(self, state: str) -> None:
        """Post a change of kazoo's state, in kazoo's thread."""
        connection = self._handler.connection
        if state == KazooState.CONNECTED:
            self._log.connected()
            self._lost_at = None
            assert connection is not None
            if not self._logs_in:  # else the session is of no use before the server accepts the login
                self._tell_connected(connection)
            return
        self._log.lost()
        self._lost_at = time.perf_counter()
        if state == KazooState.SUSPENDED and connection is not None:
            # The next server must not be behind what this one has answered.
            self._client.last_zxid = max(self._client.last_zxid, connection.last_zxid)
        refused = self._client.client_state == KeeperState.AUTH_FAILED
        news = SessionState.SUSPENDED if state == KazooState.SUSPENDED else SessionState.EXPIRED
        self._post(partial(self._owner.disconnected, news, AUTHENTICATION_FAILED if refused else CONNECTION_LOSS))


class LoginRefused(Exception):  # noqa: N818 - it is the server's answer
    """The server does not take this node for whom it says it is, or did not prove itself. The text
    is a sentence's end behind "ZooKeeper at <hosts>".
    """


def log_in(connection: ServerConnection, login: DigestLogin, timeout_seconds: float) -> None:
    """Log in by DIGEST-MD5. Raises LoginRefused, and OSError if the connection breaks."""
    deadline = time.perf_counter() + timeout_seconds
    exchange = DigestMd5(login, secrets.token_urlsafe(NONCE_BYTES))
    try:
        challenge = _ask(connection, FIRST_TOKEN_XID, b"", deadline)
        if challenge is None:
            raise LoginRefused("offers no SASL login: its JAAS configuration has no section Server")
        last = _ask(connection, FIRST_TOKEN_XID + 1, exchange.respond(challenge), deadline)
        exchange.verify(last or b"")
    except DigestError as error:
        raise LoginRefused(f"cannot be trusted: {error}") from None


def _ask(connection: ServerConnection, xid: int, token: bytes, deadline: float) -> bytes | None:
    """Send a token and return the server's; None if it has none."""
    body = INT.pack(len(token)) + token
    connection.send(REQUEST_HEADER.pack(len(body) + 8, xid, SASL) + body)
    answer = _frame(connection, deadline)
    error = REPLY_HEADER.unpack_from(answer)[2]
    if error:
        raise LoginRefused(
            "refuses this node's login: the user and the password must be those of a user in the section Server "
            f"of its JAAS configuration (error {error})"
        )
    if len(answer) < REPLY_HEADER.size + INT.size:
        return None
    length = INT.unpack_from(answer, REPLY_HEADER.size)[0]
    start = REPLY_HEADER.size + INT.size
    return None if length < 0 else answer[start : start + length]


def _frame(connection: ServerConnection, deadline: float) -> bytes:
    """Return the next frame that is not the store's, without its size."""
    remaining = deadline - time.perf_counter()
    if remaining <= 0 or not connection.wait(remaining, None)[0]:
        raise OSError(errno.ETIMEDOUT, "no answer to the SASL login")
    size = connection.recv(FRAME_SIZE.size)
    if not size:
        raise OSError(errno.ECONNRESET, "the connection ended during the SASL login")
    return connection.recv(FRAME_SIZE.unpack(size)[0])  # frames arrive whole

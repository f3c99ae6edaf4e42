"""The SASL login of a session at its server, before the first request of the store.

Rule: runs in kazoo's thread, on the connection as kazoo sees it. A login that the server refuses is
a `LoginRefused`; a connection that breaks meanwhile is an OSError, after which kazoo tries again.
"""

import errno
import secrets
import time

from .digest_md5 import DigestError, DigestLogin, DigestMd5
from .jute import FRAME_SIZE, INT, REPLY_HEADER, REQUEST_HEADER
from .server_connection import ServerConnection

SASL = 102
FIRST_TOKEN_XID = 1
NONCE_BYTES = 24


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

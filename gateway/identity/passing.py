"""`identity=pass`: logins go through to the broker, and the gateway learns whose they are.

Rule: the caller's principal is that of the last login which the broker has accepted. Until then,
and where the login does not tell a name, the caller has not authenticated as far as the gateway
knows; a client certificate that was shown at the gateway counts where no login follows.
"""

import logging
from functools import partial

from ...process.observe.logs import RateLimitedLog
from ...protocol.error_codes import ErrorCode
from ...protocol.errors import InvalidFrameSize, ProtocolError
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest
from ...protocol.registry import KAFKA
from ...security.caller import Caller, Listener
from ...security.principal import user_principal
from ..apis import APIS
from ..frames import FrameReader, FrameWriter
from ..parties import Move
from ..requests import RequestHead
from .sight import SUBJECT_CLAIM, Sight

log = logging.getLogger("minicontroller.gateway")

MOST_LOGIN_BYTES = 128 * 1024
"""The largest request of a login, which is read as a whole. A ticket of Kerberos or a signed token
is not longer.
"""


async def whole_login_request(frames: FrameReader) -> bytes:
    """Return the request of a login that was begun, without its size and without taking it. Raises
    InvalidFrameSize, Disconnected.
    """
    if frames.left > MOST_LOGIN_BYTES:
        raise InvalidFrameSize(f"a login of {frames.left} bytes is announced, {MOST_LOGIN_BYTES} are allowed")
    return await frames.look(frames.left)


class PassedLogins:
    """The logins of all clients of a gateway."""

    def __init__(self, subject_claim: str = SUBJECT_CLAIM, *, must_log_in: bool) -> None:
        """`subject_claim` names the user in tokens of OAUTHBEARER, as it does at the brokers, and
        `must_log_in` says whether they ask for a login.
        """
        self.subject_claim = subject_claim
        self.must_log_in = must_log_in
        self._unknown = RateLimitedLog(log)

    def of(self, caller: Caller) -> "PassedLogin":
        return PassedLogin(self, caller)

    def at(self, listener: Listener) -> Listener:
        return listener

    def is_unknown(self, caller: Caller, mechanism: str) -> None:
        """Log that a login was accepted whose name cannot be learned."""
        self._unknown.say(
            logging.WARNING,
            "the gateway cannot see the user in the login of %s by %s: the client counts as not authenticated here",
            caller,
            mechanism,
        )


class PassedLogin:
    """The logins on one connection, which may authenticate more than once (KIP-368)."""

    def __init__(self, logins: PassedLogins, caller: Caller) -> None:
        self._logins = logins
        self._caller = caller
        self._sight: Sight | None = None
        self._has_logged_in = False

    @property
    def is_over(self) -> bool:
        return False

    @property
    def credentials(self) -> None:
        """The client itself logs in at the broker."""

    def check(self) -> None:
        if self._logins.must_log_in and not self._has_logged_in:
            raise ProtocolError("a request came before the client had authenticated")

    def may_forward(self, _head: RequestHead) -> bool:
        return False

    def forwards(self, _frame: bytes) -> bool:
        return False

    async def forward(self, _frame: bytes) -> bytes:
        raise AssertionError("requests pass to the broker")

    async def answer_of(self, _head: RequestHead, _frames: FrameReader) -> bytes | None:
        return None

    async def move_of(self, head: RequestHead, frames: FrameReader) -> Move | None:
        """Look at a request of a login, which goes on to the broker, and return what moves its
        response; None for any other request. Raises ProtocolError, Disconnected.
        """
        if not APIS[head.api_key].is_login:
            return None
        _, request, _ = KAFKA.decode_request(await whole_login_request(frames))
        if isinstance(request, SaslHandshakeRequest):
            self._sight = Sight(request.mechanism, self._logins.subject_claim)
            return None
        assert isinstance(request, SaslAuthenticateRequest)
        if self._sight is None:
            return None
        return partial(self._move_reply, head, self._sight, self._sight.token(request.auth_bytes))

    async def _move_reply(
        self, head: RequestHead, sight: Sight, token: int, frames: FrameReader, client: FrameWriter
    ) -> None:
        frame = await frames.whole()
        _, response = KAFKA.decode_response(head.api_key, head.version, frame)
        assert isinstance(response, SaslAuthenticateResponse)
        if response.error_code == ErrorCode.NONE:
            self._accepted(sight, token, response.auth_bytes)
        await client.send(len(frame).to_bytes(4) + frame)

    def _accepted(self, sight: Sight, token: int, reply: bytes) -> None:
        if not sight.may_be_complete(token, reply):
            return
        self._has_logged_in = True
        self._caller.principal = None if sight.name is None else user_principal(sight.name)
        if sight.name is None:
            self._logins.is_unknown(self._caller, sight.mechanism)

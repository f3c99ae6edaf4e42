"""`identity=pass`: logins go through to the broker, and the gateway learns whose they are.

Rule: the caller's principal is that of the last login which the broker has accepted. Until then,
and where the login does not tell a name, the caller has not authenticated as far as the gateway
knows; a client certificate that was shown at the gateway counts where no login follows.
"""

import logging
from functools import partial

from ...process.observe.logs import RateLimitedLog
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest
from ...protocol.registry import KAFKA
from ...security.caller import Caller, Listener
from ...security.principal import user_principal
from ..frames import FrameReader, FrameWriter, Move, size_of
from ..requests import RequestHead
from .login import ABSENT, DONE, Login, LoginState
from .sight import SUBJECT_CLAIM, Sight

log = logging.getLogger("minicontroller.gateway")


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


class PassedLogin(Login):
    """The logins on one connection, which may authenticate more than once (KIP-368)."""

    def __init__(self, logins: PassedLogins, caller: Caller) -> None:
        self._logins = logins
        self._caller = caller
        self._sight: Sight | None = None
        self._has_logged_in = False

    @property
    def state(self) -> LoginState:
        return ABSENT if self._logins.must_log_in and not self._has_logged_in else DONE

    def watch(self, head: RequestHead, frame: bytes) -> Move | None:
        _, request, _ = KAFKA.decode_request(frame)
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
        await client.send(size_of(frame) + frame)

    def _accepted(self, sight: Sight, token: int, reply: bytes) -> None:
        if not sight.may_be_complete(token, reply):
            return
        self._has_logged_in = True
        self._caller.principal = None if sight.name is None else user_principal(sight.name)
        if sight.name is None:
            self._logins.is_unknown(self._caller, sight.mechanism)

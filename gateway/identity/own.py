"""Logins at the gateway itself, by the nodes' own SASL or by a client certificate; the connection
to the broker is that of another user, whom a file names for the client.

Rule: nothing but ApiVersions goes to the cluster for a client that has not authenticated here, and
nothing for one that the file does not name. Why it is refused stands in the log alone.
"""

from collections.abc import Callable

import msgspec
import trio

from ...network.failures import ConnectionFailures
from ...policies.interface import ANONYMOUS
from ...protocol.api_keys import ApiKey
from ...protocol.errors import InvalidFrameSize, ProtocolError
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest
from ...protocol.registry import KAFKA
from ...protocol.schema import WireStruct
from ...security.caller import Caller, Listener
from ...security.credentials import Credentials
from ...security.login_requests import authenticate, handshake
from ...security.principal import USER, user_principal
from ...security.sasl import Mechanism, Proved, Rejected, SaslExchange, SaslOutcome, invalid_credentials
from ..apis import APIS
from ..frames import FrameReader
from ..parties import Move
from ..requests import RequestHead
from .forwarding import Forwarding, concerns_brokers
from .passing import MOST_LOGIN_BYTES, whole_login_request

WRONG_PASSWORD = Rejected("Authentication failed: Invalid username or password")
"""The answer of PLAIN to a wrong password."""
Refusal = Callable[[str], str]
"""Returns why the gateway does not serve a user who has authenticated; empty if it does."""


class ServedUsers:
    """An exchange after which only users whom the gateway serves are let in; whoever else has the
    right password is answered as if it were wrong.
    """

    def __init__(self, mechanism: str, exchange: SaslExchange, refusal: Refusal) -> None:
        self._mechanism = mechanism
        self._exchange = exchange
        self._refusal = refusal

    def step(self, token: bytes) -> SaslOutcome:
        outcome = self._exchange.step(token)
        refusal = self._refusal(outcome.username) if isinstance(outcome, Proved) else ""
        if not refusal:
            return outcome
        told = WRONG_PASSWORD if self._mechanism == "PLAIN" else invalid_credentials(self._mechanism)
        return Rejected(told.message, refusal)


class OwnLogins:
    """The logins of all clients of a gateway that authenticates them itself."""

    def __init__(
        self,
        upstream: Callable[[str], Credentials | None] | None,
        forwarding: Forwarding | None,
        failures: ConnectionFailures,
        failed_authentication_delay: float,
    ) -> None:
        """`upstream` returns the credentials at the brokers by a user's name; it is None where
        brokers ask for no login. `forwarding` has the controller answer what changes the
        cluster's metadata, if that goes under clients' own names.
        """
        self.forwarding = forwarding
        self.upstream = upstream
        self.failures = failures
        self.failed_authentication_delay = failed_authentication_delay

    def at(self, listener: Listener) -> Listener:
        """Return a listener that lets in only users whom the gateway serves."""
        mechanisms = {name: self._served(name, start) for name, start in listener.mechanisms.items()}
        return msgspec.structs.replace(listener, mechanisms=mechanisms)

    def of(self, caller: Caller) -> "OwnLogin":
        return OwnLogin(self, caller)

    def refusal(self, user: str) -> str:
        """Return why a user is not served; empty if they are."""
        if self.forwarding is not None and user_principal(user) == ANONYMOUS:
            return "the cluster uses this name for clients that have not authenticated"
        if self.upstream is not None and self.upstream(user) is None:
            return f"no credentials are configured for the user {user!r}"
        return ""

    def _served(self, mechanism: str, start: Mechanism) -> Mechanism:
        return lambda: ServedUsers(mechanism, start(), self.refusal)


class OwnLogin:
    """The logins on one connection."""

    def __init__(self, logins: OwnLogins, caller: Caller) -> None:
        self._logins = logins
        self._caller = caller
        self._used: Credentials | None = None
        """The credentials with which the connection to the broker logged in."""

    @property
    def is_over(self) -> bool:
        """Whether no more requests are read: a login failed, or the user has other credentials at
        the brokers than those of the connection.
        """
        return self._caller.must_leave or (self._used is not None and self._used != self._current())

    @property
    def credentials(self) -> Credentials | None:
        """The credentials for the connection to the broker; None as long as it needs none."""
        if self._caller.authenticated:
            self._used = self._current()
        return self._used

    def check(self) -> None:
        """Nothing is left to check: no request came here that may not be sent."""

    def may_forward(self, head: RequestHead) -> bool:
        return self._logins.forwarding is not None and APIS[head.api_key].is_forwarded

    def forwards(self, frame: bytes) -> bool:
        return not concerns_brokers(frame)

    async def forward(self, frame: bytes) -> bytes:
        assert self._logins.forwarding is not None
        return await self._logins.forwarding.answer(self._caller, frame)

    async def move_of(self, _head: RequestHead, _frames: FrameReader) -> Move | None:
        return None

    async def answer_of(self, head: RequestHead, frames: FrameReader) -> bytes | None:
        """Answer a request of a login, and take it; return None for one that goes on to the broker.
        Raises ProtocolError for one that does not.
        """
        if not APIS[head.api_key].is_login:
            self._check(head, frames)
            return None
        await whole_login_request(frames)
        _, request, _ = KAFKA.decode_request(await frames.whole())
        if isinstance(request, SaslHandshakeRequest):
            response: WireStruct = handshake(self._caller, request, head.version)
        else:
            assert isinstance(request, SaslAuthenticateRequest)
            response = authenticate(self._caller, request)
        if self._caller.must_leave:
            self._logins.failures.failed_authentication(self._caller)
            # The client waits, to slow down guessing (connection.failed.authentication.delay.ms).
            await trio.sleep(self._logins.failed_authentication_delay)
        return KAFKA.encode_response(head.api_key, head.version, head.correlation_id, response)

    def _check(self, head: RequestHead, frames: FrameReader) -> None:
        caller = self._caller
        if not caller.authenticated or caller.is_amid_authentication:
            if head.api_key != ApiKey.API_VERSIONS or caller.is_amid_authentication:
                raise ProtocolError("a request came before the client had authenticated")
            if frames.left > MOST_LOGIN_BYTES:
                raise InvalidFrameSize(f"a request of {frames.left} bytes before authentication")
            return
        if trio.current_time() >= caller.expires:
            raise ProtocolError("the session has expired, and the client did not authenticate again")
        if caller.has_valid_token is not None and not caller.has_valid_token():
            raise ProtocolError("the credential of the client is no longer valid")
        if caller.principal is None:
            raise ProtocolError("the client has sent no certificate, and this listener has no other login")
        refusal = self._logins.refusal(user_of(caller))
        if refusal:
            raise ProtocolError(refusal)

    def _current(self) -> Credentials | None:
        upstream = self._logins.upstream
        return None if upstream is None or self._caller.principal is None else upstream(user_of(self._caller))


def user_of(caller: Caller) -> str:
    """Return the name of the user of an authenticated client."""
    assert caller.principal is not None
    return caller.principal.removeprefix(f"{USER}:")

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
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest
from ...protocol.registry import KAFKA
from ...protocol.schema import WireStruct
from ...security.caller import Caller, Listener
from ...security.credentials import Credentials
from ...security.login_requests import authenticate, handshake
from ...security.principal import USER, user_principal
from ...security.sasl import Mechanism, Proved, Rejected, SaslExchange, SaslOutcome, invalid_credentials
from ..requests import RequestHead
from .login import ABSENT, DONE, UNDER_WAY, Login, LoginState, Stage

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
        failures: ConnectionFailures,
        failed_authentication_delay: float,
        *,
        forwards: bool,
    ) -> None:
        """`upstream` returns the credentials at the brokers by a user's name; it is None where
        brokers ask for no login. `forwards` says whether requests go to the controller under the
        clients' own names.
        """
        self.forwards = forwards
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
        if self.forwards and user_principal(user) == ANONYMOUS:
            return "the cluster uses this name for clients that have not authenticated"
        if self.upstream is not None and self.upstream(user) is None:
            return f"no credentials are configured for the user {user!r}"
        return ""

    def _served(self, mechanism: str, start: Mechanism) -> Mechanism:
        return lambda: ServedUsers(mechanism, start(), self.refusal)


class OwnLogin(Login):
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

    @property
    def state(self) -> LoginState:
        caller = self._caller
        if caller.is_amid_authentication:
            return UNDER_WAY
        if not caller.authenticated:
            return ABSENT
        refusal = self._refusal()
        return LoginState(Stage.DONE, refusal) if refusal else DONE

    def _refusal(self) -> str:
        """Return why a client that has authenticated is not served; empty if it is."""
        caller = self._caller
        if trio.current_time() >= caller.expires:
            return "the session has expired, and the client did not authenticate again"
        if caller.has_valid_token is not None and not caller.has_valid_token():
            return "the credential of the client is no longer valid"
        if caller.principal is None:
            return "the client has sent no certificate, and this listener has no other login"
        return self._logins.refusal(user_of(caller))

    async def answer(self, head: RequestHead, frame: bytes) -> bytes:
        _, request, _ = KAFKA.decode_request(frame)
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

    def _current(self) -> Credentials | None:
        upstream = self._logins.upstream
        return None if upstream is None or self._caller.principal is None else upstream(user_of(self._caller))


def user_of(caller: Caller) -> str:
    """Return the name of the user of an authenticated client."""
    assert caller.principal is not None
    return caller.principal.removeprefix(f"{USER}:")

"""Authenticates a new connection to another node, by SaslHandshake and SaslAuthenticate, before any
other request is sent on it. Any failure is a `ProtocolError`.
"""

import math
from collections.abc import Awaitable, Callable

from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.errors import ProtocolError
from ..protocol.schema import WireStruct
from ..security.credentials import Credentials
from ..security.node_proof import MECHANISM as NODE_PROOF

SHARE_OF_A_SESSION = 0.85
"""The share of an authenticated session's lifetime after which a new connection is made, as Kafka's
clients do. A request at its end would be left in doubt.
"""
MOST_CHARACTERS = 500
"""How much of a text of the other end, which nobody knows yet, goes into the log."""
HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2

Ask = Callable[[ApiKey, int, WireStruct], Awaitable[WireStruct]]


class UnprovedNodeError(ProtocolError):
    """The other end does not know the proof between nodes."""


async def log_in(ask: Ask, credentials: Credentials) -> float:
    """Authenticate, and return for how many seconds the connection may be used."""
    from ..protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

    await _agree(ask, credentials.mechanism)
    exchange = credentials.exchange()
    token = next(exchange)
    while True:
        answer = await ask(ApiKey.SASL_AUTHENTICATE, AUTHENTICATE_VERSION, SaslAuthenticateRequest(auth_bytes=token))
        assert isinstance(answer, SaslAuthenticateResponse)
        if answer.error_code != ErrorCode.NONE:
            why = (answer.error_message or "")[:MOST_CHARACTERS]
            raise ProtocolError(f"it does not accept us as {credentials.username!r}: {why}")
        try:
            token = exchange.send(answer.auth_bytes)
        except StopIteration:
            lifetime_ms = answer.session_lifetime_ms
            return lifetime_ms / 1000 * SHARE_OF_A_SESSION if lifetime_ms > 0 else math.inf


async def _agree(ask: Ask, mechanism: str) -> None:
    from ..protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

    answer = await ask(ApiKey.SASL_HANDSHAKE, HANDSHAKE_VERSION, SaslHandshakeRequest(mechanism=mechanism))
    assert isinstance(answer, SaslHandshakeResponse)
    if mechanism == NODE_PROOF and answer.error_code != ErrorCode.NONE:
        raise UnprovedNodeError(
            "it does not know how nodes prove themselves, so it is an older version of this program, or no node of it"
        )
    if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise ProtocolError("nobody authenticates at this listener: its security protocol is one without SASL")
    if answer.error_code != ErrorCode.NONE:
        offered = ", ".join(answer.mechanisms)[:MOST_CHARACTERS] or "none"
        raise ProtocolError(f"it does not take the SASL mechanism {mechanism}; it offers {offered}")

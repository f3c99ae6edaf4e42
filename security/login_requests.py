"""The answers to SaslHandshake (17) and SaslAuthenticate (36), at every listener of every role."""

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ..protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from .caller import Caller
from .node_proof import MECHANISM
from .sasl import Challenge, Proved, ProvedNode, SaslState


def handshake(caller: Caller, request: SaslHandshakeRequest, version: int) -> SaslHandshakeResponse:
    """Begin an exchange by the mechanism that the client chooses. After version 0 bare tokens
    follow, after version 1 SaslAuthenticate requests.

    The response does not list the mechanism by which nodes authenticate to each other: it
    authenticates no user, and listeners without SASL accept it, too.
    """
    listener = caller.listener
    if request.mechanism == MECHANISM and listener.node_proof is not None and version >= 1:
        caller.begin_node_proof(MECHANISM, listener.node_proof)
        return SaslHandshakeResponse(mechanisms=list(listener.mechanisms))
    sasl = caller.sasl
    if sasl is None or not caller.begin_authentication():
        if sasl is not None and sasl.state is SaslState.EXCHANGE:
            caller.break_off_authentication()
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    known = sasl.handshake(request.mechanism, raw_tokens=version == 0)
    return SaslHandshakeResponse(
        error_code=ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        mechanisms=sasl.enabled_mechanisms,
    )


def authenticate(caller: Caller, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """Take one token of the exchange that SaslHandshake v1 began."""
    if caller.sasl is None or caller.sasl.state is not SaslState.EXCHANGE:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    step = caller.sasl.authenticate(request.auth_bytes)
    if isinstance(step, Challenge):
        return SaslAuthenticateResponse(auth_bytes=step.token)
    if isinstance(step, Proved):
        return SaslAuthenticateResponse(auth_bytes=step.token, session_lifetime_ms=caller.authenticated_as(step))
    if isinstance(step, ProvedNode):
        caller.proved_node()
        return SaslAuthenticateResponse()
    return SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=step.message, auth_bytes=b""
    )

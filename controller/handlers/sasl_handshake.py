"""SaslHandshake (17): the client chooses its mechanism. After version 0 bare tokens follow, after
version 1 SaslAuthenticate requests.

The response does not list the mechanism by which nodes authenticate to each other: it authenticates
no user, and listeners without SASL accept it, too.
"""

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ..requests.context import LoginContext
from ..requests.spec import Sender, Spec
from ..security.node_proof import MECHANISM
from ..security.sasl import SaslState


def handle(_node: object, ctx: LoginContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    caller, listener = ctx.caller, ctx.caller.listener
    if request.mechanism == MECHANISM and listener.node_proof is not None and ctx.api_version >= 1:
        caller.begin_node_proof(MECHANISM, listener.node_proof)
        return SaslHandshakeResponse(mechanisms=list(listener.mechanisms))
    sasl = caller.sasl
    if sasl is None or not caller.begin_authentication():
        if sasl is not None and sasl.state is SaslState.EXCHANGE:
            caller.break_off_authentication()
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    known = sasl.handshake(request.mechanism, raw_tokens=ctx.api_version == 0)
    return SaslHandshakeResponse(
        error_code=ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        mechanisms=sasl.enabled_mechanisms,
    )


API = Spec(
    key=ApiKey.SASL_HANDSHAKE,
    handler=handle,
    sender=Sender.ANYONE,
)

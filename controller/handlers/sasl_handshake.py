"""SaslHandshake (17): the client names its mechanism. v0: bare tokens follow; v1: SaslAuthenticate requests."""

from ...protocol.error_codes import ErrorCode
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ..context import RequestContext


def handle(_node: object, ctx: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    sasl = ctx.caller.sasl
    if sasl is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    known = sasl.handshake(request.mechanism, raw_tokens=ctx.api_version == 0)
    return SaslHandshakeResponse(
        error_code=ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        mechanisms=sasl.enabled_mechanisms,
    )

"""SaslAuthenticate (36) takes one token of the exchange that SaslHandshake v1 began."""

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ..requests.context import LoginContext
from ..requests.spec import Sender, Spec
from ..security.sasl import Challenge, Proved, ProvedNode, SaslState


def handle(_node: object, ctx: LoginContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    caller = ctx.caller
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


API = Spec(
    key=ApiKey.SASL_AUTHENTICATE,
    handler=handle,
    sender=Sender.ANYONE,
)

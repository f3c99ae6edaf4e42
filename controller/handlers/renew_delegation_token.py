"""RenewDelegationToken (39) lets a delegation token expire later: after the time that the request
names, or after `delegation.token.expiry.time.ms` if that is negative. Its owner and its renewers
may do so.
"""

from ...admin.renew_delegation_token import SPEC, operations_of, renewed
from ...clock import now_ms
from ...network.serving.api import Handler, served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from ..broker.delegation_tokens import DelegationTokens
from .controller_port import ControllerPort
from .delegation_tokens import alter_token, ask_if_allowed


async def receive(
    port: ControllerPort,
    _tokens: DelegationTokens,
    context: RequestContext,
    request: RenewDelegationTokenRequest,
    ask_controller: Handler,
) -> RenewDelegationTokenResponse:
    answer: RenewDelegationTokenResponse = await ask_if_allowed(
        port, context, request, ask_controller, lambda code: RenewDelegationTokenResponse(error_code=code)
    )
    return answer


async def handle(
    port: ControllerPort, tokens: DelegationTokens, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Answer a request at the active controller."""
    now, default = now_ms(), port.configs.static.integer("delegation.token.expiry.time.ms")
    code, token = await alter_token(
        port,
        tokens,
        context,
        request,
        lambda token: renewed(token, request, now, default),
        operations=operations_of(request),
    )
    if code != ErrorCode.NONE or token is None:
        return RenewDelegationTokenResponse(error_code=code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)


API = served(SPEC, handle, receiver=receive)

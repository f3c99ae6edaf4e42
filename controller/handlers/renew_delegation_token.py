"""RenewDelegationToken (39) lets a delegation token expire later: after the time that the request
names, or after `delegation.token.expiry.time.ms` if that is negative. Its owner and its renewers
may do so.
"""

from ...admin.renew_delegation_token import SPEC, operations_of
from ...clock import now_ms
from ...cluster.entities import TokenInformation
from ...network.serving.api import Handler, served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from ..broker.delegation_tokens import DelegationTokens
from .controller_port import ControllerPort
from .delegation_tokens import alter_token, ask_if_allowed, expiring_at


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
    now, period = now_ms(), request.renew_period_ms
    if period < 0:
        period = port.configs.static.integer("delegation.token.expiry.time.ms")

    def renew(token: TokenInformation) -> TokenInformation:
        return expiring_at(token, now, now + period)

    code, token = await alter_token(port, tokens, context, request, renew, operations=operations_of(request))
    if code != ErrorCode.NONE or token is None:
        return RenewDelegationTokenResponse(error_code=code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)


API = served(SPEC, handle, receiver=receive)

"""ExpireDelegationToken (40) lets a delegation token expire after the time that the request names,
or removes it at once if that is negative. Its owner and its renewers may do so.
"""

from ...admin.expire_delegation_token import SPEC, expired, operations_of
from ...clock import now_ms
from ...network.serving.api import Handler, served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ..broker.delegation_tokens import DelegationTokens
from .controller_port import ControllerPort
from .delegation_tokens import alter_token, ask_if_allowed


async def receive(
    port: ControllerPort,
    _tokens: DelegationTokens,
    context: RequestContext,
    request: ExpireDelegationTokenRequest,
    ask_controller: Handler,
) -> ExpireDelegationTokenResponse:
    answer: ExpireDelegationTokenResponse = await ask_if_allowed(
        port, context, request, ask_controller, lambda code: ExpireDelegationTokenResponse(error_code=code)
    )
    return answer


async def handle(
    port: ControllerPort, tokens: DelegationTokens, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Answer a request at the active controller."""
    now = now_ms()
    code, token = await alter_token(
        port, tokens, context, request, lambda token: expired(token, request, now), operations=operations_of(request)
    )
    if code != ErrorCode.NONE:
        return ExpireDelegationTokenResponse(error_code=code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=now if token is None else token.expires_ms)


API = served(SPEC, handle, receiver=receive)

"""RenewDelegationToken (39) lets a delegation token expire later: after the time that the request
names, or after `delegation.token.expiry.time.ms` if that is negative. Its owner and its renewers
may do so.
"""

from collections.abc import Iterable

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from ..clock import now_ms
from ..metadata.entities import DelegationToken
from ..requests.changes import RequestedChange
from ..requests.context import RequestContext
from ..requests.spec import Changes, Handler, Spec
from .delegation_tokens import KIND, NAMELESS, alter_token, ask_if_allowed, expiring_at, set_by
from .node import Node


async def receive(
    node: Node, context: RequestContext, request: RenewDelegationTokenRequest, ask_controller: Handler
) -> RenewDelegationTokenResponse:
    """Answer a request of a client at the node that received it."""
    answer: RenewDelegationTokenResponse = await ask_if_allowed(
        node, context, request, ask_controller, lambda code: RenewDelegationTokenResponse(error_code=code)
    )
    return answer


async def handle(
    node: Node, context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    """Answer a request at the active controller."""
    now, period = now_ms(), request.renew_period_ms
    if period < 0:
        period = node.config.integer("delegation.token.expiry.time.ms")

    def renew(token: DelegationToken) -> DelegationToken:
        return expiring_at(token, now, now + period)

    code, token = await alter_token(node, context, request, renew, _operations(request))
    if code != ErrorCode.NONE or token is None:
        return RenewDelegationTokenResponse(error_code=code)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=token.expires_ms)


def _operations(request: RenewDelegationTokenRequest) -> dict[str, str | None]:
    return {"renew_period_ms": str(request.renew_period_ms)}


def _requested(request: RenewDelegationTokenRequest) -> Iterable[RequestedChange]:
    operations = _operations(request)
    return [RequestedChange(NAMELESS, KIND, operations, set_by(operations))]


API = Spec(
    key=ApiKey.RENEW_DELEGATION_TOKEN,
    handler=handle,
    receiver=receive,
    at_controller=True,
    changes=Changes("renew_delegation_token", _requested),
)

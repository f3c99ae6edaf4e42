"""ExpireDelegationToken (40) lets a delegation token expire after the time that the request names,
or removes it at once if that is negative. Its owner and its renewers may do so.
"""

from collections.abc import Iterable

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ..clock import now_ms
from ..metadata.entities import DelegationToken
from ..requests.changes import RequestedChange
from ..requests.context import RequestContext
from ..requests.spec import Changes, Handler, Spec
from .delegation_tokens import KIND, NAMELESS, alter_token, ask_if_allowed, expiring_at, set_by
from .node import Node


async def receive(
    node: Node, context: RequestContext, request: ExpireDelegationTokenRequest, ask_controller: Handler
) -> ExpireDelegationTokenResponse:
    """Answer a request of a client at the node that received it."""
    answer: ExpireDelegationTokenResponse = await ask_if_allowed(
        node, context, request, ask_controller, lambda code: ExpireDelegationTokenResponse(error_code=code)
    )
    return answer


async def handle(
    node: Node, context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    """Answer a request at the active controller."""
    now, period = now_ms(), request.expiry_time_period_ms

    def expire(token: DelegationToken) -> DelegationToken | None:
        return None if period < 0 else expiring_at(token, now, now + period)

    code, token = await alter_token(node, context, request, expire, _operations(request))
    if code != ErrorCode.NONE:
        return ExpireDelegationTokenResponse(error_code=code)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=now if token is None else token.expires_ms)


def _operations(request: ExpireDelegationTokenRequest) -> dict[str, str | None]:
    return {"expiry_time_period_ms": str(request.expiry_time_period_ms)}


def _requested(request: ExpireDelegationTokenRequest) -> Iterable[RequestedChange]:
    operations = _operations(request)
    return [RequestedChange(NAMELESS, KIND, operations, set_by(operations))]


API = Spec(
    key=ApiKey.EXPIRE_DELEGATION_TOKEN,
    handler=handle,
    receiver=receive,
    at_controller=True,
    changes=Changes("expire_delegation_token", _requested),
)

"""ExpireDelegationToken (40) lets a delegation token expire after the time that the request names,
or removes it at once if that is negative. Its owner and its renewers may do so.
"""

from collections.abc import Iterable

from ..cluster.entities import TokenInformation
from ..protocol.api_keys import ApiKey
from ..protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from .changes import Change
from .delegation_tokens import NAMELESS, change_of, expiring_at
from .spec import Changes, Spec


def operations_of(request: ExpireDelegationTokenRequest) -> dict[str, str | None]:
    return {"expiry_time_period_ms": str(request.expiry_time_period_ms)}


def expired(token: TokenInformation, request: ExpireDelegationTokenRequest, now_ms: int) -> TokenInformation | None:
    """Return the token after a request, None if it is removed at once. Raises
    DELEGATION_TOKEN_EXPIRED.
    """
    period = request.expiry_time_period_ms
    return None if period < 0 else expiring_at(token, now_ms, now_ms + period)


def _requested(request: ExpireDelegationTokenRequest) -> Iterable[Change]:
    return [change_of(NAMELESS, operations_of(request))]


SPEC = Spec(
    key=ApiKey.EXPIRE_DELEGATION_TOKEN,
    at_controller=True,
    changes=Changes("expire_delegation_token", _requested),
)

"""RenewDelegationToken (39) lets a delegation token expire later: after the time that the request
names, or after `delegation.token.expiry.time.ms` if that is negative. Its owner and its renewers
may do so.
"""

from collections.abc import Iterable

from ..cluster.entities import TokenInformation
from ..protocol.api_keys import ApiKey
from ..protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from .changes import Change
from .delegation_tokens import NAMELESS, change_of, expiring_at
from .spec import Changes, Spec


def operations_of(request: RenewDelegationTokenRequest) -> dict[str, str | None]:
    return {"renew_period_ms": str(request.renew_period_ms)}


def renewed(
    token: TokenInformation, request: RenewDelegationTokenRequest, now_ms: int, default_ms: int
) -> TokenInformation:
    """Return the token after a request; without a period it lives for `default_ms` longer. Raises
    DELEGATION_TOKEN_EXPIRED.
    """
    period = request.renew_period_ms
    return expiring_at(token, now_ms, now_ms + (default_ms if period < 0 else period))


def _requested(request: RenewDelegationTokenRequest) -> Iterable[Change]:
    return [change_of(NAMELESS, operations_of(request))]


SPEC = Spec(
    key=ApiKey.RENEW_DELEGATION_TOKEN,
    at_controller=True,
    changes=Changes("renew_delegation_token", _requested),
)

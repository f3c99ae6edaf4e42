"""RenewDelegationToken (39) lets a delegation token expire later: after the time that the request
names, or after `delegation.token.expiry.time.ms` if that is negative. Its owner and its renewers
may do so.
"""

from collections.abc import Iterable

from ..protocol.api_keys import ApiKey
from ..protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from .changes import Change
from .delegation_tokens import KIND, NAMELESS, set_by
from .spec import Changes, Spec


def operations_of(request: RenewDelegationTokenRequest) -> dict[str, str | None]:
    return {"renew_period_ms": str(request.renew_period_ms)}


def _requested(request: RenewDelegationTokenRequest) -> Iterable[Change]:
    operations = operations_of(request)
    return [Change(NAMELESS, KIND, operations, set_by(operations))]


SPEC = Spec(
    key=ApiKey.RENEW_DELEGATION_TOKEN,
    at_controller=True,
    changes=Changes("renew_delegation_token", _requested),
)

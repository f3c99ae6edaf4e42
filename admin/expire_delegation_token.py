"""ExpireDelegationToken (40) lets a delegation token expire after the time that the request names,
or removes it at once if that is negative. Its owner and its renewers may do so.
"""

from collections.abc import Iterable

from ..protocol.api_keys import ApiKey
from ..protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from .changes import Change
from .delegation_tokens import KIND, NAMELESS, set_by
from .spec import Changes, Spec


def operations_of(request: ExpireDelegationTokenRequest) -> dict[str, str | None]:
    return {"expiry_time_period_ms": str(request.expiry_time_period_ms)}


def _requested(request: ExpireDelegationTokenRequest) -> Iterable[Change]:
    operations = operations_of(request)
    return [Change(NAMELESS, KIND, operations, set_by(operations))]


SPEC = Spec(
    key=ApiKey.EXPIRE_DELEGATION_TOKEN,
    at_controller=True,
    changes=Changes("expire_delegation_token", _requested),
)

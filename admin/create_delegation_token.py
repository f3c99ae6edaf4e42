"""CreateDelegationToken (38) creates a delegation token (KIP-48) for the client or, with the
permission, for another user (KIP-373). Whoever knows the HMAC in the response can log in as the
owner by SCRAM until the token expires.
"""

from collections.abc import Iterable

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from .changes import Change
from .delegation_tokens import KIND, NAMELESS, set_by, text_of
from .permissions import Permission
from .spec import Changes, Spec

CREATE_TOKENS = Permission(
    AclOperation.CREATE_TOKENS,
    AclResourceType.USER,
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED; nobody needs it for a token of their own",
)


def operations_of(request: CreateDelegationTokenRequest) -> dict[str, str | None]:
    """Return what is asked for, for the audit log."""
    asked: dict[str, str | None] = {"max_lifetime_ms": str(request.max_lifetime_ms)}
    if request.owner_principal_name:
        asked["owner"] = f"{request.owner_principal_type or ''}:{request.owner_principal_name}"
    if request.renewers:
        asked["renewers"] = ",".join(map(text_of, request.renewers))
    return asked


def _requested(request: CreateDelegationTokenRequest) -> Iterable[Change]:
    operations = operations_of(request)
    return [Change(NAMELESS, KIND, operations, set_by(operations))]


SPEC = Spec(
    key=ApiKey.CREATE_DELEGATION_TOKEN,
    at_controller=True,
    changes=Changes("create_delegation_token", _requested),
    permissions=(CREATE_TOKENS,),
)

"""CreateDelegationToken (38) creates a delegation token (KIP-48) for the client or, with the
permission, for another user (KIP-373). Whoever knows the HMAC in the response can log in as the
owner by SCRAM until the token expires.
"""

from collections.abc import Iterable

from ..cluster.entities import TokenInformation
from ..cluster.errors import Refusal
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from ..security.principal import USER
from .changes import Change
from .delegation_tokens import NAMELESS, change_of, text_of
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
        asked["owner"] = owner_of(request, "")
    if request.renewers:
        asked["renewers"] = ",".join(map(text_of, request.renewers))
    return asked


def owner_of(request: CreateDelegationTokenRequest, requester: str) -> str:
    """Return the owner of the token: the client itself where the request names nobody."""
    if not request.owner_principal_name:
        return requester
    return f"{request.owner_principal_type or ''}:{request.owner_principal_name}"


def check_principals(request: CreateDelegationTokenRequest) -> None:
    """Raise INVALID_PRINCIPAL_TYPE for a renewer that is no user, and for an owner without a type:
    Kafka fails then, or creates a token of nobody.
    """
    has_no_type = request.owner_principal_name and not request.owner_principal_type
    if has_no_type or any(renewer.principal_type != USER for renewer in request.renewers):
        raise Refusal(ErrorCode.INVALID_PRINCIPAL_TYPE)


def new_token(
    request: CreateDelegationTokenRequest,
    token_id: str,
    requester: str,
    *,
    now_ms: int,
    longest_ms: int,
    expiry_ms: int,
) -> TokenInformation:
    """Return the token that a request asks for, which lives for `longest_ms` at most, and expires
    after `expiry_ms` unless it is renewed.
    """
    wanted = request.max_lifetime_ms
    max_ms = now_ms + (longest_ms if wanted <= 0 else min(wanted, longest_ms))
    return TokenInformation(
        token_id=token_id,
        owner=owner_of(request, requester),
        requester=requester,
        renewers=tuple(map(text_of, request.renewers)),
        issued_ms=now_ms,
        expires_ms=min(max_ms, now_ms + expiry_ms),
        max_ms=max_ms,
    )


def _requested(request: CreateDelegationTokenRequest) -> Iterable[Change]:
    return [change_of(NAMELESS, operations_of(request))]


SPEC = Spec(
    key=ApiKey.CREATE_DELEGATION_TOKEN,
    at_controller=True,
    changes=Changes("create_delegation_token", _requested),
    permissions=(CREATE_TOKENS,),
)

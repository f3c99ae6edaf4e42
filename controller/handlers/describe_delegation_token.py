"""DescribeDelegationToken (41) lists delegation tokens with their HMACs, those that have expired
and are not removed yet included. A client sees the tokens that it owns, has requested or may renew,
and those that it has a permission for.
"""

from collections.abc import Collection, Sequence

from ...admin.delegation_tokens import text_of
from ...admin.permissions import Permission
from ...cluster.entities import TokenInformation
from ...cluster.errors import Refusal
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ..broker.delegation_tokens import DelegationTokens
from .delegation_tokens import check_channel, check_enabled, requester_of, type_and_name

LEFT_OUT = "the token is left out, unless the client is its owner, its requester or one of its renewers"
DESCRIBE_TOKEN = Permission(AclOperation.DESCRIBE, AclResourceType.DELEGATION_TOKEN, LEFT_OUT)
DESCRIBE_TOKENS = Permission(
    AclOperation.DESCRIBE_TOKENS, AclResourceType.USER, f"or with this one of them: {LEFT_OUT}"
)

Found = tuple[TokenInformation, bytes]


def handle(
    tokens: DelegationTokens, context: RequestContext, request: DescribeDelegationTokenRequest
) -> Steps[DescribeDelegationTokenResponse]:
    try:
        check_channel(context)
        check_enabled(tokens)
    except Refusal as refusal:
        return DescribeDelegationTokenResponse(error_code=refusal.code)
    wanted = None if request.owners is None else {text_of(owner) for owner in request.owners}
    found = [each for each in tokens.all() if wanted is None or not wanted.isdisjoint(_people(each[0]))]
    visible = _visible(context, found)
    rows = yield from one_by_one(_row(*each) for each in found if each[0].token_id in visible)
    return DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=rows)


def _people(token: TokenInformation) -> Sequence[str]:
    return (token.owner, token.requester, *token.renewers)


def _visible(context: RequestContext, found: Sequence[Found]) -> Collection[str]:
    """Return the ids of those tokens that the client may see."""
    requester = requester_of(context)
    visible = {token.token_id for token, _ in found if requester in _people(token)}
    others = [token for token, _ in found if token.token_id not in visible]
    for permission, names in (
        (DESCRIBE_TOKEN, [token.token_id for token in others]),
        (DESCRIBE_TOKENS, [token.owner for token in others]),
    ):
        allowed = context.may_each(permission, names, logs_denials=False)
        visible.update(token.token_id for token, may in zip(others, allowed, strict=True) if may)
    return visible


def _row(token: TokenInformation, token_hmac: bytes) -> DescribedDelegationToken:
    owner_type, owner_name = type_and_name(token.owner)
    requester_type, requester_name = type_and_name(token.requester)
    return DescribedDelegationToken(
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=token_hmac,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
            for kind, name in map(type_and_name, token.renewers)
        ],
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_DELEGATION_TOKEN,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_TOKEN, DESCRIBE_TOKENS),
)

"""Makes requests about delegation tokens, and results of their responses; pure."""

from collections.abc import Iterable, Mapping, Sequence

from ..protocol.error_codes import ErrorCode
from ..protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ..protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ..protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from ..protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from ..protocol.schema import WireStruct
from .errors import AdminError
from .model import DelegationToken, result_of

REASONS: Mapping[int, str] = {
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "the cluster has no delegation tokens: no secret key is configured",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "no token has this HMAC",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "only the owner and the renewers of a token may change it",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: (
        "this needs a login by SASL or by a certificate, and not by a delegation token"
    ),
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "you may not create tokens for this owner",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "the token has expired",
    ErrorCode.INVALID_PRINCIPAL_TYPE: "owners and renewers of tokens are users, such as User:alice",
}
"""Explanations of the errors, since responses about tokens carry no messages."""


def creation(owner: str | None, renewers: Iterable[str], max_lifetime_ms: int) -> CreateDelegationTokenRequest:
    owner_type, owner_name = ("", "") if owner is None else _type_and_name(owner)
    return CreateDelegationTokenRequest(
        owner_principal_type=owner_type,
        owner_principal_name=owner_name,
        renewers=[
            CreatableRenewers(principal_type=kind, principal_name=name) for kind, name in map(_type_and_name, renewers)
        ],
        max_lifetime_ms=max_lifetime_ms,
    )


def created(renewers: Iterable[str], answer: WireStruct) -> DelegationToken | AdminError:
    assert isinstance(answer, CreateDelegationTokenResponse)
    token = DelegationToken(
        token_id=answer.token_id,
        hmac=answer.hmac,
        owner=_principal(answer.principal_type, answer.principal_name),
        requester=_principal(answer.token_requester_principal_type, answer.token_requester_principal_name),
        renewers=tuple(renewers),
        issued_ms=answer.issue_timestamp_ms,
        expires_ms=answer.expiry_timestamp_ms,
        max_ms=answer.max_timestamp_ms,
    )
    return result_of(answer.error_code, _reason(answer.error_code), token)


def renewal(hmac: bytes, period_ms: int) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)


def expiration(hmac: bytes, period_ms: int) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)


def expiry(answer: WireStruct) -> int | AdminError:
    assert isinstance(answer, RenewDelegationTokenResponse | ExpireDelegationTokenResponse)
    return result_of(answer.error_code, _reason(answer.error_code), answer.expiry_timestamp_ms)


def question(owners: Sequence[str] | None) -> DescribeDelegationTokenRequest:
    if owners is None:
        return DescribeDelegationTokenRequest(owners=None)
    return DescribeDelegationTokenRequest(
        owners=[
            DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(_type_and_name, owners)
        ]
    )


def described(answer: WireStruct) -> tuple[DelegationToken, ...]:
    """Return the tokens by their ids. Raises AdminError if the request was refused."""
    assert isinstance(answer, DescribeDelegationTokenResponse)
    if answer.error_code != ErrorCode.NONE:
        raise AdminError(answer.error_code, _reason(answer.error_code))
    tokens = (
        DelegationToken(
            token_id=row.token_id,
            hmac=row.hmac,
            owner=_principal(row.principal_type, row.principal_name),
            requester=_principal(row.token_requester_principal_type, row.token_requester_principal_name),
            renewers=tuple(_principal(each.principal_type, each.principal_name) for each in row.renewers),
            issued_ms=row.issue_timestamp,
            expires_ms=row.expiry_timestamp,
            max_ms=row.max_timestamp,
        )
        for row in answer.tokens
    )
    return tuple(sorted(tokens, key=lambda token: token.token_id))


def _reason(code: int) -> str | None:
    return REASONS.get(code)


def _type_and_name(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _principal(kind: str, name: str) -> str:
    return f"{kind}:{name}" if kind or name else ""

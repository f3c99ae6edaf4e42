"""Delegation tokens (KIP-48): created, described, renewed and expired."""

from collections.abc import Mapping, Sequence

import msgspec

from ..protocol.error_codes import ErrorCode
from .calls import Calls
from .errors import check

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


class DelegationToken(msgspec.Struct, frozen=True):
    """A delegation token (KIP-48). Times are in milliseconds since 1970, principals of the form
    `User:alice`.
    """

    token_id: str
    """The user name for a login by the token."""
    hmac: bytes
    """The password for a login by the token is this secret in base64."""
    owner: str
    requester: str
    """The principal that asked for the token; empty from brokers before Kafka 3.3."""
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """The time beyond which the token cannot be renewed."""

    def __repr__(self) -> str:
        return f"DelegationToken({self.token_id!r}, owner={self.owner!r}, expires_ms={self.expires_ms})"


class TokenCalls(Calls):
    async def create_delegation_token(
        self, *, owner: str | None = None, renewers: Sequence[str] = (), max_lifetime_ms: int = -1
    ) -> DelegationToken:
        """Create a delegation token (KIP-48) for this client, or for `owner` (KIP-373). Principals
        are of the form `User:alice`. Raises AdminError.
        """
        from ..protocol.messages import create_delegation_token as messages

        def read(answer: messages.CreateDelegationTokenResponse) -> DelegationToken:
            _check(answer.error_code)
            return DelegationToken(
                token_id=answer.token_id,
                hmac=answer.hmac,
                owner=_principal(answer.principal_type, answer.principal_name),
                requester=_principal(answer.token_requester_principal_type, answer.token_requester_principal_name),
                renewers=tuple(renewers),
                issued_ms=answer.issue_timestamp_ms,
                expires_ms=answer.expiry_timestamp_ms,
                max_ms=answer.max_timestamp_ms,
            )

        owner_type, owner_name = ("", "") if owner is None else _type_and_name(owner)
        request = messages.CreateDelegationTokenRequest(
            owner_principal_type=owner_type,
            owner_principal_name=owner_name,
            renewers=[
                messages.CreatableRenewers(principal_type=kind, principal_name=name)
                for kind, name in map(_type_and_name, renewers)
            ],
            max_lifetime_ms=max_lifetime_ms,
        )
        return await self._batches.write_one(request, messages.CreateDelegationTokenResponse, read)

    async def describe_delegation_tokens(self, owners: Sequence[str] | None = None) -> tuple[DelegationToken, ...]:
        """Return the delegation tokens that this client may see: those of which one of `owners` is
        owner or renewer, or all. Raises AdminError.
        """
        from ..protocol.messages import describe_delegation_token as messages

        named = [
            messages.DescribeDelegationTokenOwner(principal_type=kind, principal_name=name)
            for kind, name in map(_type_and_name, owners or ())
        ]
        request = messages.DescribeDelegationTokenRequest(owners=None if owners is None else named)
        answer = await self._batches.ask_any(request, messages.DescribeDelegationTokenResponse)
        _check(answer.error_code)
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

    async def renew_delegation_token(self, hmac: bytes, *, renew_period_ms: int = -1) -> int:
        """Let a delegation token expire after a time from now, by default after the cluster's, and
        return when. Raises AdminError.
        """
        from ..protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse

        def read(answer: RenewDelegationTokenResponse) -> int:
            _check(answer.error_code)
            return answer.expiry_timestamp_ms

        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms)
        return await self._batches.write_one(request, RenewDelegationTokenResponse, read)

    async def expire_delegation_token(self, hmac: bytes, *, expiry_time_period_ms: int = -1) -> int:
        """Let a delegation token expire after a time from now, or remove it if that is negative.
        Return when it expires. Raises AdminError.
        """
        from ..protocol.messages import expire_delegation_token as messages

        def read(answer: messages.ExpireDelegationTokenResponse) -> int:
            _check(answer.error_code)
            return answer.expiry_timestamp_ms

        request = messages.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_time_period_ms)
        return await self._batches.write_one(request, messages.ExpireDelegationTokenResponse, read)


def _check(code: int) -> None:
    check(code, REASONS.get(code))


def _type_and_name(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def _principal(kind: str, name: str) -> str:
    return f"{kind}:{name}" if kind or name else ""

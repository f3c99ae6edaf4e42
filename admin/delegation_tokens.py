"""The parts that the APIs of delegation tokens share: how principals are written, and who may alter
a token that its HMAC names.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec
from immutables import Map

from ..cluster.entities import TokenInformation
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..protocol.error_codes import ErrorCode
from .changes import Change

KIND = "token"
NAMELESS = ""
"""The name of a token in the audit log that was not created, or that no HMAC named."""


class NamedPrincipal(Protocol):
    """A principal in a request."""

    principal_type: str
    principal_name: str


def text_of(principal: NamedPrincipal) -> str:
    return f"{principal.principal_type}:{principal.principal_name}"


def change_of(token_id: str, operations: Mapping[str, str | None]) -> Change:
    return Change(token_id, KIND, Map(operations), Map(dict.fromkeys(operations, "set")))


def altered_by(image: Image, token_id: str, requester: str) -> TokenInformation:
    """Return a token that its owner or one of its renewers asks to alter. Raises Refusal."""
    token = image.tokens.get(token_id)
    if token is None:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    if requester not in (token.owner, *token.renewers):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    return token


def expiring_at(token: TokenInformation, now_ms: int, expires_ms: int) -> TokenInformation:
    """Return the token with another time of expiry, which is no later than its maximum lifetime.
    Raises DELEGATION_TOKEN_EXPIRED.
    """
    if token.has_expired(now_ms):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return msgspec.structs.replace(token, expires_ms=min(token.max_ms, expires_ms))

"""The parts that the APIs of delegation tokens share: who may send them, how principals are
written, and the edits of a token that its HMAC names.

Rule: an HMAC is a secret. It is in requests and responses, and in nothing that is recorded or
logged.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from immutables import Map

from ...admin.changes import Change
from ...admin.delegation_tokens import KIND, NAMELESS, set_by
from ...cluster.entities import TokenInformation
from ...cluster.errors import Refusal
from ...cluster.znodes.tokens import token_path
from ...network.serving.api import Handler
from ...network.serving.context import RequestContext
from ...policies.interface import ANONYMOUS
from ...protocol.error_codes import ErrorCode
from ..broker.delegation_tokens import DelegationTokens
from .controller_port import ControllerPort
from .entity_changes import EntityEdit, change_entities


def check_channel(context: RequestContext) -> None:
    """Raise DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for a client that has not authenticated, such as
    one at a PLAINTEXT listener, or that was authenticated by a token.
    """
    if context.origin.principal is None or context.origin.by_token:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def check_enabled(tokens: DelegationTokens) -> None:
    """Raise DELEGATION_TOKEN_AUTH_DISABLED on a node without a key."""
    if tokens.key is None:
        raise Refusal(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)


def requester_of(context: RequestContext) -> str:
    return context.origin.principal or ANONYMOUS


def type_and_name(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


def refusing(refusal: Refusal, operations: Mapping[str, str | None]) -> EntityEdit:
    """Return an edit that refuses what was asked of an unknown token or a new one."""

    def edit(_token: object) -> Any:
        raise refusal

    return EntityEdit(Change(NAMELESS, KIND, Map(operations), set_by(operations)), "", edit)


async def alter_token(
    port: ControllerPort,
    tokens: DelegationTokens,
    context: RequestContext,
    request: Any,
    alter: Callable[[TokenInformation], TokenInformation | None],
    *,
    operations: Mapping[str, str | None],
) -> tuple[ErrorCode, TokenInformation | None]:
    """Alter the token whose HMAC is in the request, if the client is its owner or one of its
    renewers. `alter` returns the token afterwards, None to remove it, and raises Refusal. Return
    the outcome and, after success, the token.
    """
    requester, after = requester_of(context), None

    def edit(token: TokenInformation | None) -> TokenInformation | None:
        nonlocal after
        if token is None:
            raise Refusal(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if requester not in (token.owner, *token.renewers):
            raise Refusal(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        after = alter(token)
        return after

    (outcome,) = await change_entities(port, context, request, [_edit_of(tokens, context, request, edit, operations)])
    return outcome.code, None if outcome.refusal is not None else after


def _edit_of(
    tokens: DelegationTokens,
    context: RequestContext,
    request: Any,
    edit: Callable[[TokenInformation | None], TokenInformation | None],
    operations: Mapping[str, str | None],
) -> EntityEdit:
    try:
        check_channel(context)
        check_enabled(tokens)
    except Refusal as refusal:
        return refusing(refusal, operations)
    if (token := tokens.with_hmac(request.hmac)) is None:
        return refusing(Refusal(ErrorCode.DELEGATION_TOKEN_NOT_FOUND), operations)
    change = Change(token.token_id, KIND, Map(operations), set_by(operations))
    return EntityEdit(change, token_path(token.token_id), edit)


def expiring_at(token: TokenInformation, now: int, expires_ms: int) -> TokenInformation:
    """Return the token with another time of expiry, which is no later than its maximum lifetime.
    Raises DELEGATION_TOKEN_EXPIRED.
    """
    if token.has_expired(now):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return msgspec.structs.replace(token, expires_ms=min(token.max_ms, expires_ms))


async def ask_if_allowed(
    port: ControllerPort,
    context: RequestContext,
    request: Any,
    ask_controller: Handler,
    refused: Callable[[ErrorCode], Any],
) -> Any:
    """Answer a request at the node that received it, which checks whether the connection may ask,
    as Kafka does. If not, the controller refuses and records it, or else `refused` has the answer.
    """
    try:
        check_channel(context)
    except Refusal as refusal:
        if port.audit is None:
            port.decisions.refused(context, request, refusal)
            return refused(refusal.code)
    return await ask_controller(context, request)

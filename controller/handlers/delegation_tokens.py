"""The parts that the APIs of delegation tokens share: who may send them, how principals are
written, and how a token is altered that its HMAC names.

Rule: an HMAC is a secret. It is in requests and responses, and in nothing that is recorded or
logged.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ...admin.delegation_tokens import NAMELESS, altered_by, change_of
from ...cluster.entities import TokenInformation
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.znodes.tokens import token_path
from ...network.serving.api import Handler
from ...network.serving.context import RequestContext
from ...policies.interface import ANONYMOUS
from ...protocol.error_codes import ErrorCode
from ..broker.delegation_tokens import DelegationTokens
from .controller_port import ControllerPort
from .entity_changes import Planned, change_entity, refusing


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
    requester, token_id, after = requester_of(context), NAMELESS, None

    def altered(image: Image) -> Planned:
        nonlocal after
        after = alter(altered_by(image, token_id, requester))
        return token_path(token_id), after

    plan = altered
    try:
        check_channel(context)
        check_enabled(tokens)
        if (found := tokens.with_hmac(request.hmac)) is None:
            raise Refusal(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        token_id = found.token_id
    except Refusal as refusal:
        plan = refusing(refusal)
    outcome = await change_entity(port, context, request, change_of(token_id, operations), plan)
    return outcome.code, None if outcome.refusal is not None else after


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

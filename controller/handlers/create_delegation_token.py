"""CreateDelegationToken (38) creates a delegation token (KIP-48) for the client or, with the
permission, for another user (KIP-373). Whoever knows the HMAC in the response can log in as the
owner by SCRAM until the token expires.
"""

import base64
from collections.abc import Callable

from ...admin.create_delegation_token import (
    CREATE_TOKENS,
    SPEC,
    check_principals,
    new_token,
    operations_of,
    owner_of,
)
from ...admin.delegation_tokens import NAMELESS, change_of
from ...clock import now_ms
from ...cluster.entities import TokenInformation
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...cluster.random_ids import new_id
from ...cluster.znodes.tokens import token_path
from ...network.serving.api import Handler, served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ..broker.delegation_tokens import MAX_CHARACTERS, MAX_CHARACTERS_OF_TOKEN, DelegationTokens
from .controller_port import ControllerPort
from .delegation_tokens import ask_if_allowed, check_channel, check_enabled, requester_of, type_and_name
from .entity_changes import Planned, change_entity, refusing


async def receive(
    port: ControllerPort,
    tokens: DelegationTokens,
    context: RequestContext,
    request: CreateDelegationTokenRequest,
    ask_controller: Handler,
) -> CreateDelegationTokenResponse:
    response: CreateDelegationTokenResponse = await ask_if_allowed(
        port, context, request, ask_controller, lambda code: _response(context, request, code, None)
    )
    if response.error_code == ErrorCode.NONE:
        tokens.compare_keys(response.token_id, response.hmac)
    return response


async def handle(
    port: ControllerPort, tokens: DelegationTokens, context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    """Answer a request at the active controller."""
    token: TokenInformation | None = None
    plan: Callable[[Image], Planned]
    try:
        token = _new_token(port, tokens, context, request)
        created: Planned = token_path(token.token_id), token
        change, plan = change_of(token.token_id, operations_of(request)), lambda _image: created
    except Refusal as refusal:
        change, plan = change_of(NAMELESS, operations_of(request)), refusing(refusal)
    outcome = await change_entity(port, context, request, change, plan)
    key = tokens.key
    if outcome.refusal is not None or token is None or key is None:
        return _response(context, request, outcome.code, None)
    return _response(context, request, ErrorCode.NONE, token, key.hmac(token.token_id))


def _new_token(
    port: ControllerPort, tokens: DelegationTokens, context: RequestContext, request: CreateDelegationTokenRequest
) -> TokenInformation:
    """Return the token that a request asks for. The checks have Kafka's order. Raises Refusal."""
    check_channel(context)
    requester = requester_of(context)
    owner = owner_of(request, requester)
    if owner != requester and not context.may(CREATE_TOKENS, owner):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    check_principals(request)
    check_enabled(tokens)
    longest, expiry = "delegation.token.max.lifetime.ms", "delegation.token.expiry.time.ms"
    token = new_token(
        request,
        base64.urlsafe_b64encode(new_id()).decode().rstrip("="),
        requester,
        now_ms=now_ms(),
        longest_ms=port.configs.static.integer(longest),
        expiry_ms=port.configs.static.integer(expiry),
    )
    if not tokens.have_room_for(token):
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"A token has {MAX_CHARACTERS_OF_TOKEN} characters at most, and all tokens that one user has created "
            f"{MAX_CHARACTERS}: name fewer renewers, or expire some tokens.",
        )
    return token


def _response(
    context: RequestContext,
    request: CreateDelegationTokenRequest,
    code: ErrorCode,
    token: TokenInformation | None,
    token_hmac: bytes = b"",
) -> CreateDelegationTokenResponse:
    owner_type, owner_name = type_and_name(owner_of(request, requester_of(context)))
    requester_type, requester_name = type_and_name(requester_of(context))
    response = CreateDelegationTokenResponse(
        error_code=code,
        principal_type=owner_type,
        principal_name=owner_name,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester_name,
    )
    if token is not None:
        response.issue_timestamp_ms = token.issued_ms
        response.expiry_timestamp_ms = token.expires_ms
        response.max_timestamp_ms = token.max_ms
        response.token_id, response.hmac = token.token_id, token_hmac
    return response


API = served(SPEC, handle, receiver=receive)

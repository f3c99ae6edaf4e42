"""CreateDelegationToken (38) creates a delegation token (KIP-48) for the client or, with the
permission, for another user (KIP-373). Whoever knows the HMAC in the response can log in as the
owner by SCRAM until the token expires.
"""

import base64
from collections.abc import Mapping

from immutables import Map

from ...admin.changes import Change
from ...admin.create_delegation_token import CREATE_TOKENS, SPEC, operations_of
from ...admin.delegation_tokens import KIND, set_by, text_of
from ...clock import now_ms
from ...cluster.entities import TokenInformation
from ...cluster.errors import Refusal
from ...cluster.random_ids import new_id
from ...cluster.znodes.tokens import token_path
from ...network.serving.api import Handler, served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_delegation_token import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from ...security.principal import USER
from ..broker.delegation_tokens import MAX_CHARACTERS, MAX_CHARACTERS_OF_TOKEN, DelegationTokens
from .controller_port import ControllerPort
from .delegation_tokens import ask_if_allowed, check_channel, check_enabled, refusing, requester_of, type_and_name
from .entity_changes import EntityEdit, change_entities


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
    operations = operations_of(request)
    token: TokenInformation | None = None
    try:
        token = _new_token(port, tokens, context, request)
        edit = _creation(token, operations)
    except Refusal as refusal:
        edit = refusing(refusal, operations)
    (outcome,) = await change_entities(port, context, request, [edit])
    key = tokens.key
    if outcome.refusal is not None or token is None or key is None:
        return _response(context, request, outcome.code, None)
    return _response(context, request, ErrorCode.NONE, token, key.hmac(token.token_id))


def _new_token(
    port: ControllerPort, tokens: DelegationTokens, context: RequestContext, request: CreateDelegationTokenRequest
) -> TokenInformation:
    """Return the token that a request asks for. The checks have Kafka's order. Raises Refusal."""
    check_channel(context)
    requester, owner = requester_of(context), _owner(context, request)
    if owner != requester and not context.may(CREATE_TOKENS, owner):
        raise Refusal(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    if any(renewer.principal_type != USER for renewer in request.renewers) or _has_no_type(request):
        raise Refusal(ErrorCode.INVALID_PRINCIPAL_TYPE)
    check_enabled(tokens)
    now, longest = now_ms(), port.configs.static.integer("delegation.token.max.lifetime.ms")
    wanted = request.max_lifetime_ms
    max_ms = now + (longest if wanted <= 0 else min(wanted, longest))
    token = TokenInformation(
        token_id=base64.urlsafe_b64encode(new_id()).decode().rstrip("="),
        owner=owner,
        requester=requester,
        renewers=tuple(map(text_of, request.renewers)),
        issued_ms=now,
        expires_ms=min(max_ms, now + port.configs.static.integer("delegation.token.expiry.time.ms")),
        max_ms=max_ms,
    )
    if not tokens.have_room_for(token):
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            f"A token has {MAX_CHARACTERS_OF_TOKEN} characters at most, and all tokens that one user has created "
            f"{MAX_CHARACTERS}: name fewer renewers, or expire some tokens.",
        )
    return token


def _creation(token: TokenInformation, operations: Mapping[str, str | None]) -> EntityEdit:
    path = token_path(token.token_id)
    return EntityEdit(Change(token.token_id, KIND, Map(operations), set_by(operations)), path, lambda _none: token)


def _owner(context: RequestContext, request: CreateDelegationTokenRequest) -> str:
    """Return the owner of the token: the client itself where the request names nobody."""
    if not request.owner_principal_name:
        return requester_of(context)
    return f"{request.owner_principal_type or ''}:{request.owner_principal_name}"


def _has_no_type(request: CreateDelegationTokenRequest) -> bool:
    """Return whether an owner is named without a type. Kafka fails then, or creates a token of
    nobody.
    """
    return bool(request.owner_principal_name) and not request.owner_principal_type


def _response(
    context: RequestContext,
    request: CreateDelegationTokenRequest,
    code: ErrorCode,
    token: TokenInformation | None,
    token_hmac: bytes = b"",
) -> CreateDelegationTokenResponse:
    owner_type, owner_name = type_and_name(_owner(context, request))
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

"""Envelope (58): how a real broker forwards (K590-9). The inner request runs with its own
principal, address and version.

The receiver's checks stand in Kafka's order. The line has already ended the connection if it is not
the inter-broker listener, and refused who is no node.
"""

import ipaddress
from typing import Any

import msgspec

from ...protocol.error_codes import ErrorCode
from ...protocol.errors import ProtocolError
from ...protocol.header import RequestOrigin
from ...protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ...protocol.registry import KAFKA
from ..errors import Refusal
from ..requests.context import RequestContext, Route
from ..requests.error_answers import error_codes
from ..routing.forwarding import ControllerNode
from ..routing.routes import FORWARDABLE_APIS
from ..security.principal import principal_from_envelope

FRAME_SIZE_BYTES = 4


async def handle(node: ControllerNode, ctx: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    if node.controller is None:
        raise Refusal(ErrorCode.NOT_CONTROLLER)
    principal = _principal(request.request_principal)
    client_host = _address(request.client_host_address)
    inner, message = _inner(ctx, request.request_data, principal, client_host)
    return await _answer(inner, _route(inner), message)


def _principal(data: bytes | None) -> str | None:
    try:
        return principal_from_envelope(data or b"")
    except ValueError as error:
        raise Refusal(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from error


def _address(raw: bytes) -> str:
    try:
        return str(ipaddress.ip_address(raw))
    except ValueError as error:
        raise Refusal(ErrorCode.INVALID_REQUEST) from error


def _inner(ctx: RequestContext, frame: bytes, principal: str | None, client_host: str) -> tuple[RequestContext, Any]:
    try:
        header, message, _ = KAFKA.decode_request(frame)
    except ProtocolError as error:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION) from error
    inner = msgspec.structs.replace(
        ctx,
        api_key=header.api_key,
        api_version=header.api_version,
        correlation_id=header.correlation_id,
        client_id=header.client_id,
        origin=RequestOrigin(principal, client_host, header.api_version, header.correlation_id),
        forwarded=True,
    )
    return inner, message


def _route(ctx: RequestContext) -> Route:
    route = ctx.dispatcher.routes.get(ctx.api_key)
    if route is None or ctx.api_key not in FORWARDABLE_APIS:
        raise Refusal(ErrorCode.INVALID_REQUEST)
    return route


async def _answer(ctx: RequestContext, route: Route, message: Any) -> EnvelopeResponse:
    """Answer an envelope. NOT_CONTROLLER anywhere in the inner answer is the envelope's own: its
    sender looks for the new controller.
    """
    response = await ctx.dispatcher.respond(ctx, route, message)
    if ErrorCode.NOT_CONTROLLER in error_codes(ctx.api_key, response):
        raise Refusal(ErrorCode.NOT_CONTROLLER)
    return EnvelopeResponse(response_data=ctx.dispatcher.encode(ctx, message, response)[FRAME_SIZE_BYTES:])

"""Envelope (58) carries a client's request that a Kafka broker forwards (K590-9). The inner request
runs with its own principal, address and version. A node of this program sends a request in it whose
own header has no tags, and says in the header of the Envelope who the client is.

The checks have Kafka's order. Two are made earlier by the dispatcher: an envelope at a listener
that is not between nodes ends the connection, and a sender that is not a node is refused.
"""

import ipaddress
from typing import Any

import msgspec

from ...admin.error_answers import error_codes
from ...admin.permissions import CLUSTER_ACTION
from ...admin.spec import Sender
from ...cluster.errors import Refusal
from ...network.serving.api import ServedApi
from ...network.serving.context import AnswerNotes, RequestContext, Route
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.errors import ProtocolError
from ...protocol.header import RequestOrigin
from ...protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ...security.principal import principal_from_envelope
from ..active.active_controller import LocalController

FRAME_SIZE_BYTES = 4


async def handle(place: LocalController, ctx: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse:
    if place.active is None:
        raise Refusal(ErrorCode.NOT_CONTROLLER)
    origin = ctx.origin if ctx.forwarded else _origin(request)
    inner, route, message = _inner(ctx, request.request_data, origin)
    return await _answer(ctx, inner, route, message)


def _origin(request: EnvelopeRequest) -> RequestOrigin:
    principal, by_token = _principal(request.request_principal)
    return RequestOrigin(principal, _address(request.client_host_address), by_token=by_token)


def _principal(data: bytes | None) -> tuple[str | None, bool]:
    try:
        return principal_from_envelope(data or b"")
    except ValueError as error:
        raise Refusal(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from error


def _address(raw: bytes) -> str:
    try:
        return str(ipaddress.ip_address(raw))
    except ValueError as error:
        raise Refusal(ErrorCode.INVALID_REQUEST) from error


def _inner(ctx: RequestContext, frame: bytes, origin: RequestOrigin) -> tuple[RequestContext, Route, Any]:
    """Return the context, route and message of the inner request."""
    try:
        header, message, _ = ctx.spec.registry.decode_request(frame)
        route = ctx.dispatcher.routes.get(header.api_key)
        if route is not None and route.spec.check_readable is not None:
            route.spec.check_readable(message)
    except ProtocolError as error:
        raise Refusal(ErrorCode.UNSUPPORTED_VERSION) from error
    if route is None or not (route.spec.at_controller and (route.spec.in_envelopes or ctx.forwarded)):
        raise Refusal(ErrorCode.INVALID_REQUEST)
    if not ctx.forwarded:
        origin = msgspec.structs.replace(origin, api_version=header.api_version, correlation_id=header.correlation_id)
    inner = msgspec.structs.replace(
        ctx,
        spec=route.spec,
        header=header,
        origin=origin,
        forwarded=True,
        notes=AnswerNotes(),
    )
    return inner, route, message


async def _answer(ctx: RequestContext, inner: RequestContext, route: Route, message: Any) -> EnvelopeResponse:
    """Answer an envelope. NOT_CONTROLLER anywhere in the inner response becomes the error of the
    envelope, so that the sender looks for the new controller. The update for which the sender has
    to wait is in the header of the Envelope, because not every inner header has room for it.
    """
    response = await inner.dispatcher.respond(inner, route, message)
    ctx.notes.update_number, inner.notes.update_number = inner.notes.update_number, -1
    if ErrorCode.NOT_CONTROLLER in error_codes(inner.spec, response):
        raise Refusal(ErrorCode.NOT_CONTROLLER)
    return EnvelopeResponse(response_data=inner.dispatcher.encode(inner, message, response)[FRAME_SIZE_BYTES:])


API = ServedApi(
    key=ApiKey.ENVELOPE,
    handler=handle,
    sender=Sender.NODE,
    permissions=(CLUSTER_ACTION,),
    between_nodes=True,
)

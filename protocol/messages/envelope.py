"""Envelope (58) carries a request inside another one, with the principal who sent it (KIP-590)."""

from ..schema import Int16, WireStruct, message


@message(58, "request", versions=(0, 0), flexible=0)
class EnvelopeRequest(WireStruct):
    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""


@message(58, "response", versions=(0, 0), flexible=0)
class EnvelopeResponse(WireStruct):
    response_data: bytes | None = None
    error_code: Int16 = 0

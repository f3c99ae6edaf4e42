"""SaslAuthenticate (36) carries one token of a SASL exchange in each direction."""

from typing import Annotated

from ..schema import Int16, Int64, WireStruct, ignorable, message, since


@message(36, "request", versions=(0, 2), flexible=2)
class SaslAuthenticateRequest(WireStruct):
    auth_bytes: bytes = b""


@message(36, "response", versions=(0, 2), flexible=2)
class SaslAuthenticateResponse(WireStruct):
    error_code: Int16 = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1), ignorable] = 0

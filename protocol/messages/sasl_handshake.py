"""SaslHandshake (17): a client chooses a SASL mechanism."""

from ..schema import Int16, WireStruct, message


@message(17, "request", versions=(0, 1), flexible=None)
class SaslHandshakeRequest(WireStruct):
    mechanism: str = ""


@message(17, "response", versions=(0, 1), flexible=None)
class SaslHandshakeResponse(WireStruct):
    error_code: Int16 = 0
    mechanisms: list[str] = []

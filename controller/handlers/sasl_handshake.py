"""SaslHandshake (17): the client chooses its mechanism."""

from ...admin.spec import Sender
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from ...security.login_requests import handshake


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return handshake(context.caller, request, context.header.api_version)


API = ServedApi(key=ApiKey.SASL_HANDSHAKE, handler=handle, sender=Sender.ANYONE)

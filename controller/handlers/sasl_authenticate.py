"""SaslAuthenticate (36) takes one token of the exchange that SaslHandshake v1 began."""

from ...admin.spec import Sender
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ...security.login_requests import authenticate


def handle(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return authenticate(context.caller, request)


API = ServedApi(key=ApiKey.SASL_AUTHENTICATE, handler=handle, sender=Sender.ANYONE)

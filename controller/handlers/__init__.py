"""Who handles which API: the table, and what a handler is.

Rule: an API that is in this table is advertised, and one that is not closes the connection. A read returns its answer at once
and costs no task; what has to wait returns an awaitable.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...protocol.api_keys import ApiKey
from ..context import RequestContext
from . import api_versions, envelope, sasl_authenticate, sasl_handshake

Request = Any
Response = Any
Handler = Callable[[Any, RequestContext, Request], Response | Awaitable[Response]]
"""`handle(node, ctx, request)`. The messages are the structs of `protocol.messages`, each handler names its own."""

HANDLERS: Mapping[ApiKey, Handler] = {
    ApiKey.SASL_HANDSHAKE: sasl_handshake.handle,
    ApiKey.API_VERSIONS: api_versions.handle,
    ApiKey.SASL_AUTHENTICATE: sasl_authenticate.handle,
    ApiKey.ENVELOPE: envelope.handle,
}

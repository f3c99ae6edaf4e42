"""The requests that go to the controller under the client's own name, and their answers.

The response is what the controller made of the client's own bytes, in the client's version. Where
there is none, the client gets the answer that a broker would give it (KIP-590). What the controller
would not check, because brokers do that before they forward it, is no such request.
"""

from typing import Any

from ...admin.apis import SPECS
from ...admin.error_answers import error_answer
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.errors import MalformedMessage, ProtocolError
from ...protocol.header import REQUEST_START
from ...protocol.messages.alter_configs import AlterConfigsRequest
from ...protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ...protocol.registry import KAFKA
from ...security.caller import Caller
from .controllers import Controllers, envelope

DEFAULT_SECONDS = 30.0
"""How long the controller is waited for if the request does not say it."""
LEAST_SECONDS, MOST_SECONDS = 1.0, 120.0


BROKER, BROKER_LOGGER = 4, 8
"""The types of resources whose configs a broker checks, and the controller does not."""
MIXED = "Configs of brokers cannot be altered in one request with others, because brokers check them and the controller does not."


def concerns_brokers(frame: bytes) -> bool:
    """Whether a request alters nothing but configs of brokers and levels of their loggers. Raises
    ProtocolError.
    """
    types = _altered_types(_decoded(frame))
    return bool(types) and types <= {BROKER, BROKER_LOGGER}


def _altered_types(request: Any) -> frozenset[int]:
    if isinstance(request, AlterConfigsRequest | IncrementalAlterConfigsRequest):
        return frozenset(each.resource_type for each in request.resources)
    return frozenset()


class Forwarding:
    """Has the controller answer requests of clients under their names."""

    def __init__(self, controllers: Controllers) -> None:
        self._controllers = controllers

    async def answer(self, caller: Caller, frame: bytes) -> bytes:
        """Return the response to a request with its size; the request is given without. Raises
        ProtocolError for a request whose failure cannot be told.
        """
        assert caller.principal is not None
        request = _decoded(frame)
        if not _altered_types(request).isdisjoint({BROKER, BROKER_LOGGER}):
            return _error(frame, request, ErrorCode.INVALID_REQUEST, MIXED)
        answered = await self._controllers.ask(envelope(frame, caller.principal, caller.host), _seconds(request))
        if answered.code == ErrorCode.NONE:
            if answered.response[:4] != frame[4:8]:
                raise MalformedMessage("the controller answered a request that the client had not sent")
            return len(answered.response).to_bytes(4) + answered.response
        code = answered.code if answered.code == ErrorCode.REQUEST_TIMED_OUT else ErrorCode.UNKNOWN_SERVER_ERROR
        return _error(frame, request, ErrorCode(code))


def _decoded(frame: bytes) -> Any:
    """Return a request, or None for one of an API that only passes here."""
    return KAFKA.decode_request(frame)[1] if REQUEST_START.unpack_from(frame)[0] in KAFKA else None


def _seconds(request: Any) -> float:
    asked = getattr(request, "timeout_ms", DEFAULT_SECONDS * 1000) / 1000
    return min(max(asked, LEAST_SECONDS), MOST_SECONDS)


def _error(frame: bytes, request: Any, code: ErrorCode, message: str | None = None) -> bytes:
    number, version, correlation_id = REQUEST_START.unpack_from(frame)
    key = ApiKey(number)
    if request is None:
        raise ProtocolError(f"the controller did not answer {key.name}: {code.name}")
    response = error_answer(SPECS[key], request, version, code=code, message=message)
    return KAFKA.encode_response(key, version, correlation_id, response)

"""Finds the active controller of the cluster, and has it answer requests under clients' names
(Envelope, KIP-590).

Rule: a request is sent again only if it certainly was not carried out: because nobody has read it,
or because a controller answered that it is not the active one.
"""

import ipaddress
import logging
from collections.abc import Iterator

import msgspec
import trio

from ...client.configuration import Address
from ...client.errors import AdminError
from ...client.network import Network
from ...network.peer import PeerUnavailable
from ...process.observe.logs import RateLimitedLog
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ...protocol.wire import uvarint

log = logging.getLogger("minicontroller.gateway")

RETRY_SECONDS = 0.1
PRINCIPAL_VERSION = b"\0\0"


class Answered(msgspec.Struct, frozen=True):
    """The outcome of a request to the active controller."""

    code: int
    """The error of the Envelope, or REQUEST_TIMED_OUT where it is not known what became of the
    request.
    """
    response: bytes = b""
    """The response for the client without its size, if there is no error."""


def envelope(frame: bytes, principal: str, host: str) -> EnvelopeRequest:
    """Return the Envelope of a request, which is given without its size. The principal has the form
    `Type:name`, and `host` is the address of the client.
    """
    kind, _, name = principal.partition(":")
    written = PRINCIPAL_VERSION + _compact(kind) + _compact(name) + b"\0\0"  # no delegation token, no tags
    address = ipaddress.ip_address(host.partition("%")[0]).packed
    return EnvelopeRequest(request_data=frame, request_principal=written, client_host_address=address)


def _compact(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data


class Controllers:
    """The controllers of a KRaft cluster. The active one is found by asking: the others answer that
    they are not, which takes no more rights than the question itself.
    """

    def __init__(self, network: Network) -> None:
        """`network` connects to the listeners of controllers, with the gateway's own login."""
        self._network = network
        self._known = network.config.bootstrap_servers
        self._active = 0
        """The place of the controller that was active last."""
        self._failures = RateLimitedLog(log)

    async def ask(self, message: EnvelopeRequest, seconds: float) -> Answered:
        """Have the active controller answer, following it if it moves, for so many seconds."""
        with trio.move_on_after(seconds):
            while True:
                for place in self._places():
                    answered = await self._asked(self._known[place], message)
                    if answered is not None:
                        self._active = place
                        return answered
                await trio.sleep(RETRY_SECONDS)
        return Answered(ErrorCode.REQUEST_TIMED_OUT)

    def _places(self) -> Iterator[int]:
        count = len(self._known)
        return ((self._active + number) % count for number in range(count))

    async def _asked(self, address: Address, message: EnvelopeRequest) -> Answered | None:
        """Ask one controller; return None if it has certainly not carried out the request."""
        try:
            answer = await self._network.link(address).ask(message, ApiKey.ENVELOPE)
        except PeerUnavailable as error:
            self._failed(str(error))
            return Answered(ErrorCode.REQUEST_TIMED_OUT) if error.in_doubt else None
        except AdminError as error:
            self._failed(str(error))
            return None
        assert isinstance(answer, EnvelopeResponse)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            return None
        if answer.error_code != ErrorCode.NONE:
            self._failed(f"{address} answers an Envelope with {AdminError(answer.error_code).name}{_hint(answer)}")
        return Answered(answer.error_code, answer.response_data or b"")

    def _failed(self, text: str) -> None:
        self._failures.say(logging.WARNING, "a request of a client did not reach the controller: %s", text)


def _hint(answer: EnvelopeResponse) -> str:
    is_denied = answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return "; the gateway's user there needs ClusterAction" if is_denied else ""

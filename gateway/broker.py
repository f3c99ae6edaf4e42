"""The brokers as one listener of the gateway offers them to clients."""

import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import trio

from ..client.configuration import Address
from ..network.handshake_errors import HandshakeError
from ..network.peer_login import Ask, log_in
from ..network.serving.long_answers import encoded_response
from ..network.tls import start_tls
from ..network.transport import Disconnected, SocketTransport, Transport, notice_death
from ..process.observe.logs import RateLimitedLog
from ..process.time_slices import TimeSlice
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.errors import ProtocolError, UnsupportedApi, UnsupportedVersion
from ..protocol.messages.api_versions import ApiVersionsResponse
from ..protocol.registry import KAFKA
from ..security.caller import Caller
from ..security.credentials import Credentials
from . import node_endpoints, versions
from .apis import PassedApi
from .cluster import UpstreamCluster
from .frames import FrameReader, FrameWriter
from .judging.review import Review, Reviewer
from .parties import Change, Move
from .places import Which
from .requests import RequestHead

log = logging.getLogger("minicontroller.gateway")

CONNECT_TIMEOUT_SECONDS = 10.0  # Kafka's clients: socket.connection.setup.timeout.ms
DEAD_AFTER_SECONDS = 30
"""After how many seconds without a sign of a broker's machine a connection to it breaks."""


class OfferedBroker:
    """One broker, the one that a client calls by its name, or any of them, which clients that begin
    ask for the others.
    """

    def __init__(
        self,
        cluster: UpstreamCluster,
        which: Which,
        *,
        tls: ssl.SSLContext | None,
        apis: Mapping[int, PassedApi],
        reviewer: Callable[[], Reviewer | None],
    ) -> None:
        """Offer the broker that a client wants. `tls` is the context of connections to brokers,
        `apis` are those that pass, and `reviewer`
        returns who reviews requests for changes, if anybody does.
        """
        self._reviewer = reviewer
        self._apis = apis
        self._cluster = cluster
        self._which = which
        self._tls = tls
        self._unreachable = RateLimitedLog(log)

    async def connect(self, client: Transport) -> Transport:
        """Connect a client to its broker, once its address is known. Raises Disconnected."""
        broker_id = self._which(client)
        reasons = []
        for address in await self._addresses(broker_id):
            try:
                transport = await self._connected(address)
            except Disconnected as error:
                self._cluster.failed_at(address)
                reasons.append(f"{address}: {error}")
            else:
                self._cluster.reached(address)
                return transport
        text = "; ".join(reasons) or f"broker {broker_id} is not known"
        self._unreachable.say(
            logging.WARNING, "disconnecting a client, because the gateway does not reach its broker: %s", text
        )
        raise Disconnected(text)

    async def _addresses(self, broker_id: int | None) -> Iterable[Address]:
        if broker_id is None:
            return self._cluster.addresses
        address = await self._cluster.address_of(broker_id)
        return () if address is None else (address,)

    async def _connected(self, address: Address) -> Transport:
        try:
            with trio.fail_after(CONNECT_TIMEOUT_SECONDS):
                stream = await trio.open_tcp_stream(address.host, address.port)
        except trio.TooSlowError as error:
            raise Disconnected("no answer in time") from error
        except (OSError, ValueError, OverflowError) as error:
            raise Disconnected(str(error) or "this is not an address") from error
        notice_death(stream.socket, DEAD_AFTER_SECONDS)
        if self._tls is None:
            return SocketTransport(stream)
        try:
            return await start_tls(stream, self._tls, address.host)
        except HandshakeError as error:  # with the broker, and so no failure of the client
            raise Disconnected(str(error)) from error

    async def log_in(self, ask: Ask, credentials: Credentials) -> float:
        """Log in on a connection to a broker, and return for how many seconds that holds. Raises
        Disconnected.
        """
        try:
            return await log_in(ask, credentials)
        except ProtocolError as error:
            self._unreachable.say(
                logging.WARNING, "disconnecting a client, because its broker refuses the login: %s", error
            )
            raise Disconnected("the broker refused the login") from error

    def answer_of(self, head: RequestHead) -> bytes | None:
        """Return the response of the gateway itself, or None to have the broker answer. Raises
        UnsupportedVersion.
        """
        api = self._apis.get(head.api_key)
        if api is None:
            raise UnsupportedApi(head.api_key, head.version, head.correlation_id, None)
        if api.oldest <= head.version <= api.newest:
            return None
        if head.api_key == ApiKey.API_VERSIONS:
            return versions.too_new(head)
        raise UnsupportedVersion(head.api_key, head.version, head.correlation_id, None)

    def may_review(self, head: RequestHead) -> bool:
        """Whether requests of an API may be reviewed as a whole before the broker gets them."""
        reviewer = self._reviewer()
        return reviewer is not None and reviewer.takes(head.api_key)

    def passes(self, frame: bytes) -> bool:
        """Whether a request that may be reviewed needs no review. Raises ProtocolError."""
        reviewer = self._reviewer()
        return reviewer is None or reviewer.passes(frame)

    async def review(self, caller: Caller, frame: bytes) -> Review | None:
        """Review a request, given as its frame without the size; return None if it changes nothing
        after all. Raises ProtocolError.
        """
        reviewer = self._reviewer()
        assert reviewer is not None
        return await reviewer.review(caller, frame)

    def move_of(self, head: RequestHead) -> Move | None:
        """Return what moves the response to a request; None if it passes as it is."""
        change = self.change_of(head)
        if change is None:
            tail = self._apis[head.api_key].tails.get(head.version)
            return None if tail is None else partial(node_endpoints.pass_readdressed, tail, self._cluster)

        async def move(frames: FrameReader, client: FrameWriter) -> None:
            await client.send(await change(await frames.whole()))

        return move

    def change_of(self, head: RequestHead) -> Change | None:
        """Return what changes the response to a request as a whole; None if nothing does."""
        if head.api_key == ApiKey.API_VERSIONS:
            return partial(_with_common_versions, head, self._apis)
        rewriter = self._apis[head.api_key].rewrite
        if rewriter is None:
            return None

        async def rewrite(frame: bytes) -> bytes:
            time_slice = TimeSlice()
            header, response = KAFKA.decode_response(head.api_key, head.version, frame)
            await time_slice.pause()
            await rewriter(self._cluster, response)
            return await encoded_response(head.api_key, head.version, header.correlation_id, response)

        return rewrite


async def _with_common_versions(head: RequestHead, apis: Mapping[int, PassedApi], frame: bytes) -> bytes:
    version = 0 if int.from_bytes(frame[4:6], signed=True) == ErrorCode.UNSUPPORTED_VERSION else head.version
    header, response = KAFKA.decode_response(ApiKey.API_VERSIONS, version, frame)
    assert isinstance(response, ApiVersionsResponse)
    versions.common(response, apis)
    return KAFKA.encode_response(ApiKey.API_VERSIONS, version, header.correlation_id, response)

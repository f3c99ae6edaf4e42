"""Forwarding: requests that only the active controller serves reach it from every node (KIP-590,
K4-5, K590-1 to K590-6).

A client gets NOT_CONTROLLER only if the controller does not prove that it is a node of the cluster.
A request goes to the active controller, which may be this node, and waits while there is none. It
goes to the next controller only if it certainly was not carried out: the controller answered
NOT_CONTROLLER for all of it, or is stopping, or could not be connected to. A connection that breaks
after the request was sent leaves the request in doubt, and so does a controller that has a
successor and does not answer soon. A request in doubt is answered with REQUEST_TIMED_OUT, which in
Kafka means that it may have been carried out, or may still be. A forwarded request is never
forwarded again.
"""

import ssl
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import trio

from ...admin.error_answers import refuses_everything
from ...cluster.cache import MetadataCache
from ...cluster.entities import Broker, Endpoint
from ...cluster.errors import Refusal
from ...cluster.image import Image
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.header import RequestHeader
from ...protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from ...protocol.schema import WireStruct
from ...security.credentials import Credentials
from ..peer import PeerConnection, PeerUnavailable, TooLargeForPeer
from .api import Handler, response_of
from .context import RequestContext

RETRY_SECONDS = 0.1
"""The pause before another request to a controller that could not be reached, or does not serve yet
(Kafka: `retry.backoff.ms`).
"""
REPLY_GRACE_SECONDS = 1.0
"""The time that the answer may take beyond the request's timeout, since the controller uses the
whole timeout and the network needs time.
"""
SUCCEEDED_SECONDS = 0.5
"""The time that a node waits for a controller that has a successor."""
DEFAULT_TIMEOUT_SECONDS = 30.0  # Kafka: request.timeout.ms
FRAME_SIZE_BYTES = 4
RESULTS = ("answered", "not_reached", "too_large", "in_doubt", "timed_out")
"""The outcomes of forwarded requests."""


def at_the_controller(handler: Handler, is_controller: Callable[[], bool], forwarder: "Forwarder | None") -> Handler:
    """Return a handler that runs the same API at the active controller, wherever it is.
    `is_controller` returns whether that is this node; `forwarder` is None if forwarding is off
    (`controller.forwarding.enable=false`).
    """

    def ask_controller(ctx: RequestContext, request: Any) -> Any:
        if not ctx.forwarded and forwarder is not None:
            return forwarder.ask(ctx, request, handler, is_controller)
        if not is_controller():
            raise Refusal(ErrorCode.NOT_CONTROLLER, reason="This node is not the controller.")
        return handler(ctx, request)

    return ask_controller


Logins = Callable[[Broker, Endpoint], Sequence[Credentials]]
"""Returns the credentials with which this node logs in to another one."""
TlsAt = Callable[[Endpoint], ssl.SSLContext | None]
"""Returns the context of TLS for a new connection to an endpoint, or None for one without TLS."""


class _Controller(msgspec.Struct, frozen=True):
    """The active controller, as this node's metadata names it."""

    broker_id: int
    epoch: int
    broker: Broker | None
    endpoint: Endpoint | None
    """The address at which the controller listens for other nodes."""


class Forwarder:
    """Sends requests to the active controller, all over one connection."""

    def __init__(
        self,
        nursery: trio.Nursery,
        *,
        broker_id: int,
        cache: MetadataCache,
        inter_broker_listener: str,
        logins: Logins,
        tls_at: TlsAt = lambda _endpoint: None,
        request_timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self._nursery = nursery
        self._broker_id = broker_id
        self._cache = cache
        self._listener = inter_broker_listener
        self._logins = logins
        self._tls_at = tls_at
        self._request_timeout_seconds = request_timeout_seconds
        self._peers: dict[tuple[int, Endpoint], PeerConnection] = {}
        cache.on_change(self._look)
        self.outcomes: Counter[str] = Counter(dict.fromkeys(RESULTS, 0))
        """The number of forwarded requests by outcome."""

    async def ask(self, ctx: RequestContext, request: Any, handler: Handler, is_controller: Callable[[], bool]) -> Any:
        """Return the controller's answer: that of `handler` while this node is it. Raises Refusal
        (REQUEST_TIMED_OUT) if no controller took the request in time, or if it is in doubt.
        """
        deadline = ctx.arrived + self._patience(request)
        while True:
            controller = self._active_controller(self._cache.image)
            if is_controller():
                answer = await _here(ctx, request, handler)
            elif controller.endpoint is not None and controller.broker_id != self._broker_id:
                answer = await self._there(controller, ctx, request, deadline)
                self.outcomes["not_reached" if answer is None else "answered"] += 1
            else:
                answer = None
            if answer is not None and not refuses_everything(ctx.spec, answer, ErrorCode.NOT_CONTROLLER):
                return answer
            await self._wait_for_another(controller, deadline)

    # ------------------------------------------------------------------ the controller

    def _active_controller(self, image: Image) -> _Controller:
        broker = image.brokers.get(image.controller_id)
        endpoint = None if broker is None else broker.endpoint(self._listener)
        return _Controller(image.controller_id, image.controller_epoch, broker, endpoint)

    def _look(self, before: Image, after: Image, _changed: object) -> None:
        if before.controller_epoch != after.controller_epoch and self._peers:
            self._nursery.start_soon(self._leave_predecessors, after)

    async def _leave_predecessors(self, image: Image) -> None:
        """Close the connections to former controllers soon, so that no request waits for one of
        them.
        """
        active = self._active_controller(image).endpoint
        peers = [
            peer
            for peer in self._peers.values()
            if active is None or (peer.host, peer.port) != (active.host, active.port)
        ]
        await trio.sleep(SUCCEEDED_SECONDS)
        if self._cache.image.controller_epoch == image.controller_epoch:
            for peer in peers:
                peer.close()

    async def _wait_for_another(self, last: _Controller, deadline: float) -> None:
        """Wait until this node knows of another controller, or until the same one may be asked
        again. Raises REQUEST_TIMED_OUT.
        """
        again = trio.current_time() + RETRY_SECONDS if last.broker_id >= 0 else deadline
        with trio.move_on_at(min(again, deadline)):
            await self._cache.wait_cluster(lambda image: self._active_controller(image) != last)
        if trio.current_time() >= deadline:
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, "No controller accepted the request in time.")

    def _patience(self, request: Any) -> float:
        """Return how many seconds a request may take: its timeout, or the default if the timeout is
        0, which asks not to wait for the result.
        """
        timeout_ms: int = getattr(request, "timeout_ms", 0)
        return timeout_ms / 1000 if timeout_ms > 0 else self._request_timeout_seconds

    # ------------------------------------------------------------------ over the wire

    async def _there(
        self, controller: _Controller, ctx: RequestContext, request: Any, deadline: float
    ) -> WireStruct | None:
        """Return the controller's answer, or None if the request certainly was not carried out.
        Raises Refusal.
        """
        update_number, answer = -1, None
        with trio.move_on_at(deadline + REPLY_GRACE_SECONDS) as scope:
            try:
                update_number, answer = await self._asked(
                    self._peer(controller), ctx, _newest_version(ctx, _with_time_left(request, deadline))
                )
            except TooLargeForPeer as error:
                self.outcomes["too_large"] += 1
                raise Refusal(ErrorCode.INVALID_REQUEST, str(error)) from error
            except PeerUnavailable as error:
                if error.in_doubt:
                    self.outcomes["in_doubt"] += 1
                    raise Refusal(
                        ErrorCode.REQUEST_TIMED_OUT,
                        "The connection to the controller broke before it answered: the request may have been carried out.",
                    ) from error
                if error.unproved:  # it gets no client's name, so the client has to ask it directly
                    self.outcomes["not_reached"] += 1
                    raise Refusal(
                        ErrorCode.NOT_CONTROLLER,
                        reason="The controller cannot prove that it is a node of this cluster.",
                    ) from error
        if scope.cancelled_caught:
            self.outcomes["timed_out"] += 1
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, "The controller did not answer in time.")
        self._cache.expect_update(update_number)
        return answer

    async def _asked(self, peer: PeerConnection, ctx: RequestContext, request: Any) -> tuple[int, WireStruct | None]:
        """Return the number of the update to wait for, and the controller's answer, or None if it
        is the controller no longer. Raises PeerUnavailable, and Refusal.
        """
        registry, key, version = ctx.spec.registry, ctx.spec.key, ctx.spec.api.max_version
        origin = msgspec.structs.replace(ctx.origin, received_node=self._broker_id)
        if registry[key].flexible(version):
            header, answer = await peer.ask(key, version, request, client_id=ctx.client_id, origin=origin)
            return header.update_number, answer
        inner = RequestHeader(key, version, ctx.header.correlation_id, ctx.client_id)
        envelope = EnvelopeRequest(request_data=registry.encode_request(inner, request)[FRAME_SIZE_BYTES:])
        header, answer = await peer.ask(ApiKey.ENVELOPE, 0, envelope, client_id=ctx.client_id, origin=origin)
        assert isinstance(answer, EnvelopeResponse)
        if answer.error_code == ErrorCode.NOT_CONTROLLER:
            return -1, None
        if answer.error_code or answer.response_data is None:
            raise Refusal(ErrorCode(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR))
        return header.update_number, registry.decode_response(key, version, answer.response_data)[1]

    def _peer(self, controller: _Controller) -> PeerConnection:
        broker, endpoint = controller.broker, controller.endpoint
        assert broker is not None
        assert endpoint is not None
        peer = self._peers.get((broker.broker_id, endpoint))
        if peer is None:
            peer = self._peers[broker.broker_id, endpoint] = PeerConnection(
                self._nursery,
                endpoint.host,
                endpoint.port,
                client_id=str(self._broker_id),
                logins=self._logins(broker, endpoint),
                tls=partial(self._tls_at, endpoint),
            )
        return peer


async def _here(ctx: RequestContext, request: Any, handler: Handler) -> Any | None:
    """Return the answer of this node as the controller, or None if it was the controller no longer
    and nothing was done.
    """
    try:
        return await response_of(handler(ctx, request))
    except Refusal as refusal:
        if refusal.code == ErrorCode.NOT_CONTROLLER:
            return None
        raise


def _with_time_left(request: Any, deadline: float) -> Any:
    """Return the request with what is left of its timeout, because the controller counts from its
    arrival there.
    """
    if getattr(request, "timeout_ms", 0) <= 0:
        return request
    left = max(1, int((deadline - trio.current_time()) * 1000))
    return msgspec.structs.replace(request, timeout_ms=left)


def _newest_version(ctx: RequestContext, request: Any) -> Any:
    convert = ctx.spec.to_newest_version
    return request if convert is None else convert(request)

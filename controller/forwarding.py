"""Requests that only the controller may do (K4-5, K590-1 to K590-6), at whichever node they arrive.

Rule: a client is never told NOT_CONTROLLER while forwarding is on. A request goes to whoever is the controller, this node
included; it waits while there is none, woken by the metadata cache; and it goes to the next one only when it is certain that it
was not done: the controller said NOT_CONTROLLER of all of it, or farewell, or no connection could be made. A connection that breaks
after the request was sent leaves it in doubt, and so does a controller that has a successor and does not answer soon: it is frozen, or
cut off. Doubt is answered with REQUEST_TIMED_OUT, in Kafka's sense: it may have been done, or still be. A request that a node
forwarded is never forwarded again, however unstable the election.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import trio

from ..protocol import registry
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ..protocol.schema import WireStruct
from .cluster.image import Broker, Endpoint, Image
from .cluster.metadata_cache import MetadataCache
from .context import RequestContext
from .error_answers import refuses_everything
from .errors import Refusal
from .peer import OnBehalfOf, PeerConnection, PeerUnavailable, TooLargeForPeer
from .security.credentials import Credentials

if TYPE_CHECKING:
    from .handlers import Handler

RETRY_SECONDS = 0.1
"""Kafka's `retry.backoff.ms`: before asking the same controller again that could not be reached, or has not begun to serve."""
REPLY_GRACE_SECONDS = 1.0
"""The controller keeps the request's timeout itself and then answers what it has: its answer needs time to travel."""
SUCCEEDED_SECONDS = 0.5
"""A controller with a successor has answered what it began before it went, or does so now, or never will."""
DEFAULT_TIMEOUT_SECONDS = 30.0  # Kafka: request.timeout.ms


class ControllerNode(Protocol):
    """What is asked of a node here."""

    @property
    def controller(self) -> object | None:
        """Set while this node is the controller and serves."""

    @property
    def forwarder(self) -> "Forwarder | None":
        """None where forwarding is off (`controller.forwarding.enable=false`)."""


def at_the_controller(handler: "Handler") -> "Handler":
    """The same API, handled at the controller, wherever it is."""

    def routed(node: ControllerNode, ctx: RequestContext, request: Any) -> Any:
        if not ctx.forwarded and node.forwarder is not None:
            return node.forwarder.ask(node, ctx, request, handler)
        if node.controller is None:
            raise Refusal(ErrorCode.NOT_CONTROLLER, reason="This node is not the controller.")
        return handler(node, ctx, request)

    return routed


Logins = Callable[[Broker, Endpoint], Sequence[Credentials]]
"""How this node and another one show each other who they are."""


class _Controller(msgspec.Struct, frozen=True):
    """Who rules, as this node was last told."""

    broker_id: int
    epoch: int
    broker: Broker | None
    endpoint: Endpoint | None
    """Where nodes meet."""


class Forwarder:
    """A node's way to the controller: one connection, shared by all requests."""

    def __init__(
        self,
        nursery: trio.Nursery,
        *,
        broker_id: int,
        cache: MetadataCache,
        inter_broker_listener: str,
        logins: Logins,
        request_timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        self._nursery = nursery
        self._broker_id = broker_id
        self._cache = cache
        self._listener = inter_broker_listener
        self._logins = logins
        self._request_timeout_seconds = request_timeout_seconds
        self._peers: dict[tuple[int, Endpoint], PeerConnection] = {}
        cache.on_change(self._look)
        self.outcomes: Counter[str] = Counter()
        """What came of the requests that were sent on, by a word."""

    async def ask(self, node: ControllerNode, ctx: RequestContext, request: Any, handler: "Handler") -> Any:
        """The controller's answer. Raises Refusal: REQUEST_TIMED_OUT if no controller took the request in time, or in doubt."""
        deadline = ctx.arrived + self._patience(request)
        while True:
            controller = self._who_rules(self._cache.image)
            if node.controller is not None:
                answer = await _here(node, ctx, request, handler)
            elif controller.endpoint is not None and controller.broker_id != self._broker_id:
                answer = await self._there(controller, ctx, request, deadline)
                self.outcomes["not_reached" if answer is None else "answered"] += 1
            else:
                answer = None
            if answer is not None and not refuses_everything(ctx.api_key, answer, ErrorCode.NOT_CONTROLLER):
                return answer
            await self._wait_for_another(controller, deadline)

    # ------------------------------------------------------------------ the controller

    def _who_rules(self, image: Image) -> _Controller:
        broker = image.brokers.get(image.controller_id)
        endpoint = None if broker is None else broker.endpoint(self._listener)
        return _Controller(image.controller_id, image.controller_epoch, broker, endpoint)

    def _look(self, before: Image, after: Image, _changed: object) -> None:
        if before.controller_epoch != after.controller_epoch and self._peers:
            self._nursery.start_soon(self._leave_predecessors, after)

    async def _leave_predecessors(self, image: Image) -> None:
        """Nobody waits for a controller that was succeeded, however long his request may take."""
        ruling = self._who_rules(image).endpoint
        peers = [
            peer
            for peer in self._peers.values()
            if ruling is None or (peer.host, peer.port) != (ruling.host, ruling.port)
        ]
        await trio.sleep(SUCCEEDED_SECONDS)
        if self._cache.image.controller_epoch == image.controller_epoch:
            for peer in peers:
                peer.close()

    async def _wait_for_another(self, last: _Controller, deadline: float) -> None:
        """Until this node is told of a change; if there is a controller, no longer than it takes to try it again."""
        again = trio.current_time() + RETRY_SECONDS if last.broker_id >= 0 else deadline
        with trio.move_on_at(min(again, deadline)):
            await self._cache.wait_cluster(lambda image: self._who_rules(image) != last)
        if trio.current_time() >= deadline:
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, "No controller took the request in time.")

    def _patience(self, request: Any) -> float:
        """Seconds. The request's own timeout, if it has one; one of 0 says not to wait for the result, not for a controller."""
        timeout_ms: int = getattr(request, "timeout_ms", 0)
        return timeout_ms / 1000 if timeout_ms > 0 else self._request_timeout_seconds

    # ------------------------------------------------------------------ over the wire

    async def _there(
        self, controller: _Controller, ctx: RequestContext, request: Any, deadline: float
    ) -> WireStruct | None:
        """None: it certainly was not done."""
        key = ApiKey(ctx.api_key)
        told, answer = -1, None
        with trio.move_on_at(deadline + REPLY_GRACE_SECONDS) as scope:
            try:
                header, answer = await self._peer(controller).ask(
                    key,
                    registry.api(key).max_version,
                    _newest_form(_with_time_left(request, deadline)),
                    client_id=ctx.client_id,
                    on_behalf_of=OnBehalfOf(
                        ctx.principal,
                        ctx.client_host,
                        ctx.client_api_version,
                        ctx.on_behalf_of,
                        self._broker_id,
                        ctx.software,
                        ctx.decided,
                        ctx.client_correlation_id,
                    ),
                )
                told = header.told
            except TooLargeForPeer as error:
                self.outcomes["too_large"] += 1
                raise Refusal(ErrorCode.INVALID_REQUEST, str(error)) from error
            except PeerUnavailable as error:
                if error.in_doubt:
                    self.outcomes["in_doubt"] += 1
                    raise Refusal(
                        ErrorCode.REQUEST_TIMED_OUT,
                        "The controller went away before it answered: the request may have been done.",
                    ) from error
                if error.stranger:  # nobody's name is told to him: the client has to go there himself
                    self.outcomes["not_reached"] += 1
                    raise Refusal(
                        ErrorCode.NOT_CONTROLLER,
                        reason="The controller cannot prove that it is a node of this cluster.",
                    ) from error
        if scope.cancelled_caught:
            self.outcomes["timed_out"] += 1
            raise Refusal(ErrorCode.REQUEST_TIMED_OUT, "The controller did not answer in time.")
        self._cache.expect(told)
        return answer

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
            )
        return peer


async def _here(node: ControllerNode, ctx: RequestContext, request: Any, handler: "Handler") -> Any | None:
    """At this node, which rules. None: it did no longer, and nothing was done."""
    try:
        answer = handler(node, ctx, request)
        return answer if isinstance(answer, msgspec.Struct) else await answer
    except Refusal as refusal:
        if refusal.code == ErrorCode.NOT_CONTROLLER:
            return None
        raise


def _with_time_left(request: Any, deadline: float) -> Any:
    """The controller counts from when it gets the request, so it is told what is left of the client's time."""
    if getattr(request, "timeout_ms", 0) <= 0:
        return request
    left = max(1, int((deadline - trio.current_time()) * 1000))
    return msgspec.structs.replace(request, timeout_ms=left)


def _newest_form(request: Any) -> Any:
    """A request as its newest version says it, where that differs by more than added fields."""
    upgrade = UPGRADES.get(type(request))
    return request if upgrade is None else upgrade(request)


def _delete_topics_by_state(request: DeleteTopicsRequest) -> DeleteTopicsRequest:
    """Names moved into `topics` with version 6."""
    named = [DeleteTopicState(name=name) for name in request.topic_names]
    return msgspec.structs.replace(request, topics=[*request.topics, *named], topic_names=[])


UPGRADES: dict[type, Callable[[Any], Any]] = {DeleteTopicsRequest: _delete_topics_by_state}

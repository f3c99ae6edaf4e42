"""Chooses how a node answers each API: at once, after an expected metadata update, or at the active
controller.

The wrappers of handlers are chosen from the API's `Spec`, so that neither handlers nor the
dispatcher know of them.
"""

from collections.abc import Callable, Iterable
from typing import Any

from ...cluster.cache import MetadataCache
from ...protocol.registry import KAFKA, Registry
from .api import Handler, Receiver, ServedApi
from .context import RequestContext, Route, Routes
from .forwarding import Forwarder, at_the_controller


def routed(
    apis: Iterable[ServedApi[()]],
    cache: MetadataCache,
    is_controller: Callable[[], bool],
    forwarder: Forwarder | None = None,
    registry: Registry = KAFKA,
) -> Routes:
    """Return the routes to those of these APIs of a node that a registry has. `cache` has the
    node's metadata, and `is_controller` returns whether it is the active controller now. Without a
    forwarder, another node refuses the controller's APIs with NOT_CONTROLLER.
    """

    def route(served: ServedApi[()]) -> Route:
        api = served.api
        if not served.at_controller:
            handler = _up_to_date(served.handler, cache) if served.waits_for_update else served.handler
            return Route(api, served, handler)
        ask_controller = at_the_controller(served.handler, is_controller, forwarder)
        if served.receiver is None:
            return Route(api, served, ask_controller, ask_controller)
        return Route(api, served, _received(served.receiver, served.handler, ask_controller), ask_controller)

    return Routes([route(served) for served in apis if served.registry is registry], registry)


def _received(receiver: Receiver, handler: Handler, ask_controller: Handler) -> Handler:
    """Return a handler for an API that has a `receiver`. The receiver is skipped for forwarded
    requests, because another node has run it.
    """

    def handle(context: RequestContext, request: Any) -> Any:
        return handler(context, request) if context.forwarded else receiver(context, request, ask_controller)

    return handle


def _up_to_date(handler: Handler, cache: MetadataCache) -> Handler:
    """Return a handler that waits until this node has all metadata that its clients may have seen
    (K4-6).
    """

    async def handle_later(context: RequestContext, request: Any) -> Any:
        await cache.wait_expected_update()
        return handler(context, request)

    def handle(context: RequestContext, request: Any) -> Any:
        return handle_later(context, request) if cache.is_behind else handler(context, request)

    return handle

"""Chooses how a node answers each API: at once, after an expected metadata update, or at the active
controller.

The wrappers of handlers are chosen from the API's `Spec`, so that neither handlers nor the
dispatcher know of them.
"""

from collections.abc import Iterable
from typing import Any

from ...protocol.registry import KAFKA, Registry
from .api import Handler, Receiver, ServedApi
from .context import RequestContext, Route, Routes
from .forwarding import Forwarder, at_the_controller


def routed(apis: Iterable[ServedApi], forwarder: Forwarder | None = None, registry: Registry = KAFKA) -> Routes:
    """Return the routes to those of these APIs that a registry has. Without a forwarder, a node
    that is not the active controller refuses the controller's APIs with NOT_CONTROLLER.
    """
    return Routes([_route(served, forwarder) for served in apis if served.registry is registry], registry)


def _route(served: ServedApi, forwarder: Forwarder | None) -> Route:
    api = served.api
    if not served.at_controller:
        return Route(api, served, _up_to_date(served.handler) if served.waits_for_update else served.handler)
    ask_controller = at_the_controller(served.handler, forwarder)
    if served.receiver is None:
        return Route(api, served, ask_controller, ask_controller)
    return Route(api, served, _received(served.receiver, served.handler, ask_controller), ask_controller)


def _received(receiver: Receiver, handler: Handler, ask_controller: Handler) -> Handler:
    """Return a handler for an API that has a `receiver`. The receiver is skipped for forwarded
    requests, because another node has run it.
    """

    def handle(node: Any, context: RequestContext, request: Any) -> Any:
        if context.forwarded:
            return handler(node, context, request)
        return receiver(node, context, request, ask_controller)

    return handle


def _up_to_date(handler: Handler) -> Handler:
    """Return a handler that waits until this node has all metadata that its clients may have seen
    (K4-6).
    """

    async def handle_later(node: Any, context: RequestContext, request: Any) -> Any:
        await node.cache.wait_expected_update()
        return handler(node, context, request)

    def handle(node: Any, context: RequestContext, request: Any) -> Any:
        return handle_later(node, context, request) if node.cache.is_behind else handler(node, context, request)

    return handle

"""What is known of one request: who sent it, from where, in which version, and who answers it."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import msgspec

from ...protocol.api_keys import ApiKey
from ...protocol.header import RequestOrigin
from ...protocol.registry import KAFKA, Api, Registry
from ..observe.logs import ClientWarnings
from ..security.caller import Caller
from .spec import Changes, Handler, Spec


class Route(msgspec.Struct, frozen=True):
    """How a listener answers one API."""

    api: Api
    spec: Spec
    handler: Handler
    """Answers here, or forwards to the active controller."""
    ask_controller: Handler | None = None
    """Runs the handler of an API of the controller there, without its `receiver`."""


class Routes:
    """The APIs that a listener answers, by key. They are advertised, and no others are answered."""

    def __init__(self, routes: Iterable[Route], registry: Registry = KAFKA) -> None:
        self.registry = registry
        self._routes = {int(route.api.key): route for route in sorted(routes, key=lambda route: route.api.key)}
        self.get = self._routes.get
        """`get(api_key) -> Route | None`: bound once, since every request passes here."""

    def __iter__(self) -> Iterator[Route]:
        """Iterate over the routes by key."""
        return iter(self._routes.values())


class DispatcherView(Protocol):
    """What a handler may use of the dispatcher that called it."""

    warnings: ClientWarnings

    @property
    def routes(self) -> Routes: ...

    async def respond(self, ctx: "RequestContext", route: Route, request: Any) -> Any:
        """Return the response, not yet encoded, to a request that came inside another one."""

    def encode(self, ctx: "RequestContext", request: Any, response: Any) -> bytes:
        """Return the frame of a response, its size included."""


class RequestContext(msgspec.Struct, kw_only=True, gc=False):
    """Who asks one request, and how. It is made when the request is decoded."""

    spec: Spec
    """The declaration of the API."""
    api_version: int
    """The version in which the answer will be encoded."""
    correlation_id: int
    """On the connection on which the answer goes back."""
    client_id: str | None
    origin: RequestOrigin
    """Who sent the request, to whichever node, and how."""
    listener: str
    """The name of the listener on which the caller reached the node that holds their connection."""
    forwarded: bool = False
    """By an authenticated peer: never forwarded again."""
    from_peer: bool = False
    """The connection belongs to an authenticated node of this cluster."""
    arrived: float = 0.0
    """trio's clock, seconds."""
    update_number: int = -1
    """The metadata update that the node which forwarded the request must have before it answers
    reads; it goes into the response header. -1 where it need not wait.
    """
    first_error: int = 0
    """Of the rows of the answer, where they are made one by one."""
    caller: Caller
    """The connection on which the request came: for the APIs that are about the connection itself
    (SASL, ApiVersions, Envelope).
    """
    dispatcher: DispatcherView
    """Answers the requests of the listener at which this one came in."""

    @property
    def api_key(self) -> ApiKey:
        return self.spec.key

    @property
    def changes(self) -> Changes | None:
        """What the API that the client used changes. A topic that a read creates automatically is
        created.
        """
        route = self.dispatcher.routes.get(self.origin.api_key)
        return self.spec.changes if route is None else route.spec.changes or self.spec.changes

    @property
    def policy_api(self) -> str:
        """Kafka's name of the API that the client used, as policies are told it."""
        # A newer node, in the middle of an upgrade, may name an API that is not known here.
        return KAFKA[self.origin.api_key if self.origin.api_key in KAFKA else self.api_key].name

"""Which APIs are handled, in which versions, and where: here, or at the controller.

Rule: the table is made once from the handlers; what it holds is what is advertised and what is
answered, and nothing else is. An API of the controller has the same signature as any other, so the
line that answers has no branch for it.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from ...protocol import registry
from ...protocol.api_keys import ApiKey
from .forwarding import at_the_controller

if TYPE_CHECKING:
    from ..handlers import Handler

CONTROLLER_APIS = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
    }
)
"""K590-1, and what KIP-4 sends there. Whoever receives one that is not the controller forwards it.

AlterConfigs and IncrementalAlterConfigs go there too, but by their own handlers: part of each is
judged by the node that was asked.
"""

FORWARDABLE_APIS = CONTROLLER_APIS | {ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS}
"""What a real broker may send in an Envelope."""


class Route(msgspec.Struct, frozen=True):
    """How this node answers one API."""

    api: registry.Api
    handler: "Handler"
    """Directly, or by way of the controller."""


class Routes:
    """The APIs that a node answers, by key."""

    def __init__(self, handlers: Mapping[ApiKey, "Handler"]) -> None:
        self._routes: dict[int, Route] = {}
        for key, handler in sorted(handlers.items()):
            routed = at_the_controller(handler) if key in CONTROLLER_APIS else handler
            self._routes[int(key)] = Route(registry.api(key), routed)
        self.get = self._routes.get
        """`get(api_key) -> Route | None`: bound once, every request passes here."""

    def __iter__(self) -> Iterator[Route]:
        """Iterate over the routes by key."""
        return iter(self._routes.values())

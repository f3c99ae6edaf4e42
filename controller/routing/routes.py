"""Which APIs are handled, in which versions, and where: here, or at the controller.

Rule: an API of the controller has the same signature as any other, so the dispatcher has no branch
for it.
"""

from collections.abc import Mapping

from ...protocol.api_keys import ApiKey
from ...protocol.registry import KAFKA, Registry
from ..requests.context import Handler, Routes
from .forwarding import at_the_controller

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


def routed(handlers: Mapping[ApiKey, Handler], registry: Registry = KAFKA) -> Routes:
    """Return the routes to these handlers. APIs of the controller go by way of the controller."""
    return Routes(
        {key: at_the_controller(handler) if key in CONTROLLER_APIS else handler for key, handler in handlers.items()},
        registry,
    )

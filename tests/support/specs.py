"""Declarations of APIs for tests, and handlers of their own in the place of the real ones."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec

from minicontroller.controller.active.active_controller import LocalController
from minicontroller.controller.apis import apis_of
from minicontroller.controller.handlers import envelope
from minicontroller.controller.node.node import Node
from minicontroller.network.serving.api import ServedApi
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.records.apis import kept_in_memory
from minicontroller.store.memory import MemoryStore, MemoryTree


def by_key(node: Node) -> Mapping[ApiKey, ServedApi[()]]:
    """Return the APIs of a node by key."""
    return {api.key: api for api in sorted(apis_of(node), key=lambda api: api.key)}


SETTINGS = {"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0"}
APIS = by_key(Node(config_from_mapping(SETTINGS), "9dJzdGvfTPaCY4e8klXaDQ", MemoryStore(MemoryTree())))
"""The APIs of a node that knows nothing, for what they declare."""
WITH_RECORDS = by_key(
    Node(
        config_from_mapping(SETTINGS),
        "9dJzdGvfTPaCY4e8klXaDQ",
        MemoryStore(MemoryTree()),
        keep_data=kept_in_memory().keep,
    )
)
"""The same of a node that keeps records."""


class PlacedNode(Protocol):
    """A stand-in for a node."""

    place: LocalController


TestHandler = Callable[[Any, Any, Any], Any]
"""Answers in a test, given the node, the context and the request."""


def specs_with(
    handlers: Mapping[ApiKey, ServedApi[()] | TestHandler], node: "Node | PlacedNode"
) -> list[ServedApi[()]]:
    """These APIs of a node. What stands as a mere handler takes the place of the real one at once:
    nothing is done where the request is received, and no metadata is waited for.
    """
    own = by_key(node) if isinstance(node, Node) else {**APIS, ApiKey.ENVELOPE: envelope.API.bound(node.place)}
    return [
        own[key]
        if isinstance(handler, ServedApi)
        else msgspec.structs.replace(APIS[key], handler=partial(handler, node), receiver=None, waits_for_update=False)
        for key, handler in handlers.items()
    ]

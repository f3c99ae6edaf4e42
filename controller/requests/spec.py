"""How an API is declared: each module of `handlers/` ends in one `Spec`.

Everything that differs between APIs besides their messages is a field here: who may send a request,
which node answers it, how its errors are told, and what it changes. Nothing else keeps a table of
APIs.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.schema import WireStruct

Handler = Callable[[Any, Any, Any], Any]
"""`handle(node, context, request)` returns the response at once, or an awaitable of it. Raises
Refusal to refuse the whole request.
"""

Receiver = Callable[[Any, Any, Any, Handler], Any]
"""`receive(node, context, request, ask_controller)` answers a client's request where it came in.
`ask_controller(node, context, request)` has the handler run at the active controller.
"""

Fields = Mapping[str, Any]


class Sender(Enum):
    """Who may send a request."""

    ANYONE = "anyone"
    """Also those who have not authenticated yet."""
    CLIENT = "client"
    """Those who have authenticated, where the listener asks for that."""
    NODE = "node"
    """Nodes of this cluster only (Kafka: ClusterAction). The API is advertised to everyone."""


class Rows(msgspec.Struct, frozen=True, eq=False):
    """Where a response has a row for each thing that its request names."""

    field: str
    """The field of the response that holds the rows."""
    row: type[WireStruct]
    named_in: Mapping[str, Callable[[Any], Fields]]
    """The fields of the request that name the things, each with a function that returns the fields
    of the row by which a thing is recognized.
    """
    since: int = 0
    """The first version with rows. A response of an earlier one is a single row."""
    fixed: Fields = msgspec.field(default_factory=dict)
    """Fields that a row about an error has, where they differ from the defaults of the message."""
    default_message: Callable[[ErrorCode], str | None] = lambda _code: None
    """Returns what a row says about an error that comes without a message."""


def copied(*names: str) -> Callable[[Any], Fields]:
    """Return a function that copies these fields of an element."""

    def fields(element: Any) -> Fields:
        return {name: getattr(element, name) for name in names}

    return fields


def called(name: str) -> Callable[[Any], Fields]:
    """Return a function that puts an element, which is a plain name, into this field."""

    def fields(element: Any) -> Fields:
        return {name: element}

    return fields


class Changes(msgspec.Struct, frozen=True, eq=False):
    """What an API changes, element by element. Its elements are decisions: they are counted and
    recorded in the audit log.
    """

    operation: str
    """The name of the operation in the audit log."""
    requested: Callable[[Any], Iterable[Any]]
    """Returns the changes that a request asks for."""


class Spec(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The declaration of one API. Its messages and versions are those of the module of the same
    name in `protocol/messages/`.
    """

    key: ApiKey
    handler: Handler
    sender: Sender = Sender.CLIENT
    between_nodes: bool = False
    """Whether it is answered only at the listener where nodes meet. Elsewhere it ends the
    connection.
    """
    waits_for_update: bool = False
    """Whether the handler reads metadata that clients of this node may have seen change already: it
    waits until this node has the update that they were answered after (K4-6).
    """
    at_controller: bool = False
    """Whether the handler runs at the active controller, to which every other node forwards the
    request. Kafka's brokers may send it in an Envelope.
    """
    receiver: Receiver | None = None
    """The part of an API of the controller that runs at the node that received the request. Without
    one the request is forwarded as it is.
    """
    to_newest_version: Callable[[Any], Any] | None = None
    """Returns a request as its newest version says it, in which it is forwarded. Needed where that
    differs by more than added fields.
    """
    rows: Rows | None = None
    """None if the response has one error code for all of the request."""
    changes: Changes | None = None

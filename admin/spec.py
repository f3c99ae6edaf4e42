"""The declaration of an API.

Everything in which APIs differ besides their messages is a field here: who may send a request,
which node answers it, how errors are reported, and what it changes. APIs that change the cluster
are declared in this folder, for every role; the others where a role answers them
(`network/serving/api.py`). There is no other table of APIs.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

import msgspec

from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.registry import KAFKA, Api, Registry
from ..protocol.schema import WireStruct
from .permissions import Permission

Fields = Mapping[str, Any]


class Sender(Enum):
    """The senders from which an API accepts requests."""

    ANYONE = "anyone"
    """Any connection, authenticated or not."""
    CLIENT = "client"
    """Clients that have authenticated, if the listener demands it."""
    NODE = "node"
    """Nodes of this cluster (Kafka: ClusterAction). Such an API is advertised to everyone."""


class InnerRows(msgspec.Struct, frozen=True, eq=False):
    """The rows inside each row of a response, which have the error codes in place of it: those of
    the partitions of a topic.
    """

    field: str
    """The field of the outer row that holds the rows."""
    row: type[WireStruct]
    named: Callable[[Any], Iterable[Fields]]
    """Returns the identifying fields of the rows for one thing that the request names."""
    inner: "InnerRows | None" = None
    """The rows inside these, if those have the error codes."""
    parts: Callable[[Any], Iterable[Any]] = lambda _thing: ()
    """Returns what the inner rows are about, for each of the rows that `named` returns."""


class Rows(msgspec.Struct, frozen=True, eq=False):
    """The rows of a response, one for each thing that its request names."""

    field: str
    """The field of the response that holds the rows."""
    row: type[WireStruct]
    named_in: Mapping[str, Callable[[Any], Fields]]
    """The fields of the request that name the things, each with a function that returns the
    identifying fields of the row.
    """
    since: int = 0
    """The first version with rows. The response of an earlier version is a single row."""
    fixed: Fields = msgspec.field(default_factory=dict)
    """The fields of an error row whose values differ from the defaults of the message."""
    default_message: Callable[[ErrorCode], str | None] = lambda _code: None
    """Returns the message of an error row whose error comes without one."""
    inner: InnerRows | None = None
    """None if the rows have the error codes themselves."""
    distinct: bool = False
    """Whether what is named twice has one row, and the rows are sorted by name."""
    before: "Rows | None" = None
    """The rows of responses before the version `since`, beside their own error code, if there are
    any.
    """


def copied(*names: str) -> Callable[[Any], Fields]:
    """Return a function that copies these fields of an element."""

    def fields(element: Any) -> Fields:
        return {name: getattr(element, name) for name in names}

    return fields


def called(name: str) -> Callable[[Any], Fields]:
    """Return a function that puts an element, which is a name, into the field `name`."""

    def fields(element: Any) -> Fields:
        return {name: element}

    return fields


class Changes(msgspec.Struct, frozen=True, eq=False):
    """The changes that an API makes. Each of its elements is a decision, which is counted and
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
    """The key within `registry`; another registry may give it another meaning."""
    registry: Registry = KAFKA
    """The registry that has the messages. A listener answers the APIs of one registry."""
    sender: Sender = Sender.CLIENT
    between_nodes: bool = False
    """Whether the API is answered only at the listener between nodes
    (`inter.broker.listener.name`). Elsewhere a request of it ends the connection.
    """
    check_readable: Callable[[Any], None] | None = None
    """Raises ProtocolError for a request that Kafka's own classes do not read, although its bytes
    are in order. It ends the connection, as in Kafka.
    """
    read_tags: Callable[[Any], None] | None = None
    """Fills a request with what its tagged fields of this program say. Raises ProtocolError, which
    ends the connection.
    """
    waits_for_update: bool = False
    """Whether the handler reads metadata. It then waits until this node has the update that its
    clients' last answers were based on (K4-6).
    """
    at_controller: bool = False
    """Whether the handler runs at the active controller, to which every other node forwards the
    request.
    """
    in_envelopes: bool = True
    """Whether Kafka's brokers, too, have the controller answer it, by an Envelope (KIP-590), if it
    runs there. A gateway that authenticates its clients then forwards it under their names.
    """
    to_newest_version: Callable[[Any], Any] | None = None
    """Converts a request to its newest version for forwarding. It is needed if versions differ by
    more than added fields.
    """
    rows: Rows | None = None
    """None if the response has one error code for the whole request."""
    changes: Changes | None = None
    permissions: tuple[Permission, ...] = ()
    """The permissions for which the handler asks the authorizer, where one is configured."""

    @property
    def api(self) -> Api:
        return self.registry[self.key]

"""Who asks, from where, in which version, and until when."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from ...protocol import registry
from ...protocol.header import DecidedElement
from ..security.caller import Caller


class RequestContext(msgspec.Struct, kw_only=True, gc=False):
    """Who asks one request, and how: made when it is decoded and passed down the line."""

    api_key: int
    api_version: int
    """The version in which the answer will be encoded."""
    client_api_version: int
    """The version that the client spoke: differs from `api_version` in a forwarded request."""
    correlation_id: int
    """On the connection on which the answer goes back."""
    client_id: str | None
    client_host: str
    principal: str | None
    """`User:alice`; None for a caller who is not authenticated."""
    listener: str
    """The name of the listener on which the caller reached the node that holds their connection."""
    forwarded: bool = False
    """By an authenticated peer: never forwarded again."""
    from_peer: bool = False
    """The connection belongs to an authenticated node of this cluster."""
    arrived: float = 0.0
    """trio's clock, seconds."""
    software: str = ""
    """KIP-511, `name/version`; empty if the client never said."""
    on_behalf_of: int = -1
    """The API that the client used, where this request is made for it by a node: Metadata or
    FindCoordinator of a topic that is created automatically. -1 for what it asked itself.
    """
    client_correlation_id: int = 0
    """As the client numbered it: differs from `correlation_id` in a forwarded request."""
    received_node: int = -1
    """The node that holds the connection of the caller, where the request was forwarded and it said
    so.
    """
    decided: Sequence[DecidedElement] = ()
    """What the node that received the request has decided of it already: the controller writes it
    into the audit log, and answers it as it stands, in the rows before all others.
    """
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

    @property
    def policy_api(self) -> str:
        """Kafka's name of the API that the client used, as policies are told it."""
        if self.on_behalf_of >= 0:
            with suppress(LookupError):  # of a newer node, in the middle of an upgrade
                return registry.api(self.on_behalf_of).name
        return registry.api(self.api_key).name

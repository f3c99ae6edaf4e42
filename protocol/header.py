"""The headers of requests and responses. The API and its version determine the version of the
header (`registry.Api`).

Only nodes of the cluster send tagged fields in headers. In those of a request, a node that forwards
the request says who sent it (KIP-590), and which of its elements the node has already decided. In
that of a response, the controller says which metadata update the node must have before it answers
reads.
"""

import struct
from typing import Annotated

from .schema import Int8, Int16, Int32, Int64, WireStruct, classic, ignorable, message, since, tag_section, tagged


class DecidedConfig(WireStruct):
    """One config that the request changes. A null value deletes it."""

    name: str = ""
    value: str | None = None
    kind: Annotated[str, since(2), tagged(0)] = ""  # the operation, as the audit log names it
    before: Annotated[str, since(2), tagged(1)] = ""  # the level of a logger before the change
    after: Annotated[str, since(2), tagged(2)] = ""  # the level of a logger after the change


class DecidedElement(WireStruct):
    """One element of a request that was decided by the node that received the request."""

    resource_type: Int8 = 0
    resource_name: str = ""
    error_code: Int16 = 0
    error_message: str | None = None
    configs: list[DecidedConfig] = []


class RequestOrigin(WireStruct, gc=False):
    """Who sent a request to the node that received it, and how. A node that forwards the request
    says this in the tags of its header (KIP-590); tags 3 to 8 are this program's own.
    """

    principal: Annotated[str | None, since(2), tagged(0)] = None
    """`User:alice`; None for a client that has not authenticated."""
    client_host: Annotated[str, since(2), tagged(1)] = ""
    api_version: Annotated[Int16, since(2), tagged(2)] = -1
    """The version in which the client spoke; a forwarded request has the newest."""
    correlation_id: Annotated[Int32, since(2), tagged(7)] = 0
    """The client's own."""
    software: Annotated[str, since(2), tagged(5)] = ""
    """`name/version` of the client (KIP-511); empty if it did not say."""
    api_key: Annotated[Int16, since(2), tagged(3)] = -1
    """The API that the client used, where a node sends another request for them: Metadata and
    FindCoordinator have topics created automatically. -1 for the API of the request itself.
    """
    received_node: Annotated[Int32, since(2), tagged(4)] = -1
    """The id of the node that forwards the request; -1 if it was not forwarded."""
    decided: Annotated[list[DecidedElement], since(2), tagged(6)] = []
    """The elements that this node has decided itself. The controller records them in the audit log,
    and answers them as they stand, before all others.
    """
    by_token: Annotated[bool, since(2), tagged(8)] = False


@message(-1, "header", versions=(0, 2), flexible=2)
class RequestHeader(WireStruct):
    """Version 0 has no client id (ControlledShutdown v0), version 2 has tags. The client id never
    takes the compact form.
    """

    api_key: Int16 = 0
    api_version: Int16 = 0
    correlation_id: Int32 = 0
    client_id: Annotated[str | None, since(1), classic, ignorable] = ""
    origin: Annotated[RequestOrigin | None, since(2), tag_section] = None
    """Set in forwarded requests only."""


@message(-1, "header", versions=(0, 1), flexible=1)
class ResponseHeader(WireStruct):
    """Version 1 has tags."""

    correlation_id: Int32 = 0
    update_number: Annotated[
        Int64, since(1), tagged(0)
    ] = -1  # the metadata update that the forwarding node must have before it answers reads; -1 for none


REQUEST_START = struct.Struct(">hhi")
"""The first bytes of every request: API key, version, correlation id."""
MAX_CLIENT_ID_BYTES = 255
"""How much of a client id is read of a request that cannot be decoded."""


def client_id_of(frame: bytes) -> str | None:
    """Return the client id of a request that cannot be decoded, cut to MAX_CLIENT_ID_BYTES. It
    stands at one place in every version of the header that has one.
    """
    begin = REQUEST_START.size + 2
    size = int.from_bytes(frame[REQUEST_START.size : begin], signed=True)
    if not 0 <= size <= len(frame) - begin:
        return None
    return frame[begin : begin + min(size, MAX_CLIENT_ID_BYTES)].decode("utf-8", "replace")

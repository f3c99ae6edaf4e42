"""The headers before each request and response. Which version of them stands there follows from the API and its version (`registry.Api`).

Tags 0 to 4 of the request header travel between nodes only: with them a node forwards a request under its sender's name (KIP-590).
"""

from typing import Annotated

from .schema import Int16, Int32, WireStruct, classic, ignorable, message, since, tagged


@message(-1, "header", versions=(0, 2), flexible=2)
class RequestHeader(WireStruct):
    """Version 0 has no client id (ControlledShutdown v0), version 2 has tags. The client id never takes the compact form."""

    api_key: Int16 = 0
    api_version: Int16 = 0
    correlation_id: Int32 = 0
    client_id: Annotated[str | None, since(1), classic, ignorable] = ""
    principal_name: Annotated[str | None, since(2), tagged(0)] = (
        None  # who sent the request to the node that forwards it
    )
    client_host: Annotated[str | None, since(2), tagged(1)] = None  # from where
    client_api_version: Annotated[Int16, since(2), tagged(2)] = -1  # in which version
    on_behalf_of_api: Annotated[Int16, since(2), tagged(3)] = -1  # by which other API, if a node asks for him
    received_node: Annotated[Int32, since(2), tagged(4)] = -1  # at which node


@message(-1, "header", versions=(0, 1), flexible=1)
class ResponseHeader(WireStruct):
    """Version 1 has tags."""

    correlation_id: Int32 = 0

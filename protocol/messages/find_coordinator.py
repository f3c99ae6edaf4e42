"""FindCoordinator (10) returns the broker that coordinates a group or a transaction."""

from typing import Annotated

from ..schema import Int8, Int16, Int32, WireStruct, ignorable, message, since, until


@message(10, "request", versions=(0, 6), flexible=3)
class FindCoordinatorRequest(WireStruct):
    key: Annotated[str, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    coordinator_keys: Annotated[list[str], since(4)] = []


class CoordinatorEndpoint(WireStruct):
    key: str = ""
    node_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""


@message(10, "response", versions=(0, 6), flexible=3)
class FindCoordinatorResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[str | None, since(1), until(3), ignorable] = ""
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[str, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[list[CoordinatorEndpoint], since(4)] = []

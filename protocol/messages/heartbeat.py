"""Heartbeat (12) keeps a member in its group, and brings it the news of a rebalance."""

from typing import Annotated

from ..schema import Int16, Int32, WireStruct, ignorable, message, since


@message(12, "request", versions=(0, 4), flexible=4)
class HeartbeatRequest(WireStruct):
    group_id: str = ""
    generation_id: Int32 = 0
    member_id: str = ""
    group_instance_id: Annotated[str | None, since(3)] = None


@message(12, "response", versions=(0, 4), flexible=4)
class HeartbeatResponse(WireStruct):
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    error_code: Int16 = 0

"""ControlledShutdown (7): a broker that stops asks the controller to move its leaderships first."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since


@message(7, "request", versions=(0, 3), flexible=3)
class ControlledShutdownRequest(WireStruct):
    broker_id: Int32 = 0
    broker_epoch: Annotated[Int64, since(2), ignorable] = -1


class RemainingPartition(WireStruct):
    topic_name: str = ""
    partition_index: Int32 = 0


@message(7, "response", versions=(0, 3), flexible=3)
class ControlledShutdownResponse(WireStruct):
    error_code: Int16 = 0
    remaining_partitions: list[RemainingPartition] = []

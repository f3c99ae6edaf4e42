"""InitProducerId (22) gives a producer an id."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, message, since


@message(22, "request", versions=(0, 5), flexible=2)
class InitProducerIdRequest(WireStruct):
    transactional_id: str | None = ""
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, since(3)] = -1
    producer_epoch: Annotated[Int16, since(3)] = -1


@message(22, "response", versions=(0, 5), flexible=2)
class InitProducerIdResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0

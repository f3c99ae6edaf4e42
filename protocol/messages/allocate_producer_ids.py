"""AllocateProducerIds (67): a broker asks the controller for a block of producer ids."""

from ..schema import Int16, Int32, Int64, WireStruct, message


@message(67, "request", versions=(0, 0), flexible=0)
class AllocateProducerIdsRequest(WireStruct):
    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


@message(67, "response", versions=(0, 0), flexible=0)
class AllocateProducerIdsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id_start: Int64 = 0
    producer_id_len: Int32 = 0

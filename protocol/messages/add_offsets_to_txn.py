"""AddOffsetsToTxn (25) adds a group's offsets to a producer's transaction."""

from ..schema import Int16, Int32, Int64, WireStruct, message


@message(25, "request", versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest(WireStruct):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    group_id: str = ""


@message(25, "response", versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0

"""EndTxn (26) commits or aborts a producer's transaction."""

from ..schema import Int16, Int32, Int64, WireStruct, message


@message(26, "request", versions=(0, 4), flexible=3)
class EndTxnRequest(WireStruct):
    transactional_id: str = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    committed: bool = False


@message(26, "response", versions=(0, 4), flexible=3)
class EndTxnResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0

"""ExpireDelegationToken (40) lets a delegation token expire earlier, or removes it."""

from ..schema import Int16, Int32, Int64, WireStruct, message


@message(40, "request", versions=(0, 2), flexible=2)
class ExpireDelegationTokenRequest(WireStruct):
    hmac: bytes = b""
    expiry_time_period_ms: Int64 = 0


@message(40, "response", versions=(0, 2), flexible=2)
class ExpireDelegationTokenResponse(WireStruct):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = -1
    throttle_time_ms: Int32 = 0

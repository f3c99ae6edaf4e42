"""RenewDelegationToken (39) lets a delegation token expire later."""

from ..schema import Int16, Int32, Int64, WireStruct, message


@message(39, "request", versions=(0, 2), flexible=2)
class RenewDelegationTokenRequest(WireStruct):
    hmac: bytes = b""
    renew_period_ms: Int64 = 0


@message(39, "response", versions=(0, 2), flexible=2)
class RenewDelegationTokenResponse(WireStruct):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = -1
    throttle_time_ms: Int32 = 0

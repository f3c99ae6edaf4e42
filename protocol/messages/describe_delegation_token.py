"""DescribeDelegationToken (41) lists delegation tokens with their HMACs."""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since


class DescribeDelegationTokenOwner(WireStruct):
    principal_type: str = ""
    principal_name: str = ""


@message(41, "request", versions=(0, 3), flexible=2)
class DescribeDelegationTokenRequest(WireStruct):
    owners: list[DescribeDelegationTokenOwner] | None = []


class DescribedDelegationTokenRenewer(WireStruct):
    principal_type: str = ""
    principal_name: str = ""


class DescribedDelegationToken(WireStruct):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, since(3), ignorable] = ""
    token_requester_principal_name: Annotated[str, since(3), ignorable] = ""
    issue_timestamp: Int64 = 0
    expiry_timestamp: Int64 = 0
    max_timestamp: Int64 = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []


@message(41, "response", versions=(0, 3), flexible=2)
class DescribeDelegationTokenResponse(WireStruct):
    error_code: Int16 = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: Int32 = 0

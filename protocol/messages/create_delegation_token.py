"""CreateDelegationToken (38) creates a delegation token for the client or, since version 3
(KIP-373), for another user.
"""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since


class CreatableRenewers(WireStruct):
    principal_type: str = ""
    principal_name: str = ""


@message(38, "request", versions=(0, 3), flexible=2)
class CreateDelegationTokenRequest(WireStruct):
    owner_principal_type: Annotated[str | None, since(3)] = ""
    owner_principal_name: Annotated[str | None, since(3)] = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: Int64 = 0


@message(38, "response", versions=(0, 3), flexible=2)
class CreateDelegationTokenResponse(WireStruct):
    error_code: Int16 = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: Annotated[str, since(3), ignorable] = ""
    token_requester_principal_name: Annotated[str, since(3), ignorable] = ""
    issue_timestamp_ms: Int64 = -1
    expiry_timestamp_ms: Int64 = -1
    max_timestamp_ms: Int64 = -1
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: Int32 = 0

"""DescribeUserScramCredentials (50) returns which users can log in by SCRAM."""

from ..schema import Int8, Int16, Int32, WireStruct, message


class UserName(WireStruct):
    name: str = ""


@message(50, "request", versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsRequest(WireStruct):
    users: list[UserName] | None = None


class CredentialInfo(WireStruct):
    mechanism: Int8 = 0
    iterations: Int32 = 0


class DescribeUserScramCredentialsResult(WireStruct):
    user: str = ""
    error_code: Int16 = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = []


@message(50, "response", versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = []

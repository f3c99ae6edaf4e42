"""AlterUserScramCredentials (51) sets and removes what users log in with by SCRAM."""

from ..schema import Int8, Int16, Int32, WireStruct, message


class ScramCredentialDeletion(WireStruct):
    name: str = ""
    mechanism: Int8 = 0


class ScramCredentialUpsertion(WireStruct):
    name: str = ""
    mechanism: Int8 = 0
    iterations: Int32 = 0
    salt: bytes = b""
    salted_password: bytes = b""


@message(51, "request", versions=(0, 0), flexible=0)
class AlterUserScramCredentialsRequest(WireStruct):
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(WireStruct):
    user: str = ""
    error_code: Int16 = 0
    error_message: str | None = ""


@message(51, "response", versions=(0, 0), flexible=0)
class AlterUserScramCredentialsResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = []

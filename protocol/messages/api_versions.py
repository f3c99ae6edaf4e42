"""ApiVersions (18) returns the APIs that a broker serves and their versions. Its response always
has header version 0, since client and broker have not agreed on versions yet.
"""

from typing import Annotated

from ..schema import Int16, Int32, Int64, WireStruct, ignorable, message, since, tagged


@message(18, "request", versions=(0, 4), flexible=3)
class ApiVersionsRequest(WireStruct):
    client_software_name: Annotated[str, since(3), ignorable] = ""
    client_software_version: Annotated[str, since(3), ignorable] = ""


class FinalizedFeatureKey(WireStruct):
    name: str = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class SupportedFeatureKey(WireStruct):
    name: str = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class ApiVersion(WireStruct):
    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


@message(18, "response", versions=(0, 4), flexible=3)
class ApiVersionsResponse(WireStruct):
    error_code: Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[Int32, since(1), ignorable] = 0
    supported_features: Annotated[list[SupportedFeatureKey], since(3), tagged(0), ignorable] = []
    finalized_features_epoch: Annotated[Int64, since(3), tagged(1), ignorable] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], since(3), tagged(2), ignorable] = []
    zk_migration_ready: Annotated[bool, since(3), tagged(3), ignorable] = False

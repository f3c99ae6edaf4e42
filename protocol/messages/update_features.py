"""UpdateFeatures (57) changes the finalized versions of the cluster's features."""

from typing import Annotated

from ..schema import Int8, Int16, Int32, WireStruct, message, since, until


class FeatureUpdate(WireStruct):
    feature: str = ""
    max_version_level: Int16 = 0
    allow_downgrade: Annotated[bool, until(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1


@message(57, "request", versions=(0, 1), flexible=0)
class UpdateFeaturesRequest(WireStruct):
    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdate] = []
    validate_only: Annotated[bool, since(1)] = False


class UpdatedFeature(WireStruct):
    feature: str = ""
    error_code: Int16 = 0
    error_message: str | None = ""


@message(57, "response", versions=(0, 1), flexible=0)
class UpdateFeaturesResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = ""
    results: list[UpdatedFeature] = []

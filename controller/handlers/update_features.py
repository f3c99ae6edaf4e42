"""UpdateFeatures (57): clusters in ZooKeeper mode have no features that could be finalized, so
every update is refused, at every node.

The checks and their order are Kafka's (KafkaController.validateFeatureUpdate), and so are the
texts, which tools print.
"""

from ...admin.update_features import ALTER, SPEC
from ...cluster.cache import MetadataCache
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.update_features import (
    FeatureUpdate,
    UpdatedFeature,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def handle(
    cache: MetadataCache, context: RequestContext, request: UpdateFeaturesRequest
) -> Steps[UpdateFeaturesResponse]:
    if not context.may(ALTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return UpdateFeaturesResponse(error_code=code, error_message="Cluster authorization failed.")
    updates = {update.feature: update for update in request.feature_updates}
    finalized = dict(cache.image.features.levels)
    results = yield from one_by_one(
        UpdatedFeature(
            feature=name,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=_reason(update, finalized, has_types=context.header.api_version > 0),
        )
        for name, update in updates.items()
    )
    return UpdateFeaturesResponse(error_message=None, results=results)


def _reason(update: FeatureUpdate, finalized: dict[str, int], *, has_types: bool) -> str:
    kind = update.upgrade_type if has_types else (SAFE_DOWNGRADE if update.allow_downgrade else UPGRADE)
    level = update.max_version_level
    if not update.feature:
        return "Feature name can not be empty."
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "Received unknown upgrade type."
    if level < 1 and kind == UPGRADE:
        text = f"Can not provide versionLevel: {level} less than 1 without setting the SAFE downgradeType"
        return f"{text} in the request."
    if level < 1 and update.feature not in finalized:
        return "Can not delete non-existing finalized feature."
    return "Could not apply finalized feature update because the provided feature is not supported."


API = served(SPEC, handle)

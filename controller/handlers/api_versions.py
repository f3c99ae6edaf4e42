"""ApiVersions (18) returns the APIs that this node answers, with their versions. Its request says
which software the client is (KIP-511).

The response is made from the routes of the listener, so that it names exactly the APIs that are
answered there. The dispatcher answers a version that is too new, in version 0.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from ...admin.spec import Sender
from ...cluster.cache import MetadataCache
from ...cluster.entities import FinalizedFeatures
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext, Routes
from ...protocol import dry_runs
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from ...security.caller import MAX_SOFTWARE_CHARACTERS

SOFTWARE = re.compile(r"[a-zA-Z0-9\-.]++")
"""The characters that KIP-511 allows in the name and the version of client software. Neither may
begin or end with one of SIGNS.
"""
SIGNS = "-."

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = {dry_runs.FEATURE: dry_runs.FEATURE_VERSIONS}
"""The lowest and the highest version of the features of this program, by name. Nobody can finalize
them; they tell other nodes and clients what this node understands.
"""


def handle(cache: MetadataCache, ctx: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if ctx.caller.is_amid_authentication:
        ctx.caller.break_off_authentication()
        return ApiVersionsResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    if ctx.header.api_version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_is_software(name) and _is_software(version)):
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        if len(name) + len(version) < MAX_SOFTWARE_CHARACTERS:  # longer names are answered and not remembered
            ctx.caller.software = f"{name}/{version}"
    return advertised(ctx.dispatcher.routes, cache.image.features)


def _is_software(text: str) -> bool:
    return SOFTWARE.fullmatch(text) is not None and text[0] not in SIGNS and text[-1] not in SIGNS


@lru_cache(maxsize=16)
def advertised(routes: Routes, finalized: FinalizedFeatures) -> ApiVersionsResponse:
    """Return the response that all clients of the same routes share. It must not be changed."""
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=route.api.key, min_version=route.api.min_version, max_version=route.api.max_version)
            for route in routes
        ],
        supported_features=[
            SupportedFeatureKey(name=name, min_version=least, max_version=most)
            for name, (least, most) in SUPPORTED_FEATURES.items()
        ],
        finalized_features_epoch=finalized.version,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in finalized.levels
            if level > 0
        ],
    )


API = ServedApi(
    key=ApiKey.API_VERSIONS,
    handler=handle,
    sender=Sender.ANYONE,
)

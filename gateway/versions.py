"""ApiVersions through the gateway: what broker and gateway have in common (KIP-511)."""

from collections.abc import Mapping

from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from ..protocol.registry import KAFKA
from .apis import APIS, NEEDED_BY_FEATURES, PassedApi
from .requests import RequestHead


def common(response: ApiVersionsResponse, apis: Mapping[int, PassedApi]) -> None:
    """Leave the versions of these APIs that pass, and the features that need no others."""
    before = {row.api_key: row.max_version for row in response.api_keys}
    response.api_keys = [
        ApiVersion(
            api_key=row.api_key,
            min_version=oldest if api.advertised_since is None else api.advertised_since,
            max_version=newest,
        )
        for row in response.api_keys
        if (api := apis.get(row.api_key)) is not None
        and (newest := min(row.max_version, api.newest)) >= (oldest := max(row.min_version, api.oldest))
    ]
    after = {row.api_key: row.max_version for row in response.api_keys}
    lost = {name for name, needed in NEEDED_BY_FEATURES.items() if _has(before, needed) and not _has(after, needed)}
    response.supported_features = [each for each in response.supported_features if each.name not in lost]
    response.finalized_features = [each for each in response.finalized_features if each.name not in lost]


def _has(newest: Mapping[int, int], needed: Mapping[int, int]) -> bool:
    return all(newest.get(key, -1) >= version for key, version in needed.items())


def too_new(head: RequestHead) -> bytes:
    """Return the response to ApiVersions in a version that does not pass: in version 0, with the
    versions of ApiVersions alone, so that the client asks again.
    """
    row = ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=APIS[ApiKey.API_VERSIONS].newest)
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row])
    return KAFKA.encode_response(ApiKey.API_VERSIONS, 0, head.correlation_id, response)

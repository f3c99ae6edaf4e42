"""Versions and features are what broker and gateway have in common, whichever of them is newer."""

import struct

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.client.configuration import Address, ClientConfig
from minicontroller.client.network import Network
from minicontroller.gateway import versions
from minicontroller.gateway.apis import APIS, NEEDED_BY_FEATURES
from minicontroller.gateway.cluster import UpstreamCluster
from minicontroller.gateway.frames import FrameReader, FrameWriter
from minicontroller.gateway.requests import RequestHead
from minicontroller.gateway.responses import Responses
from minicontroller.gateway.treatment import Service
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from minicontroller.protocol.registry import KAFKA
from tests.gateway.test_frames import Pipe

ROWS = st.dictionaries(st.integers(0, 99), st.tuples(st.integers(0, 6), st.integers(0, 25)))
FEATURES = sorted([*NEEDED_BY_FEATURES, "metadata.version", "kraft.version", "a.new.version"])


def told(rows: dict[int, tuple[int, int]]) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=low, max_version=low + more) for key, (low, more) in rows.items()
        ],
        supported_features=[SupportedFeatureKey(name=name, max_version=1) for name in FEATURES],
        finalized_features=[FinalizedFeatureKey(name=name, max_version_level=1) for name in FEATURES],
    )


@given(ROWS)
def test_what_both_speak(rows: dict[int, tuple[int, int]]) -> None:
    """No version is told that either of them lacks, but for those before Produce 3, and none that
    both have is left out.
    """
    response = told(rows)
    versions.common(response, APIS)
    after = {row.api_key: range(row.min_version, row.max_version + 1) for row in response.api_keys}
    for key, (low, more) in rows.items():
        passed = APIS.get(key)
        common = range(0) if passed is None else range(max(low, passed.oldest), min(low + more, passed.newest) + 1)
        if common and key == ApiKey.PRODUCE:
            common = range(common.stop)
        assert list(after.get(key, ())) == list(common)
    assert after.keys() <= rows.keys()


@given(ROWS)
def test_features_follow_versions(rows: dict[int, tuple[int, int]]) -> None:
    """A feature is hidden where the broker has the versions that it needs, and the gateway passes
    fewer. Others, and those that nobody knows yet, pass.
    """
    response = told(rows)
    before = {row.api_key: row.max_version for row in response.api_keys}
    versions.common(response, APIS)
    after = {row.api_key: row.max_version for row in response.api_keys}
    names = [each.name for each in response.supported_features]
    assert names == [each.name for each in response.finalized_features]
    for name in FEATURES:
        needed = NEEDED_BY_FEATURES.get(name, {})
        lost = [key for key, least in needed.items() if after.get(key, -1) < least]
        lacked = [key for key, least in needed.items() if before.get(key, -1) < least]
        assert (name in names) == (bool(lacked) or not lost)


@pytest.mark.parametrize("version", range(5))
def test_a_broker_that_is_older(version: int) -> None:
    """A broker that does not know the client's version of ApiVersions answers in version 0, and so
    does the gateway (KIP-511); what it tells is narrowed down, too.
    """
    rows = [ApiVersion(api_key=key, min_version=0, max_version=99) for key in (ApiKey.API_VERSIONS, 999)]
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=rows)
    sink = Pipe([])

    async def move() -> None:
        frames = FrameReader(Pipe([KAFKA.encode_response(ApiKey.API_VERSIONS, 0, 7, refusal)]), 1 << 20)
        await frames.begin()
        async with trio.open_nursery() as nursery:
            cluster = UpstreamCluster(Network(nursery, ClientConfig((Address("a", 1),))), _nowhere)
            head = RequestHead(ApiKey.API_VERSIONS, version, 7)
            mover = Responses(cluster, Service(APIS)).move_of(APIS[ApiKey.API_VERSIONS], head)
            assert mover is not None
            await mover(frames, FrameWriter(sink))

    trio.run(move)
    (data,) = sink.sent
    assert struct.unpack(">i", data[:4])[0] == len(data) - 4
    header, answer = KAFKA.decode_response(ApiKey.API_VERSIONS, 0, data[4:])
    assert isinstance(answer, ApiVersionsResponse)
    assert (header.correlation_id, answer.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
    assert [(row.api_key, row.max_version) for row in answer.api_keys] == [(ApiKey.API_VERSIONS, 4)]


async def _nowhere(broker_id: int) -> Address | None:
    await trio.lowlevel.checkpoint()
    return None

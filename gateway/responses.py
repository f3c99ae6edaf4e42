"""Moves the responses of brokers to clients: as they are, or with the addresses and the versions of
the gateway in them.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from ..network.serving.long_answers import encoded_response
from ..process.time_slices import TimeSlice
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.api_versions import ApiVersionsResponse
from ..protocol.registry import KAFKA
from . import node_endpoints, versions
from .apis import PassedApi, Rewrite
from .cluster import UpstreamCluster
from .frames import FrameReader, FrameWriter, Move
from .requests import RequestHead
from .treatment import Service

Change = Callable[[bytes], Awaitable[bytes]]
"""Changes a response, given without its size, and returns it with its size."""


class Responses:
    """The responses of all brokers to the clients of one gateway."""

    def __init__(self, cluster: UpstreamCluster, service: Service) -> None:
        self._cluster = cluster
        self._service = service

    def move_of(self, api: PassedApi, head: RequestHead) -> Move | None:
        """Return the function that relays the response; None if its bytes pass untouched."""
        tail = api.tails.get(head.version)
        if tail is not None:
            return partial(node_endpoints.pass_readdressed, tail, self._cluster)
        change = self.change_of(api, head)
        return None if change is None else partial(_move_changed, change)

    def change_of(self, api: PassedApi, head: RequestHead) -> Change | None:
        """Return what changes the response to a request as a whole; None if nothing does."""
        if api.key is ApiKey.API_VERSIONS:
            return partial(self._with_common_versions, head)
        return None if api.rewrite is None else partial(self._rewritten, api.rewrite, head)

    async def _rewritten(self, rewrite: Rewrite, head: RequestHead, frame: bytes) -> bytes:
        time_slice = TimeSlice()
        header, response = KAFKA.decode_response(head.api_key, head.version, frame)
        await time_slice.pause()
        await rewrite(self._cluster, response)
        return await encoded_response(head.api_key, head.version, header.correlation_id, response)

    async def _with_common_versions(self, head: RequestHead, frame: bytes) -> bytes:
        is_older = int.from_bytes(frame[4:6], signed=True) == ErrorCode.UNSUPPORTED_VERSION
        version = 0 if is_older else head.version
        header, response = KAFKA.decode_response(ApiKey.API_VERSIONS, version, frame)
        assert isinstance(response, ApiVersionsResponse)
        versions.common(response, self._service.apis)
        return KAFKA.encode_response(ApiKey.API_VERSIONS, version, header.correlation_id, response)


async def _move_changed(change: Change, frames: FrameReader, client: FrameWriter) -> None:
    await client.send(await change(await frames.whole()))

"""Carries out LeaderAndIsr, UpdateMetadata and StopReplica of the controller that was elected, and
refuses those of any other.

Rule: only the store says who was elected. A request with a higher epoch than the node knows is
carried out once `/controller_epoch` has that epoch. While the store cannot be read, it is carried
out, and `EpochCheck` compares the epochs later.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from ...cluster.cache import MetadataCache
from ...cluster.znodes import layout
from ...cluster.znodes.cluster import decode_controller_epoch
from ...cluster.znodes.content import MalformedZnodeError
from ...protocol.error_codes import ErrorCode
from ...store.base import Store, StoreError
from ..broker.image_reader import ImageReader
from ..broker.registration import BrokerEpoch

Response = TypeVar("Response")


class ControlRequest(Protocol):
    """The fields that all control requests of a controller have."""

    controller_epoch: int
    broker_epoch: int


class ElectedController:
    """The controller that was elected, as one node tells it from others."""

    def __init__(self, cache: MetadataCache, reader: ImageReader, store: Store, broker_epoch: BrokerEpoch) -> None:
        self._cache = cache
        self._reader = reader
        self._store = store
        self._broker_epoch = broker_epoch

    @property
    def max_topic_bytes(self) -> int:
        """The size of the largest znode of a topic that the store can hold."""
        return self._store.max_commit_bytes

    async def read_changed(self, paths: Sequence[str] | None) -> bool:
        """Read these entities, because the controller waits for it (`ImageReader.catch_up`). Return
        False if the store does not respond in time.
        """
        return await self._reader.catch_up(self._store, paths)

    def obey(
        self,
        request: ControlRequest,
        carry_out: Callable[[], Response],
        refused: Callable[[ErrorCode], Response],
    ) -> Response | Awaitable[Response]:
        """Return what `carry_out` returns if the elected controller sent the request, and otherwise
        the answer that `refused` makes of an error.
        """
        error = self._stale(request)
        if error is not ErrorCode.NONE:
            return refused(error)
        if request.controller_epoch > self._cache.image.controller_epoch:
            return self._if_elected(request, carry_out, refused)
        return carry_out()

    async def _if_elected(
        self,
        request: ControlRequest,
        carry_out: Callable[[], Response],
        refused: Callable[[ErrorCode], Response],
    ) -> Response:
        if not await self._was_elected(request.controller_epoch):
            return refused(ErrorCode.STALE_CONTROLLER_EPOCH)
        error = self._stale(request)  # another controller may have been elected meanwhile
        return carry_out() if error is ErrorCode.NONE else refused(error)

    async def _was_elected(self, epoch: int) -> bool:
        try:
            await self._store.sync()
            entry = await self._store.get(layout.CONTROLLER_EPOCH)
            return entry is None or epoch <= decode_controller_epoch(entry.data)
        except (StoreError, MalformedZnodeError):
            return True  # nobody can tell now

    def _stale(self, request: ControlRequest) -> ErrorCode:
        """Return NONE if the request comes from the newest known controller and is meant for the
        present registration of this node (Kafka: KafkaApis.isBrokerEpochStale).

        A broker epoch of -1 is not checked. A broker epoch above this node's own belongs to a
        registration whose response has not arrived yet.
        """
        if request.controller_epoch < self._cache.image.controller_epoch:
            self._cache.epoch_doubted.send()
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if 0 <= request.broker_epoch < self._broker_epoch.current:
            return ErrorCode.STALE_BROKER_EPOCH
        return ErrorCode.NONE

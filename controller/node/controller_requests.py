"""Sends the requests that a node itself makes to the active controller."""

import logging
from collections.abc import Awaitable, Callable

import trio

from ...cluster.cache import MetadataCache
from ...cluster.image import NO_CONTROLLER
from ...network.peer import PeerUnavailable
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ...protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, TopicData
from ...protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ...protocol.schema import WireStruct
from ..active.active_controller import LocalController
from ..broker.registration import BrokerEpoch
from ..handlers.allocate_producer_ids import allocate
from ..handlers.alter_partition import alter

log = logging.getLogger("minicontroller.node")

HANDOVER_SECONDS = 3.0
"""The time in seconds that the controller has to move the leaderships of a stopping node. Then the
node stops anyway.
"""
RETRY_SECONDS = 0.05
"""The pause in seconds before a request to the controller is retried."""

AskController = Callable[[ApiKey, int, WireStruct], Awaitable[WireStruct]]
"""Sends a request to the controller on another node. Raises PeerUnavailable."""


async def nobody_to_ask(_key: ApiKey, _version: int, _request: WireStruct) -> WireStruct:
    await trio.lowlevel.checkpoint()
    raise PeerUnavailable("the node is connected to no other", in_doubt=False)


class ControllerRequests:
    """The requests of one node, which its own controller answers if it is the active one."""

    def __init__(
        self, broker_id: int, cache: MetadataCache, epoch: BrokerEpoch, place: LocalController, ask: AskController
    ) -> None:
        self._broker_id = broker_id
        self._cache = cache
        self._epoch = epoch
        self._place = place
        self._ask = ask

    async def alter(self, topics: list[TopicData]) -> AlterPartitionResponse | None:
        """Send AlterPartition to the active controller, or return None if it cannot be reached."""
        request = AlterPartitionRequest(broker_id=self._broker_id, broker_epoch=self._epoch.current, topics=topics)
        if self._place.active is not None:
            return await alter(self._place, request, version=3)
        try:
            answer = await self._ask(ApiKey.ALTER_PARTITION, 3, request)
        except PeerUnavailable:
            return None
        assert isinstance(answer, AlterPartitionResponse)
        return answer

    async def producer_ids(self) -> range | None:
        """Return a block of ids for producers from the active controller, or None if it gives
        none.
        """
        request = AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._epoch.current)
        if self._place.active is not None:
            answer = await allocate(self._place, request)
        else:
            try:
                found = await self._ask(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request)
            except PeerUnavailable:
                return None
            assert isinstance(found, AllocateProducerIdsResponse)
            answer = found
        if answer.error_code != ErrorCode.NONE:
            log.info("the controller gives no ids for producers: error %d", answer.error_code)
            return None
        return range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)

    async def hand_over(self) -> None:
        """Request a controlled shutdown from the controller, if another node can take over. Gives
        up after HANDOVER_SECONDS.
        """
        if len(self._cache.image.brokers) < 2:
            return
        request = ControlledShutdownRequest(broker_id=self._broker_id, broker_epoch=self._epoch.current)
        with trio.move_on_after(HANDOVER_SECONDS):
            while True:
                # The controller must be another node: a successor of this one would not know of it.
                await self._cache.wait_cluster(
                    lambda image: image.controller_id not in (NO_CONTROLLER, self._broker_id)
                )
                try:
                    answer = await self._ask(ApiKey.CONTROLLED_SHUTDOWN, 3, request)
                except PeerUnavailable as error:
                    log.info("the controller has not yet moved this node's leaderships: %s", error)
                else:
                    assert isinstance(answer, ControlledShutdownResponse)
                    if answer.error_code == ErrorCode.NONE:
                        return
                await trio.sleep(RETRY_SECONDS)

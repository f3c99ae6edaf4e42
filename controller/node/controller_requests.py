"""Sends the requests that a node itself makes to the active controller."""

import logging

import trio

from ...cluster.image import NO_CONTROLLER
from ...network.peer import PeerUnavailable
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ...protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, TopicData
from ...protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ..active.control_links import ControlLinks
from ..handlers.allocate_producer_ids import allocate
from ..handlers.alter_partition import alter
from .node import Node

log = logging.getLogger("minicontroller.node")

HANDOVER_SECONDS = 3.0
"""The time in seconds that the controller has to move the leaderships of a stopping node. Then the
node stops anyway.
"""
RETRY_SECONDS = 0.05
"""The pause in seconds before a request to the controller is retried."""


async def ask_to_alter(node: Node, links: ControlLinks, topics: list[TopicData]) -> AlterPartitionResponse | None:
    """Send AlterPartition to the active controller, or return None if it cannot be reached."""
    request = AlterPartitionRequest(broker_id=node.broker_id, broker_epoch=node.broker_epoch, topics=topics)
    if node.controller is not None:
        return await alter(node.place, request, version=3)
    try:
        answer = await links.ask_controller(ApiKey.ALTER_PARTITION, 3, request)
    except PeerUnavailable:
        return None
    assert isinstance(answer, AlterPartitionResponse)
    return answer


async def ask_for_producer_ids(node: Node, links: ControlLinks) -> range | None:
    """Return a block of ids for producers from the active controller, or None if it gives none."""
    request = AllocateProducerIdsRequest(broker_id=node.broker_id, broker_epoch=node.broker_epoch)
    if node.controller is not None:
        answer = await allocate(node.place, request)
    else:
        try:
            found = await links.ask_controller(ApiKey.ALLOCATE_PRODUCER_IDS, 0, request)
        except PeerUnavailable:
            return None
        assert isinstance(found, AllocateProducerIdsResponse)
        answer = found
    if answer.error_code != ErrorCode.NONE:
        log.info("the controller gives no ids for producers: error %d", answer.error_code)
        return None
    return range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)


async def hand_over(node: Node, links: ControlLinks) -> None:
    """Request a controlled shutdown from the controller, if it is enabled and another node can take
    over. Gives up after HANDOVER_SECONDS.
    """
    if len(node.cache.image.brokers) < 2 or not node.config.boolean("controlled.shutdown.enable"):
        return
    request = ControlledShutdownRequest(broker_id=node.broker_id, broker_epoch=node.broker_epoch)
    with trio.move_on_after(HANDOVER_SECONDS):
        while True:
            # The controller must be another node: a successor of this one would not know of it.
            await node.cache.wait_cluster(lambda image: image.controller_id not in (NO_CONTROLLER, node.broker_id))
            try:
                answer = await links.ask_controller(ApiKey.CONTROLLED_SHUTDOWN, 3, request)
            except PeerUnavailable as error:
                log.info("the controller has not yet moved this node's leaderships: %s", error)
            else:
                assert isinstance(answer, ControlledShutdownResponse)
                if answer.error_code == ErrorCode.NONE:
                    return
            await trio.sleep(RETRY_SECONDS)

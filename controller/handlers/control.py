"""Rejects outdated LeaderAndIsr, UpdateMetadata and StopReplica requests."""

from ...protocol.error_codes import ErrorCode
from .node import Node


def stale(node: Node, controller_epoch: int, broker_epoch: int) -> ErrorCode:
    """Return NONE if the request comes from the newest known controller and is meant for the
    present registration of this node (Kafka: KafkaApis.isBrokerEpochStale).

    A broker epoch of -1 is not checked. A broker epoch above this node's own belongs to a
    registration whose response has not arrived yet.
    """
    if controller_epoch < node.cache.image.controller_epoch:
        node.cache.epoch_doubted.send()
        return ErrorCode.STALE_CONTROLLER_EPOCH
    if 0 <= broker_epoch < node.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE

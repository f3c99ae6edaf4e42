"""The check that LeaderAndIsr, UpdateMetadata and StopReplica have in common: whether the request
is too old.
"""

from ...protocol.error_codes import ErrorCode
from .node import Node


def stale(node: Node, controller_epoch: int, broker_epoch: int) -> ErrorCode:
    """Return NONE if the request is from the newest controller known and meant for the present
    registration of this node (Kafka: KafkaApis.isBrokerEpochStale).

    A broker epoch of -1 is not checked; a larger one than ours is of a registration whose answer we
    have yet to read.
    """
    if controller_epoch < node.cache.image.controller_epoch:
        node.cache.epoch_doubted.send()
        return ErrorCode.STALE_CONTROLLER_EPOCH
    if 0 <= broker_epoch < node.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE

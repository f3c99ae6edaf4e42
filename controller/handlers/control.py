"""Carries out LeaderAndIsr, UpdateMetadata and StopReplica of the controller that was elected, and
refuses those of any other.

Rule: only the store says who was elected. A request with a higher epoch than the node knows is
carried out once `/controller_epoch` has that epoch. While the store cannot be read, it is carried
out, and `EpochCheck` compares the epochs later.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from ...cluster.znodes import layout
from ...cluster.znodes.cluster import decode_controller_epoch
from ...cluster.znodes.content import MalformedZnodeError
from ...protocol.error_codes import ErrorCode
from ...store.base import StoreError
from .node import Node

Response = TypeVar("Response")


class ControlRequest(Protocol):
    """The fields that all control requests of a controller have."""

    controller_epoch: int
    broker_epoch: int


def from_controller(
    node: Node,
    request: ControlRequest,
    carry_out: Callable[[], Response],
    refused: Callable[[ErrorCode], Response],
) -> Response | Awaitable[Response]:
    """Return what `carry_out` returns if the elected controller sent the request, and otherwise
    the answer that `refused` makes of an error.
    """
    error = _stale(node, request)
    if error is not ErrorCode.NONE:
        return refused(error)
    if request.controller_epoch > node.cache.image.controller_epoch:
        return _if_elected(node, request, carry_out, refused)
    return carry_out()


async def _if_elected(
    node: Node,
    request: ControlRequest,
    carry_out: Callable[[], Response],
    refused: Callable[[ErrorCode], Response],
) -> Response:
    if not await _was_elected(node, request.controller_epoch):
        return refused(ErrorCode.STALE_CONTROLLER_EPOCH)
    error = _stale(node, request)  # another controller may have been elected meanwhile
    return carry_out() if error is ErrorCode.NONE else refused(error)


async def _was_elected(node: Node, epoch: int) -> bool:
    try:
        await node.store.sync()
        entry = await node.store.get(layout.CONTROLLER_EPOCH)
        return entry is None or epoch <= decode_controller_epoch(entry.data)
    except (StoreError, MalformedZnodeError):
        return True  # nobody can tell now


def _stale(node: Node, request: ControlRequest) -> ErrorCode:
    """Return NONE if the request comes from the newest known controller and is meant for the
    present registration of this node (Kafka: KafkaApis.isBrokerEpochStale).

    A broker epoch of -1 is not checked. A broker epoch above this node's own belongs to a
    registration whose response has not arrived yet.
    """
    if request.controller_epoch < node.cache.image.controller_epoch:
        node.cache.epoch_doubted.send()
        return ErrorCode.STALE_CONTROLLER_EPOCH
    if 0 <= request.broker_epoch < node.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return ErrorCode.NONE

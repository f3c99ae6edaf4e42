"""The logs and the coordinator of a node, and the APIs of both that go past the controller.

A node of `serve` keeps no records (`no_records`). Those of `up` have records in memory, in a folder
that this one does not import.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ...network.serving.api import ServedApi
from ...process.settings.node_config import NodeConfig
from ..handlers.controller_port import ControllerPort
from .coordinator import Coordinator, GroupOffsets
from .logs import Logs
from .producer_ids import ProducerIds
from .topic_overrides import TopicOverrides
from .view import BrokerView


class DataParts(msgspec.Struct, frozen=True):
    """The parts of a node on which its data rest."""

    config: NodeConfig
    view: BrokerView
    overrides: TopicOverrides
    producer_ids: ProducerIds


class NodeData(msgspec.Struct, frozen=True):
    logs: Logs
    coordinator: Coordinator
    apis: Callable[[ControllerPort], Sequence[ServedApi[()]]] = lambda _port: ()
    """Returns the APIs of records, groups and transactions, each instead of the node's own one of
    its key, given the node's way to its controller.
    """


KeepData = Callable[[DataParts], NodeData]


class ProcessData(msgspec.Struct, frozen=True):
    """The data of all nodes of one process."""

    keep: KeepData
    """Makes the data of one node."""
    run: Callable[[], Awaitable[None]]
    """Does what is due by time, until it is cancelled or has nothing to do."""


def no_records(parts: DataParts) -> NodeData:
    """Return the data of a node whose logs are empty, and whose groups have offsets and no
    members.
    """
    view = parts.view
    return NodeData(Logs(parts.config), GroupOffsets(view.broker_id, view.cache, parts.producer_ids))


async def _nothing_due() -> None:
    """Return, since what has no records has nothing that expires."""


WITHOUT_RECORDS = ProcessData(no_records, _nothing_due)

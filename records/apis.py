"""The logs and coordinators of nodes whose process keeps records in memory, with their APIs."""

from collections.abc import Sequence

import trio

from ..controller.broker.data import DataParts, NodeData, ProcessData
from ..controller.handlers.controller_port import ControllerPort
from ..network.serving.api import ServedApi
from .handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    delete_groups,
    end_txn,
    fetch,
    heartbeat,
    join_group,
    offset_commit,
    offset_delete,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
)
from .serving.cluster_data import ClusterData
from .serving.node_coordinator import RecordCoordinator
from .serving.node_logs import RecordLogs
from .serving.plane import DataPlane


def kept_in_memory() -> ProcessData:
    """Return the data of a process whose nodes keep records in memory, until it ends."""
    made: list[ClusterData] = []
    is_made = trio.Event()

    def keep(parts: DataParts) -> NodeData:
        if not made:
            made.append(ClusterData(parts.config))
            is_made.set()
        return _of_node(made[0], parts)

    async def run() -> None:
        await is_made.wait()
        await made[0].run()

    return ProcessData(keep, run)


def _of_node(data: ClusterData, parts: DataParts) -> NodeData:
    plane = DataPlane(parts, data)
    data.add(parts, plane.topics)
    coordinator = RecordCoordinator(plane, parts.producer_ids)
    return NodeData(RecordLogs(parts.config, plane), coordinator, lambda port: _apis(plane, coordinator, port))


def _apis(plane: DataPlane, coordinator: RecordCoordinator, port: ControllerPort) -> Sequence[ServedApi[()]]:
    of_logs = (produce.API, fetch.API, offset_for_leader_epoch.API)
    of_members = (join_group.API, sync_group.API, heartbeat.API)
    of_transactions = (add_partitions_to_txn.API, add_offsets_to_txn.API, txn_offset_commit.API, end_txn.API)
    judged = (offset_commit.API, offset_delete.API, delete_groups.API)
    return (
        *(api.bound(plane) for api in of_logs),
        *(api.bound(plane, coordinator) for api in (*of_members, *of_transactions)),
        *(api.bound(coordinator, port) for api in judged),
    )

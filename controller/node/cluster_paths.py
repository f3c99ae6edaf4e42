"""Prepares a cluster in the store, the paths that Kafka's nodes expect and the cluster's id, and
keeps both there.

Rule: a node serves the cluster that it was started for, or ends. It never fills an empty tree with
what it remembers.
"""

import contextlib
import logging
from collections.abc import Callable

import trio

from ...cluster.errors import ConfigurationError
from ...cluster.random_ids import new_id
from ...cluster.znodes import layout
from ...cluster.znodes.cluster import decode_cluster_id, encode_cluster_id
from ...cluster.znodes.content import MalformedZnodeError
from ...cluster.znodes.topics import uuid_text
from ...store.base import (
    Create,
    Entry,
    NodeExists,
    NodeMissing,
    SessionExpired,
    SetData,
    Store,
    StoreUnavailable,
    VersionConflict,
    Watch,
)
from ...store.sessions import wait_connected
from ..active.loading import ensure_paths

log = logging.getLogger("minicontroller.node")


async def prepare(store: Store) -> str:
    """Create the paths that every Kafka cluster has, and return the cluster's id, which the first
    node generates. Waits while the store is not reachable.
    """
    while True:
        await wait_connected(store)
        try:
            return await _prepare(store)
        except (StoreUnavailable, SessionExpired) as error:
            log.debug("the store is not reachable: %s", error)
            await trio.lowlevel.checkpoint()


MENDING_SECONDS = 5.0
"""How long a node that starts waits for others to mend the cluster's id."""


class ClusterLostError(ConfigurationError):
    """ZooKeeper no longer holds the cluster of this node."""


async def keep(store: Store, cluster_id: str, knows_topics: Callable[[], bool], watch: Watch) -> None:
    """Make again what another program has removed of the cluster's paths, and its id. `watch` is
    called when the id changes. Raises ClusterLostError if ZooKeeper holds another cluster, or
    nothing of this one though its nodes know topics.
    """
    entry = await store.get(layout.CLUSTER_ID, watch)
    try:
        found = None if entry is None else decode_cluster_id(entry.data)
    except MalformedZnodeError as error:
        log.warning("%s; it is written again", error)
        found = None
    if found not in (None, cluster_id):
        raise ClusterLostError(
            f"ZooKeeper holds another cluster now, {found}, and no longer {cluster_id}, to which this node belongs: "
            "restore its data, or start the node again to have it join the other one."
        )
    if found is None and knows_topics() and not await _has_topics(store):
        raise ClusterLostError(
            f"ZooKeeper no longer holds the cluster {cluster_id}: {layout.CLUSTER_ID} and all topics are gone. "
            "Restore its data and start the nodes again; they make a new, empty cluster if there is none."
        )
    if await ensure_paths(store):
        log.warning("another program has removed paths of the cluster from ZooKeeper; they are made again")
    if found is None:
        await _write_id(store, cluster_id, entry)


async def _has_topics(store: Store) -> bool:
    (names,) = await store.children_many([layout.TOPICS])
    return bool(names)


async def _write_id(store: Store, cluster_id: str, entry: Entry | None) -> None:
    data = encode_cluster_id(cluster_id)
    await store.ensure("/cluster")
    with contextlib.suppress(NodeExists, NodeMissing, VersionConflict):  # another node was faster
        await store.commit(
            [Create(layout.CLUSTER_ID, data)]
            if entry is None
            else [SetData(layout.CLUSTER_ID, data, entry.stat.version)]
        )


async def _mended_id(store: Store) -> Entry | None:
    """Return the znode of the cluster's id. If it is missing or damaged while brokers are
    registered, they have a moment to write it again: a new id would part the cluster.
    """
    entry = None
    with trio.move_on_after(MENDING_SECONDS):
        while True:
            entry = await store.get(layout.CLUSTER_ID)
            if _is_readable(entry) or not await store.children(layout.BROKER_IDS):
                break
            await trio.sleep(MENDING_SECONDS / 50)
    return entry


def _is_readable(entry: Entry | None) -> bool:
    if entry is None:
        return False
    try:
        decode_cluster_id(entry.data)
    except MalformedZnodeError:
        return False
    return True


async def _prepare(store: Store) -> str:
    await ensure_paths(store)
    entry = await _mended_id(store)
    if entry is None:
        await store.ensure("/cluster")
        try:
            await store.commit([Create(layout.CLUSTER_ID, encode_cluster_id(uuid_text(new_id())))])
        except NodeExists:
            log.debug("another node has already generated the cluster's id")
        entry = await store.get(layout.CLUSTER_ID)
    try:
        return decode_cluster_id(None if entry is None else entry.data)
    except MalformedZnodeError as error:
        raise ConfigurationError(f"ZooKeeper holds no valid cluster id: {error}.") from error

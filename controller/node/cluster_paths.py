"""Prepares a cluster in the store: the paths that Kafka's nodes expect, and the cluster's id."""

import logging

import trio

from ..active.loading import ensure_paths
from ..errors import ConfigurationError
from ..metadata.random_ids import new_id
from ..store.base import Create, NodeExists, SessionExpired, Store, StoreUnavailable
from ..store.sessions import wait_connected
from ..znodes import layout
from ..znodes.cluster import decode_cluster_id, encode_cluster_id
from ..znodes.content import MalformedZnodeError
from ..znodes.topics import uuid_text

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


async def _prepare(store: Store) -> str:
    await ensure_paths(store)
    entry = await store.get(layout.CLUSTER_ID)
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

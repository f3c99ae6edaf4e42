"""Bugs in what nodes are told, and in what they tell each other."""

import sys
from typing import Any

from minicontroller.cluster import cache
from minicontroller.cluster.cache import MetadataCache
from minicontroller.cluster.znodes import acls, layout
from minicontroller.controller.active import active_controller, channel, loading, propagation
from minicontroller.controller.broker.followers import Followers
from minicontroller.store.base import Watch
from minicontroller.store.zookeeper import ZooKeeperStore
from tests.faults.planted import planting


@planting.planted(troubles=("false_marks",), completion="cluster")
def nobody_is_waited_for() -> None:
    """With `metadata.completion=cluster` an answer does not wait for the other nodes."""

    async def at_once(*_arguments: Any, **_named: Any) -> bool:
        return True

    planting.put_in(propagation.Propagation, "wait_acknowledged", at_once)


@planting.planted(troubles=("false_marks",))
def answered_ahead_of_the_node() -> None:
    """A node answers questions by what it knows, also where its own clients know more by an answer
    of the controller.
    """
    planting.put_in(cache.MetadataCache, "expect_update", lambda *_arguments: None)


@planting.planted(troubles=("false_marks",))
def update_lost() -> None:
    """One in twenty UpdateMetadata is not sent."""
    update, now = channel.Channel._update_metadata, planting.every(20)

    async def losing(*arguments: Any, **named: Any) -> None:
        if not now():
            await update(*arguments, **named)

    planting.put_in(channel.Channel, "_update_metadata", losing)


@planting.planted(troubles=("false_marks",))
def lost_watch() -> None:
    """One in ten looks at the notifications of configs sets no watch."""
    children, now = ZooKeeperStore.children, planting.every(10)

    async def deaf(store: ZooKeeperStore, path: str, watch: Watch | None = None) -> list[str]:
        is_lost = watch is not None and path == layout.CONFIG_CHANGES and now()
        return await children(store, path, None if is_lost else watch)

    planting.put_in(ZooKeeperStore, "children", deaf)


@planting.planted(troubles=("freeze", "cut_from_zookeeper", "kill_leader"))
def stale_image() -> None:
    """A controller that is elected again, or was in doubt, goes on from what it read the first
    time.
    """
    load, first = loading.load, list[Any]()

    async def once(*arguments: Any, **named: Any) -> Any:
        fresh = await load(*arguments, **named)
        first.append(fresh)
        return first[0].with_brokers(fresh.brokers.values())

    planting.put_in(active_controller, "load", once)


@planting.planted(troubles=("false_marks",), completion="cluster")
def acl_not_told() -> None:
    """Node 3 never learns of an ACL."""
    read = MetadataCache.read
    is_deaf = any(each.endswith("node-3.properties") for each in sys.argv)

    def deaf(cache: Any, found: Any) -> None:
        read(cache, {path: each for path, each in found.items() if not (is_deaf and acls.pattern_at(path))})

    planting.put_in(MetadataCache, "read", deaf)


@planting.planted(troubles=("false_marks",))
def isr_forgets_a_broker() -> None:
    """Leaders never ask that broker 2 is in sync, again or for the first time."""
    missing = Followers._missing

    def forgetful(followers: Any, *arguments: Any) -> list[int]:
        return [replica for replica in missing(followers, *arguments) if replica != 2]

    planting.put_in(Followers, "_missing", forgetful)

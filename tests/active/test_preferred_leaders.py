"""Leadership returns to preferred leaders by itself."""

import json
from functools import partial

import pytest
import trio

from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.requests import decode_elections
from minicontroller.store.base import Create, Delete, Store
from minicontroller.store.signal import Signal
from tests.handlers.ruling import ruling, wanted
from tests.handlers.test_elect_leaders import Elections
from tests.store.worlds import in_both_worlds
from tests.support.small_cluster import SmallCluster

WITHIN_SECONDS = 30
SETTINGS = {"leader.imbalance.check.interval.seconds": "7"}
BEFORE_THE_FIRST_CHECK, AFTER_IT, AFTER_THE_SECOND = 4.0, 5.5, 12.5
"""Seconds since the election of the controller: checks come after 5 and after 12."""


async def elections_with_a_lost_leader(elections: Elections) -> None:
    """Broker 2 was gone, is back, and is in sync with partition 0 only."""
    await elections.live(1, 3)
    await elections.live(1, 2, 3)
    await elections.in_sync(0, 3, 2)


async def test_preferred_leaders_that_are_back_lead_again(autojump_clock: object) -> None:
    """The first check comes five seconds after the election. It leaves partitions alone whose
    preferred leader is not in sync; a later check finds it in sync.
    """
    async with ruling(SETTINGS) as cluster:
        await cluster.make(wanted("t", placed={0: [2, 3], 1: [1, 2], 2: [2, 1]}))
        elections = Elections(cluster)
        await elections_with_a_lost_leader(elections)
        await trio.sleep(BEFORE_THE_FIRST_CHECK)
        assert elections.leaders() == [3, 1, 1]
        await trio.sleep(AFTER_IT - BEFORE_THE_FIRST_CHECK)
        assert elections.leaders() == [2, 1, 1]
        await elections.in_sync(2, 1, 2)
        await trio.sleep(AFTER_THE_SECOND - AFTER_IT)
        assert elections.leaders() == [2, 1, 2]


@pytest.mark.parametrize(
    "settings",
    [{"auto.leader.rebalance.enable": "false"}, {"leader.imbalance.per.broker.percentage": "100"}],
    ids=["off", "tolerated"],
)
async def test_it_can_be_turned_off_or_tolerated(settings: dict[str, str], autojump_clock: object) -> None:
    """Nothing is moved if it is turned off, or below the percentage that a broker tolerates."""
    async with ruling(SETTINGS | settings) as cluster:
        await cluster.make(wanted("t", placed={0: [2, 3], 1: [1, 2], 2: [2, 1]}))
        elections = Elections(cluster)
        await elections_with_a_lost_leader(elections)
        await trio.sleep(AFTER_THE_SECOND)
        assert elections.leaders() == [3, 1, 1]


@in_both_worlds
async def test_old_tools_ask_in_the_store(cluster: SmallCluster, other: Store) -> None:
    """An election that a tool asks for in `/admin/preferred_replica_election` is made, and the
    znode is removed. It is removed, too, if it cannot be read, so that a tool can ask again;
    partitions that do not exist harm nothing.
    """
    await cluster.create("t", replication_factor=2)
    (before,) = cluster.controller.image.topics["t"].partitions
    swapped = before.replicas[::-1]
    assert await cluster.reassign("t", {0: swapped}) == [0]
    await cluster.until(lambda: cluster.controller.image.topics["t"].partitions[0].replicas == swapped)
    await cluster.until_quiet()
    await other.commit([Create(layout.PREFERRED_REPLICA_ELECTION, asked(("t", 0), ("t", 7), ("unknown", 0)))])
    await cluster.until(lambda: cluster.controller.image.topics["t"].partitions[0].leader == swapped[0])
    await until_taken(other)
    for data in (b"no json", b"", b"{", b'{"version":1,"partitions":5}', b'{"version":9}', b"{}"):
        await other.commit([Create(layout.PREFERRED_REPLICA_ELECTION, data)])
        await until_taken(other)
    await other.commit([Create(layout.PREFERRED_REPLICA_ELECTION, asked(("t", 0)))])
    await until_taken(other)
    assert cluster.controller.image.topics["t"].partitions[0].leader == swapped[0]


def test_what_is_read_of_old_tools() -> None:
    """An election of any version is read, with keys that nobody knows, too."""
    for version in (b"", b'"version":1,', b'"version":9,"more":1,'):
        assert decode_elections(b'{%s"partitions":[{"topic":"t","partition":0,"more":1}]}' % version) == {"t": [0]}


@in_both_worlds
async def test_a_znode_with_children_stays(cluster: SmallCluster, other: Store) -> None:
    """An election is made once, and its znode is left where it has children, as by Kafka; a tool
    can ask again when it is gone.
    """
    await cluster.create("t", replication_factor=2)
    (before,) = cluster.controller.image.topics["t"].partitions
    path, child = layout.PREFERRED_REPLICA_ELECTION, f"{layout.PREFERRED_REPLICA_ELECTION}/child"
    for replicas in (before.replicas[::-1], before.replicas):
        assert await cluster.reassign("t", {0: replicas}) == [0]
        await cluster.until(partial(is_placed, cluster, replicas))
        await cluster.until_quiet()
        await other.commit([Create(path, asked(("t", 0))), Create(child, b"")])
        await cluster.until(partial(is_led, cluster, replicas[0]))
        assert await other.get(path) is not None
        await other.commit([Delete(child), Delete(path)])


def is_placed(cluster: SmallCluster, replicas: tuple[int, ...]) -> bool:
    return cluster.controller.image.topics["t"].partitions[0].replicas == replicas


def is_led(cluster: SmallCluster, leader: int) -> bool:
    return cluster.controller.image.topics["t"].partitions[0].leader == leader


async def until_taken(store: Store) -> None:
    """Wait until the controller has removed the znode."""
    changed = Signal()
    with trio.fail_after(WITHIN_SECONDS):
        while await store.get(layout.PREFERRED_REPLICA_ELECTION, changed.send) is not None:
            await changed.wait()


def asked(*partitions: tuple[str, int]) -> bytes:
    """Return the znode as kafka-preferred-replica-election wrote it."""
    rows = [{"topic": topic, "partition": index} for topic, index in partitions]
    return json.dumps({"version": 1, "partitions": rows}).encode()

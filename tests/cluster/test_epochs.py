"""Whoever says that a newer controller rules deposes nobody: the store alone does. On both stores."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
import trio

from minicontroller.controller.cluster.channel import CONTRADICTED_SECONDS
from minicontroller.controller.store import layout
from minicontroller.controller.store.base import Delete
from tests.cluster.small_cluster import SmallCluster
from tests.store.worlds import MemoryWorld, World, zookeeper_world
from tests.support.zookeeper import ZooKeeperServer

LARGEST = 2**31 - 1


@pytest.fixture(name="world", params=["memory", "zookeeper"])
async def world_fixture(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "memory":
        yield MemoryWorld()
    else:
        server: ZooKeeperServer = request.getfixturevalue("zookeeper")
        async with zookeeper_world(server, f"/epochs-{uuid4()}") as world:
            yield world


@pytest.fixture(name="three")
async def three_fixture(world: World, nursery: trio.Nursery) -> SmallCluster:
    """Three nodes, the first of which rules."""
    cluster = SmallCluster(nursery, world)
    await cluster.start(1)
    await cluster.until_quiet()
    await cluster.start(2, 3)
    await cluster.until_quiet()
    return cluster


def tell(cluster: SmallCluster, broker_id: int, epoch: int) -> None:
    """As UpdateMetadata of a controller 3 in this epoch does."""
    cluster.members[broker_id].node.cache.apply(controller_id=3, controller_epoch=epoch, brokers=None)


@pytest.mark.parametrize("misled", [1, 2], ids=["the controller's own node", "another node"])
async def test_an_epoch_that_nobody_was_elected_with(three: SmallCluster, misled: int) -> None:
    """A node that was told of one finds the controller again by itself, and the controller has not noticed: it rules in its epoch."""
    controller = three.controller
    tell(three, misled, LARGEST)
    await three.until(lambda: three.seen(misled).controller_epoch == controller.epoch)
    assert three.seen(misled).controller_id == 1
    assert await three.create("t", replication_factor=3) == [0]
    assert three.controller is controller
    assert all("t" in three.seen(broker_id).topics for broker_id in (1, 2, 3))


async def test_an_answer_that_lies(three: SmallCluster) -> None:
    """A node that answers for ever that a newer controller rules is not told, and costs nobody else anything."""
    controller = three.controller
    three.deaf.add(2)
    for number in range(3):
        assert await three.create(f"t{number}", timeout_ms=100) == [
            7
        ]  # completion is cluster-wide here, and one does not acknowledge
    await trio.sleep(CONTRADICTED_SECONDS)
    assert three.controller is controller
    assert {"t0", "t1", "t2"} <= set(three.seen(3).topics)
    three.deaf.clear()
    await three.until(lambda: "t2" in three.seen(2).topics)


async def test_an_election_is_told_as_before(three: SmallCluster) -> None:
    """The successor's epoch, which the store knows, is believed and stays."""
    epoch = three.controller.epoch
    three.controller.resign()
    await three.until_succeeded(epoch)
    await trio.sleep(1.5)
    assert {three.seen(broker_id).controller_epoch for broker_id in (1, 2, 3)} == {three.controller.epoch}


async def test_an_epoch_that_was_set_back(three: SmallCluster, world: World) -> None:
    """Somebody deletes `/controller_epoch`: the next controller begins above the epoch that nodes follow, so that they believe it."""
    for _ in range(3):
        epoch = three.controller.epoch
        three.controller.resign()
        await three.until_succeeded(epoch)
    epoch = three.controller.epoch
    other = await world.open()
    await other.commit([Delete(layout.CONTROLLER_EPOCH)])
    three.controller.resign()
    await three.until_succeeded(epoch)
    assert three.controller.epoch > epoch
    assert await three.create("t", replication_factor=3) == [0]
    assert all("t" in three.seen(broker_id).topics for broker_id in (1, 2, 3))

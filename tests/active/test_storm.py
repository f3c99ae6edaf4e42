"""The whole core under a storm of events: everything that was acknowledged holds, and in the end
all agree.
"""

import pytest
import trio

from tests.active import storm
from tests.store.worlds import MemoryWorld, World, on_zookeeper
from tests.support.small_cluster import SmallCluster

pytestmark = pytest.mark.slow

SEEDS = (0, 4, 9)
"""Those whose storms find the most of the bugs of tests/faults/planted."""


async def weather(cluster: SmallCluster, world: World, seed: int, *, clients: int, turns: int) -> None:
    await cluster.start(*storm.NODES)
    await cluster.until_quiet()
    clients_after = await storm.rage(cluster, seed, clients=clients, turns=turns)
    store = await world.open()
    await storm.settle(cluster, store)
    await storm.check_answers(clients_after, cluster.controller.image, store)


@pytest.mark.parametrize("one_process", [False, True], ids=["wire", "one process"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_cluster_agrees_after_a_storm(
    seed: int, one_process: bool, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """K590-2a: answers contradict neither each other nor the end, epochs only grow, leaders are in
    sync, and store, controller and nodes say the same.
    """
    world = MemoryWorld()
    cluster = SmallCluster(nursery, world, one_process=one_process)
    await weather(cluster, world, seed, clients=4, turns=40)


@on_zookeeper
async def test_a_cluster_on_zookeeper_agrees_after_a_storm(world: World, nursery: trio.Nursery) -> None:
    """All agree after a storm on a real server, too, whose answers take their time and get lost."""
    await weather(SmallCluster(nursery, world), world, 1, clients=3, turns=12)

"""Who is registered may rule, and nobody else; and a node is registered whenever its id is free and its session lives."""

import trio

from minicontroller.controller.cluster.image import Broker, Endpoint
from minicontroller.controller.store import layout, registrations
from minicontroller.controller.store.base import Create, Delete, Store
from tests.cluster.small_cluster import SmallCluster
from tests.store.worlds import MemoryWorld, World, zookeeper_world
from tests.support.zookeeper import ZooKeeperServer


async def take_the_place(other: Store, broker_id: int) -> None:
    """As a second process with the same id, whose registration is there before the first one's session is seen to be over."""
    path = layout.broker_path(broker_id)
    data = registrations.encode_broker(Broker(broker_id, (Endpoint("PLAINTEXT", "elsewhere", 9092),)), 1)
    await other.commit([Delete(path), Create(path, data, ephemeral=True)])


async def a_second_process(world: World, nursery: trio.Nursery) -> None:
    cluster = SmallCluster(nursery, world)
    await cluster.start(1)
    await cluster.until_quiet()
    await cluster.start(2)
    await cluster.until_quiet()
    other = await world.open()
    await take_the_place(other, 1)
    await cluster.until(lambda: [each.node.broker_id for each in cluster.rulers()] == [2])
    await cluster.expire(1)  # what it waits for is told in no session that is over
    await cluster.expire(2)
    await cluster.until(lambda: [each.node.broker_id for each in cluster.rulers()] == [2])
    first = cluster.members[1].node
    assert not first.is_registered
    await other.close()
    await cluster.until_quiet()
    assert first.is_registered


async def test_whoever_is_not_registered_does_not_rule(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Another process has the id: the node resigns, stands no more, and registers as soon as the id is free, whatever became of its session."""
    await a_second_process(memory, nursery)


async def test_whoever_is_not_registered_does_not_rule_on_zookeeper(zookeeper: ZooKeeperServer) -> None:
    """The same on a real server, whose sessions end with their watches."""
    async with zookeeper_world(zookeeper, "/registration") as world, trio.open_nursery() as nursery:
        await a_second_process(world, nursery)
        nursery.cancel_scope.cancel()


async def test_a_registration_that_is_taken_away_is_made_again(
    cluster: SmallCluster, memory: MemoryWorld, autojump_clock: object
) -> None:
    """By hand, or by a tool: the node lives, so it is registered again, the controller as well as another one."""
    other = await memory.open()
    for broker_id in (1, 2):
        before = cluster.members[broker_id].node.broker_epoch
        await other.commit([Delete(layout.broker_path(broker_id))])
        await cluster.until(lambda: cluster.members[broker_id].node.broker_epoch > before)  # noqa: B023
        await cluster.until_quiet()
    assert await cluster.create("t", replication_factor=3) == [0]


async def test_whoever_withdraws_has_left_the_place(cluster: SmallCluster, autojump_clock: object) -> None:
    """Also from the second reign of the same node: when `withdraw` returns, the place is another one's to take."""
    for broker_id in (2, 3):
        await cluster.members[broker_id].candidacy.withdraw()
    epoch = cluster.controller.epoch
    cluster.controller.resign()
    await cluster.until_succeeded(epoch)
    controller = cluster.controller
    await cluster.members[1].candidacy.withdraw()
    assert controller.node.controller is None
    assert await controller.node.store.get(layout.CONTROLLER) is None

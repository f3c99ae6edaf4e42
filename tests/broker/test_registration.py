"""Only a registered node can be the controller, and a node is registered whenever its id is free
and its session lives.
"""

import pytest
import trio

from minicontroller.cluster.entities import Broker, Endpoint
from minicontroller.cluster.errors import ConfigurationError
from minicontroller.cluster.znodes import layout, registrations
from minicontroller.cluster.znodes.registrations import decode_broker, encode_broker
from minicontroller.controller.broker.registration import Registration
from minicontroller.controller.node.cluster_paths import prepare
from minicontroller.store.base import Create, Delete, SetData, Store
from tests.store.worlds import MemoryWorld, World, on_zookeeper
from tests.support.small_cluster import SmallCluster

PATIENCE_SECONDS = 90.0


async def knows(_store: Store) -> None:
    """A node without configs."""


async def take_the_place(other: Store, broker_id: int, *, host: str = "elsewhere", there: bool = True) -> None:
    """As a second process with the same id, whose registration is there before the first one's
    session is seen to be over.
    """
    path = layout.broker_path(broker_id)
    data = registrations.encode_broker(Broker(broker_id, (Endpoint("PLAINTEXT", host, 9092),)), 1)
    await other.commit([*([Delete(path)] if there else []), Create(path, data, ephemeral=True)])


async def a_second_process(world: World, nursery: trio.Nursery) -> None:
    cluster = SmallCluster(nursery, world)
    await cluster.start_in_turn(1, 2)
    other = await world.open()
    await take_the_place(other, 1)
    await cluster.until(lambda: [each.broker_id for each in cluster.rulers()] == [2])
    await cluster.expire(1)  # what it waits for is told in no session that is over
    await cluster.expire(2)
    await cluster.until(lambda: [each.broker_id for each in cluster.rulers()] == [2])
    first = cluster.members[1].node
    assert not first.epoch.is_registered
    await other.close()
    await cluster.until_quiet()
    assert first.epoch.is_registered


async def test_whoever_is_not_registered_does_not_rule(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """When another process registers the id, the node resigns, does not stand for election, and
    registers again as soon as the id is free.
    """
    await a_second_process(memory, nursery)


@on_zookeeper
async def test_whoever_is_not_registered_does_not_rule_on_zookeeper(world: World, nursery: trio.Nursery) -> None:
    """On a real ZooKeeper, too, a node that is not registered is not the controller."""
    await a_second_process(world, nursery)


async def test_a_registration_that_is_taken_away_is_made_again(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A node that lives, the controller or another, registers again after its registration was
    removed by hand or by a tool.
    """
    for broker_id in (1, 2):
        before = cluster.members[broker_id].node.broker_epoch
        await other.commit([Delete(layout.broker_path(broker_id))])
        await cluster.until(lambda: cluster.members[broker_id].node.broker_epoch > before)  # noqa: B023
        await cluster.until_quiet()
    assert await cluster.create("t", replication_factor=3) == [0]


async def test_a_node_knows_the_configs_before_it_is_registered(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """K4-6a: a node reads the present configs before each registration, because no change waits for
    an unregistered node.
    """
    store, done = await memory.open(), list[str]()

    async def load_configs(_store: Store) -> None:
        done.append("configs are read")

    broker = Broker(1, (Endpoint("PLAINTEXT", "host-1", 9092),))
    await prepare(store)
    await nursery.start(Registration(store, broker, lambda _: done.append("registered"), load_configs).run)
    assert done == ["configs are read", "registered"]
    await memory.expire(store)
    await trio.sleep(10)
    assert done == ["configs are read", "registered"] * 2


async def test_other_endpoints_take_the_place_of_the_registered_ones(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker epoch stays, in the same session and in the next one, and nobody is blamed."""
    store = await memory.open()
    await prepare(store)
    first, second = (Broker(1, (Endpoint("PLAINTEXT", host, 9092),)) for host in ("host-1", "host-2"))
    registration = Registration(store, first, lambda _: None, knows)
    await nursery.start(registration.run)
    before = await store.get(layout.broker_path(1))
    registration.readvertise(second)
    await trio.sleep(1)
    after = await store.get(layout.broker_path(1))
    assert before is not None and after is not None and before.stat.czxid == after.stat.czxid
    assert decode_broker(1, after.data, 0).endpoints == second.endpoints == registration.broker.endpoints
    registration.readvertise(second)
    await trio.sleep(1)
    same = await store.get(layout.broker_path(1))
    assert same is not None and same.stat.version == after.stat.version
    await memory.expire(store)
    await trio.sleep(10)
    anew = await store.get(layout.broker_path(1))
    assert anew is not None and decode_broker(1, anew.data, 0).endpoints == second.endpoints
    assert not [each for each in caplog.messages if "writes its registration again" in each]


async def test_whoever_withdraws_has_left_the_place(cluster: SmallCluster, autojump_clock: object) -> None:
    """When `withdraw` returns, also in a node's second term, another node can be elected."""
    for broker_id in (2, 3):
        await cluster.members[broker_id].election.withdraw()
    await cluster.elect_anew()
    controller = cluster.controller
    await cluster.members[1].election.withdraw()
    assert controller not in cluster.rulers()
    assert await controller.store.get(layout.CONTROLLER) is None


# ------------------------------------------------------------------ one address for each


class Starting:
    """Registrations of nodes that start, and their results."""

    def __init__(self, world: World, nursery: trio.Nursery, patience_seconds: float) -> None:
        self.registered: list[int] = []
        self.refused: dict[int, str] = {}
        self.stores: dict[int, Store] = {}
        self._world = world
        self._nursery = nursery
        self._patience = patience_seconds
        self._news = trio.lowlevel.ParkingLot()

    async def start(self, broker_id: int, *hosts: str) -> None:
        self.stores[broker_id] = await self._world.open()
        await self.stores[broker_id].ensure(layout.BROKER_IDS)
        broker = Broker(broker_id, tuple(Endpoint(f"L{number}", host, 9092) for number, host in enumerate(hosts)))
        self._nursery.start_soon(self._run, broker, self.stores[broker_id])

    async def _run(self, broker: Broker, store: Store) -> None:
        def registered(_epoch: int) -> None:
            self.registered.append(broker.broker_id)
            self._news.unpark_all()

        try:
            await Registration(store, broker, registered, knows, takeover_seconds=self._patience).run()
        except ConfigurationError as error:
            self.refused[broker.broker_id] = str(error)
            self._news.unpark_all()
            await store.close()

    async def until(self, outcomes: int) -> None:
        with trio.fail_after(PATIENCE_SECONDS):
            while len(self.registered) + len(self.refused) < outcomes:
                await self._news.park()


async def one_of_two(world: World, nursery: trio.Nursery, patience_seconds: float) -> None:
    nodes = Starting(world, nursery, patience_seconds)
    await nodes.start(1, "a", "same")
    await nodes.start(2, "Same", "b")
    await nodes.start(3, "c")
    await nodes.until(3)
    (refused,) = nodes.refused
    (stays,) = {1, 2} - {refused}
    assert sorted(nodes.registered) == sorted((stays, 3))
    assert (
        f"Broker {stays}, which lives, is registered with an address of this node, same:9092:" in nodes.refused[refused]
    )
    assert sorted(await nodes.stores[3].children(layout.BROKER_IDS)) == sorted((str(stays), "3"))


async def test_two_brokers_have_no_address_in_common(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Of two brokers that start at once with one address, one is registered; the other ends with an
    error that names it.
    """
    await one_of_two(memory, nursery, 20.0)


@on_zookeeper
async def test_two_brokers_have_no_address_in_common_on_zookeeper(world: World, nursery: trio.Nursery) -> None:
    """One of two brokers with one address is registered on a real server, too."""
    await one_of_two(world, nursery, 0.5)


async def test_an_address_that_becomes_free_is_taken(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A broker that died, and whose session lives on for a while, is waited for."""
    nodes = Starting(memory, nursery, 20.0)
    dead = await memory.open()
    await dead.ensure(layout.BROKER_IDS)
    data = registrations.encode_broker(Broker(4, (Endpoint("PLAINTEXT", "same", 9092),)), 1)
    await dead.commit([Create(layout.broker_path(4), data, ephemeral=True)])
    await nodes.start(1, "same")
    await trio.sleep(10)
    assert not nodes.registered
    await dead.close()
    await nodes.until(1)
    assert nodes.registered == [1]


async def test_a_node_that_runs_is_not_disturbed(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A broker that registers with a running node's address does not end that node, even if its
    session is lost.
    """
    nodes = Starting(memory, nursery, 20.0)
    await nodes.start(1, "same")
    await nodes.until(1)
    other = await memory.open()
    await take_the_place(other, 2, host="same", there=False)
    await memory.expire(nodes.stores[1])
    await nodes.until(2)
    assert nodes.registered == [1, 1]


async def test_a_store_that_was_away_counts_anew(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """After an election among ZooKeeper's servers, however long it took, a node waits a full
    session timeout again for its old session to end.
    """
    nodes = Starting(memory, nursery, 20.0)
    dead = await memory.open()
    await dead.ensure(layout.BROKER_IDS)
    await dead.commit([Create(layout.broker_path(1), b"{}", ephemeral=True)])
    await nodes.start(1, "a")
    for away_seconds in (0, 30, 0):
        await trio.sleep(15)
        await memory.suspend(nodes.stores[1])
        await trio.sleep(away_seconds)
        await memory.resume(nodes.stores[1])
    await trio.sleep(15)
    assert not nodes.refused
    await dead.close()
    await nodes.until(1)
    assert nodes.registered == [1]


async def test_a_registration_that_others_damage_is_written_again(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """The node writes its entry again in the same session; the controller never takes a broker for
    gone whose entry cannot be read, and sees what it says when it can.
    """
    cluster = SmallCluster(nursery, memory)
    await cluster.start_in_turn(1, 2)
    other, path = await memory.open(), layout.broker_path(2)
    before = await other.get(path)
    assert before is not None
    epoch = cluster.members[2].node.broker_epoch
    for data in (b"?", b"", b"{}", None):
        await other.commit([SetData(path, data)])
        await trio.sleep(1)
        after = await other.get(path)
        assert after is not None and decode_broker(2, after.data, epoch) == decode_broker(2, before.data, epoch)
        await cluster.until_quiet()
        assert cluster.members[2].node.broker_epoch == epoch
    moved = encode_broker(Broker(77, (Endpoint("PLAINTEXT", "elsewhere", 1),)), 1)
    await other.commit([Create(layout.broker_path(77), moved.replace(b"elsewhere", b"somewhere"))])
    await cluster.until(lambda: 77 in cluster.seen(2).brokers)
    await other.commit([SetData(layout.broker_path(77), moved)])
    await cluster.until(lambda: cluster.seen(2).brokers[77].endpoints[0].host == "elsewhere")

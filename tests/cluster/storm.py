"""A seeded storm over a small cluster: clients ask, nodes die and return, sessions end, connections break, controllers resign.

Each client has topics of his own, so he knows what must be true of them: what was acknowledged holds, whatever happened around it.
"""

from collections.abc import Mapping
from random import Random

import trio

from minicontroller.controller.cluster.image import Image, Topic
from minicontroller.controller.cluster.loading import load_brokers, load_topics
from minicontroller.controller.store import layout
from minicontroller.controller.store.base import Store
from minicontroller.protocol.error_codes import ErrorCode
from tests.cluster.small_cluster import SmallCluster, told

NODES = (1, 2, 3)
TOPICS_OF_A_CLIENT = 4
DOUBTFUL = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR}
"""Whoever gets one of these cannot know what became of his wish."""

TOO_FEW_NODES = {ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_REPLICA_ASSIGNMENT}


class Client:
    """One who administers his own topics, and remembers what he was promised."""

    def __init__(self, cluster: SmallCluster, random: Random, number: int) -> None:
        self.cluster = cluster
        self.random = random
        self.names = [f"client-{number}-{index}" for index in range(TOPICS_OF_A_CLIENT)]
        self.promised: dict[str, int | None] = dict.fromkeys(self.names, 0)
        """Partitions by topic, 0 for no topic; None while nobody knows."""

    async def act(self) -> None:
        name = self.random.choice(self.names)
        if not self.cluster.rulers():
            await trio.sleep(0.02)
            return
        match self.random.choice(("create", "create", "delete", "grow")):
            case "create":
                await self._create(name)
            case "delete":
                await self._delete(name)
            case "grow":
                await self._grow(name)

    async def _create(self, name: str) -> None:
        count, factor = self.random.randint(1, 4), self.random.randint(1, 3)
        (code,) = await self.cluster.create(name, partitions=count, replication_factor=factor, timeout_ms=500)
        before = self.promised[name]
        if code == ErrorCode.NONE:
            assert not before, f"{name} was there and is created"
            self.promised[name] = count
        elif code == ErrorCode.TOPIC_ALREADY_EXISTS:
            pass  # there, or still on its way out
        elif code in DOUBTFUL:
            self.promised[name] = before or None
        else:
            assert code in TOO_FEW_NODES, code

    async def _delete(self, name: str) -> None:
        (code,) = await self.cluster.delete(name, timeout_ms=500)
        before = self.promised[name]
        if code in DOUBTFUL:
            self.promised[name] = None if before != 0 else 0
            return
        assert code in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, code
        assert code == ErrorCode.NONE or not before, f"{name} was promised and is unknown"
        self.promised[name] = 0

    async def _grow(self, name: str) -> None:
        before = self.promised[name]
        if not before:
            return
        code = await self.cluster.grow(name, before + 1)
        if code == ErrorCode.NONE:
            self.promised[name] = before + 1
        elif code in DOUBTFUL:
            self.promised[name] = None
        else:
            assert code in TOO_FEW_NODES, code


class Weather:
    """What happens to nodes and sessions."""

    def __init__(self, cluster: SmallCluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random

    async def turn(self) -> None:
        cluster, members = self.cluster, self.cluster.members
        dead = [broker_id for broker_id in NODES if broker_id not in members]
        if dead and self.random.random() < 0.6:
            await cluster.start(self.random.choice(dead))
            return
        victim = self.random.choice(sorted(members))
        match self.random.choice(("kill", "expire", "resign", "break", "leave", "calm", "calm")):
            case "kill" if len(members) > 1:
                await cluster.kill(victim)
            case "leave" if len(members) > 1 and cluster.rulers():
                await cluster.shut_down(victim)
                await cluster.kill(victim)
            case "expire":
                await cluster.expire(victim)
            case "resign":
                for controller in cluster.rulers():
                    controller.resign()
            case "break":
                store = members[victim].store
                await cluster.world.suspend(store)
                await trio.sleep(self.random.random() * 0.05)
                await cluster.world.resume(store)
            case _:
                await trio.sleep(self.random.random() * 0.1)


async def rage(cluster: SmallCluster, seed: int, *, clients: int, turns: int) -> list[Client]:
    """The storm itself; returns the clients with what they were promised."""
    random = Random(seed)
    watch_epochs(cluster)
    administrators = [Client(cluster, Random(f"{seed}-{number}"), number) for number in range(clients)]
    over = trio.Event()

    async def administer(client: Client) -> None:
        while not over.is_set():
            await client.act()
            await trio.sleep(client.random.random() * 0.01)

    async with trio.open_nursery() as nursery:
        for client in administrators:
            nursery.start_soon(administer, client)
        weather = Weather(cluster, random)
        for _ in range(turns):
            await weather.turn()
            await trio.sleep(random.random() * 0.1)
        over.set()
    return administrators


def watch_epochs(cluster: SmallCluster) -> None:
    """On no node does an epoch of a partition ever fall, as long as the topic is the same and the node has heard of no other one."""

    def look(before: Image, _after: Image, changed: object) -> None:
        assert isinstance(changed, list | tuple)
        for topic in changed:
            old = before.topics.get(topic.name)
            if old is None or old.topic_id != topic.topic_id:
                continue
            for known, now in zip(old.partitions, topic.partitions, strict=False):
                assert now.leader_epoch >= known.leader_epoch, (topic.name, known, now)
                assert now.partition_epoch >= known.partition_epoch, (topic.name, known, now)

    cluster.on_metadata(look)


async def settle(cluster: SmallCluster, store: Store) -> None:
    """Everyone lives again and has heard of everything. Then the store, the controller and every node say the same."""
    for broker_id in NODES:
        if broker_id not in cluster.members:
            await cluster.start(broker_id)
    await cluster.until_quiet()
    differences: Mapping[str, object] = {"not looked": True}
    with trio.move_on_after(20):
        while differences := await disagreements(cluster, store):  # noqa: ASYNC110 - nobody tells when all agree
            await trio.sleep(0.05)
    assert not differences


async def disagreements(cluster: SmallCluster, store: Store) -> dict[str, object]:
    """What somebody knows that somebody else does not."""
    rulers = cluster.rulers()
    if len(rulers) != 1:
        return {"rulers": len(rulers)}
    image = rulers[0].image
    marked = await store.children(layout.DELETE_TOPICS)
    stored = {
        topic.name: topic for topic in await load_topics(store, await store.children(layout.TOPICS), frozenset(marked))
    }
    brokers = {broker.broker_id: broker for broker in await load_brokers(store)}
    found: dict[str, object] = {}
    if marked:
        found["marked"] = marked
    if dict(image.topics.items()) != stored:
        found["store"] = differing(dict(image.topics.items()), stored)
    if {broker_id: broker.epoch for broker_id, broker in image.brokers.items()} != {
        broker_id: broker.epoch for broker_id, broker in brokers.items()
    }:
        found["brokers"] = brokers
    expected = {name: told(topic.as_told(image.live_ids())) for name, topic in image.topics.items()}
    for broker_id in cluster.members:
        seen = {name: told(topic) for name, topic in cluster.seen(broker_id).topics.items()}
        if seen != expected:
            found[f"node {broker_id}"] = differing(seen, expected)
    unsound = [topic for topic in stored.values() if not is_sound(topic)]
    if unsound:
        found["unsound"] = unsound
    return found


def differing(some: Mapping[str, object], others: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    return {name: (some.get(name), others.get(name)) for name in {*some, *others} if some.get(name) != others.get(name)}


def is_sound(topic: Topic) -> bool:
    """Led by a replica in sync, and all of them are, because all nodes live."""
    return all(
        partition.leader in partition.isr and set(partition.isr) == set(partition.replicas)
        for partition in topic.partitions
    )


def check_promises(clients: list[Client], image: Image) -> None:
    for client in clients:
        for name, count in client.promised.items():
            topic = image.topics.get(name)
            if count is not None:
                assert (0 if topic is None else len(topic.partitions)) == count, name

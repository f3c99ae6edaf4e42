"""Random faults, from a seed, on a small cluster: clients send requests, nodes die and return,
sessions end, connections break, controllers resign. Each client has topics of its own, so its
answers must agree with each other and with the final state.
"""

from collections.abc import Mapping
from random import Random

import trio
from immutables import Map

from minicontroller.cluster.cache import ImageChanges
from minicontroller.cluster.entities import Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import layout
from minicontroller.controller.active.loading import load_brokers, load_topics
from minicontroller.store.base import SessionState, Store
from minicontroller.store.memory import MemoryStore
from tests.active.possible_topic import Form, PossibleTopic, Wish
from tests.store.worlds import reaches
from tests.support.small_cluster import SmallCluster, told

NODES = (1, 2, 3)
TOPICS_OF_A_CLIENT = 4
KEYS = ("retention.ms", "segment.ms", "flush.messages")
LOSS_SECONDS = 0.2
"""How long is waited for a commit to lose."""


class Client:
    """A client that alone administers its topics, and knows from the answers what each may look
    like.
    """

    def __init__(self, cluster: SmallCluster, random: Random, number: int) -> None:
        self.cluster = cluster
        self.random = random
        self.topics = {f"client-{number}-{index}": PossibleTopic() for index in range(TOPICS_OF_A_CLIENT)}

    async def act(self) -> None:
        if not self.cluster.rulers():
            await trio.sleep(0.02)
            return
        name, topic = self.random.choice(list(self.topics.items()))
        act = self.random.choice((self._create, self._create, self._delete, self._grow, self._replace, self._change))
        code, wish = await act(name, topic)
        topic.answered(code, wish)

    async def _create(self, name: str, topic: PossibleTopic) -> tuple[int, Wish]:
        count, factor = self.random.randint(1, 4), self.random.randint(1, 3)
        wish = topic.creation(count)
        (code,) = await self.cluster.create(name, partitions=count, replication_factor=factor, timeout_ms=500)
        return code, wish

    async def _delete(self, name: str, topic: PossibleTopic) -> tuple[int, Wish]:
        wish = topic.deletion()
        (code,) = await self.cluster.delete(name, timeout_ms=500)
        return code, wish

    async def _grow(self, name: str, topic: PossibleTopic) -> tuple[int, Wish]:
        count = self.random.randint(2, 6)
        return await self.cluster.grow(name, count), topic.growth(count)

    async def _replace(self, name: str, topic: PossibleTopic) -> tuple[int, Wish]:
        configs = Map({key: self._value() for key in KEYS if self.random.random() < 0.6})
        return await self.cluster.replace_configs(name, configs), topic.configuration(lambda _before: configs)

    async def _change(self, name: str, topic: PossibleTopic) -> tuple[int, Wish]:
        key, value = self.random.choice(KEYS), self._value()
        if self.random.random() < 0.3:
            wish = topic.configuration(lambda before: before.delete(key) if key in before else before)
            return await self.cluster.change_config(name, key, None), wish
        return await self.cluster.change_config(name, key, value), topic.configuration(lambda it: it.set(key, value))

    def _value(self) -> str:
        return str(self.random.randint(1, 10**6))


class Weather:
    """Random faults of nodes and sessions."""

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
        match self.random.choice(("kill", "expire", "resign", "break", "lose", "leave", "calm", "calm")):
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
            case "lose":
                await self._lose_a_commit()
            case _:
                await trio.sleep(self.random.random() * 0.1)

    async def _lose_a_commit(self) -> None:
        """Break the connection of who rules on a commit, which has taken effect or has not."""
        rulers = [each.store for each in self.cluster.members.values() if each.node.controller is not None]
        for store in rulers:
            if isinstance(store, MemoryStore):  # a connection that is cut loses some by itself
                self.random.choice((store.tree.lose_request, store.tree.lose_reply))(store)
                with trio.move_on_after(LOSS_SECONDS):
                    await reaches(store, SessionState.SUSPENDED)
                store.request_is_lost = store.reply_is_lost = False
                await self.cluster.world.resume(store)


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
    """On no node does the epoch of a partition decrease while the topic stays the same and the node
    has learned of no other topic of that name.
    """

    def look(before: Image, _after: Image, changes: ImageChanges) -> None:
        for topic in changes.topics:
            old = before.topics.get(topic.name)
            if old is None or old.topic_id != topic.topic_id:
                continue
            for known, now in zip(old.partitions, topic.partitions, strict=False):
                assert now.leader_epoch >= known.leader_epoch, (topic.name, known, now)
                assert now.partition_epoch >= known.partition_epoch, (topic.name, known, now)

    cluster.on_metadata(look)


async def settle(cluster: SmallCluster, store: Store) -> None:
    """Restart every node and wait until all updates have arrived; then the store, the controller
    and every node agree.
    """
    for broker_id in NODES:
        if broker_id not in cluster.members:
            await cluster.start(broker_id)
    await cluster.until_quiet()
    differences: Mapping[str, object] = {"not looked": True}
    with trio.move_on_after(20):
        while differences := await disagreements(cluster, store):  # noqa: ASYNC110 - nobody tells when all agree
            await trio.sleep(0.05)
    assert not differences, differences


async def disagreements(cluster: SmallCluster, store: Store) -> dict[str, object]:
    """Return each difference between what two parts of the cluster know."""
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
    expected = {name: told(topic.for_nodes(image.live_ids())) for name, topic in image.topics.items()}
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


async def check_answers(clients: list[Client], image: Image, store: Store) -> None:
    """Every topic has a form that the answers allow, and no topic or config is left without an
    owner.
    """
    topics = {name: topic for client in clients for name, topic in client.topics.items()}
    for name, topic in topics.items():
        now = image.topics.get(name)
        form = None if now is None else Form(len(now.partitions), Map(now.configs))
        assert form in topic.forms, (name, form, topic.forms)
    assert set(image.topics) <= set(topics)
    assert set(await store.children("/config/topics")) == set(image.topics)

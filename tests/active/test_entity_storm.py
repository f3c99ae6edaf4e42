"""ACLs, users and tokens under a storm of events: what was answered is in force at every registered
node at once, and in the end the store, the controller and all nodes say the same.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

import msgspec
import pytest
import trio

from minicontroller.admin.changes import Change
from minicontroller.admin.spec import Changes
from minicontroller.cluster.entities import TokenInformation
from minicontroller.cluster.entity_paths import CONFIGS, Entity, differences
from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import acls, tokens
from minicontroller.controller.active.entity_reading import load_entities
from minicontroller.controller.handlers.entity_changes import change_entities
from minicontroller.protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.store.base import Create, NodeExists, SetData, Store, StoreError
from tests.active.storm import NODES, Weather
from tests.store.worlds import MemoryWorld, World, on_zookeeper
from tests.support.small_cluster import Member, SmallCluster, context_for

pytestmark = pytest.mark.slow

SEEDS = range(3)
RATE = "producer_byte_rate"
REMOVED_EVERY = 4
NOTHING = Image()
FOREIGN = ResourcePattern(AclResourceType.GROUP, "foreign")


def entries(number: int) -> frozenset[AccessControlEntry]:
    return frozenset({AccessControlEntry("User:a", str(number), AclOperation.READ, PermissionType.ALLOW)})


class Administrator:
    """Changes four entities that are its own: ACLs, a user, a client of it, and a token. Each
    change has a number; some remove the entities.
    """

    def __init__(self, cluster: SmallCluster, random: Random, name: str) -> None:
        self.cluster, self.random, self.name = cluster, random, name
        self.number = 0
        """The newest change that was tried."""
        self.done = 0
        """The newest that was answered with success."""

    @property
    def values(self) -> dict[str, Any]:
        """What each of its entities is to say, by path."""
        number, pattern = self.number, ResourcePattern(AclResourceType.TOPIC, self.name, PatternType.PREFIXED)
        token = TokenInformation(self.name, "User:a", "User:a", (), 1, number, 9)
        values: dict[str, Any] = {
            acls.acl_path(pattern): entries(number),
            f"{CONFIGS}users/{self.name}": {RATE: str(number)},
            f"{CONFIGS}users/{self.name}/clients/c": {RATE: str(number)},
            tokens.token_path(self.name): token,
        }
        if number % REMOVED_EVERY == 0:
            values = {path: {} if path.startswith(CONFIGS) else None for path in values}
            values[acls.acl_path(pattern)] = frozenset()
        return values

    async def act(self) -> None:
        if not self.cluster.rulers():
            await trio.sleep(0.02)
            return
        self.number += 1
        node, values = self.cluster.controller_node, self.values
        context = context_for(node, ApiKey.CREATE_TOPICS, 7)
        asked = [Change(path, "acl") for path in values]
        context.spec = msgspec.structs.replace(context.spec, changes=Changes("create_acls", lambda _request: asked))
        try:
            changes = await change_entities(
                node.port,
                context,
                None,
                asked,
                change_of=lambda change: change,
                plan=lambda _image, change: (change.resource, values[change.resource]),
            )
        except Refusal:
            return
        if any(each.refusal is not None for each in changes):
            return
        self.done = self.number
        for member in self.cluster.members.values():
            if self._is_live(member):
                self.check(member, "when it was answered")

    def _is_live(self, member: Member) -> bool:
        """Whether the controllers count on this node."""
        rulers = self.cluster.rulers()
        known = [each.image.brokers.get(member.broker_id) for each in rulers]
        return bool(rulers) and all(broker is not None and broker.epoch == member.node.broker_epoch for broker in known)

    def check(self, member: Member, when: str) -> None:
        """Each entity is in a state from the newest answered one to the newest that was tried."""
        image = member.node.cache.image
        pattern = ResourcePattern(AclResourceType.TOPIC, self.name, PatternType.PREFIXED)
        found, user = image.acls.get(pattern), image.configs.get(f"users/{self.name}")
        client, token = image.configs.get(f"users/{self.name}/clients/c"), image.tokens.get(self.name)
        numbers = [
            None if found is None else int(next(iter(found.entries)).host),
            None if user is None or RATE not in user.configs else int(user.configs[RATE]),
            None if client is None else int(client.configs[RATE]),
            None if token is None else token.expires_ms,
        ]
        possible = {None if number % REMOVED_EVERY == 0 else number for number in range(self.done, self.number + 1)}
        assert possible.issuperset(numbers), (when, member.broker_id, self.name, numbers, self.done, self.number)


async def write_as_another(store: Store, over: trio.Event) -> None:
    """Another program, which writes ACLs and says so afterwards, as Kafka's tools do."""
    prefix, notice = acls.encode_acl_change(FOREIGN)
    for number in range(10**6):
        if over.is_set():
            return
        path, data = acls.acl_path(FOREIGN), acls.encode_acls(entries(number))
        for operation in (Create(path, data), SetData(path, data), Create(prefix, notice, sequential=True)):
            try:
                await store.commit([operation])
            except NodeExists:
                continue
            except StoreError:
                return
            await trio.sleep(0.003)


def disagreements(cluster: SmallCluster, stored: Mapping[str, Entity | None]) -> dict[str, object]:
    rulers = cluster.rulers()
    if len(rulers) != 1:
        return {"rulers": len(rulers)}
    wanted = {path: entity for path, entity in stored.items() if entity is not None}
    images = {"controller": rulers[0].image}
    images |= {f"node {broker_id}": member.node.cache.image for broker_id, member in cluster.members.items()}
    views = {name: differences(NOTHING, image) for name, image in images.items()}
    return {name: (view, wanted) for name, view in views.items() if view != wanted}


async def weather(cluster: SmallCluster, world: World, seed: int, *, turns: int) -> None:
    await cluster.start(*NODES)
    await cluster.until_quiet()
    administrators = [Administrator(cluster, Random(f"{seed}-{name}"), name) for name in ("x", "y", "z")]
    store, over = await world.open(), trio.Event()

    async def administer(administrator: Administrator) -> None:
        while not over.is_set():
            await administrator.act()
            await trio.sleep(administrator.random.random() * 0.01)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_as_another, store, over)
        for administrator in administrators:
            nursery.start_soon(administer, administrator)
        random = Random(seed)
        troubles = Weather(cluster, random)
        for _ in range(turns):
            await troubles.turn()
            await trio.sleep(random.random() * 0.1)
        over.set()
    for broker_id in NODES:
        if broker_id not in cluster.members:
            await cluster.start(broker_id)
    await cluster.until_quiet()
    differences: Mapping[str, object] = {"not looked": True}
    with trio.move_on_after(20):
        while differences := disagreements(cluster, await load_entities(store)):  # noqa: ASYNC110 - nobody tells
            await trio.sleep(0.05)
    assert not differences, differences
    for administrator in administrators:
        assert administrator.done
        for member in cluster.members.values():
            administrator.check(member, "in the end")


@pytest.mark.parametrize("one_process", [False, True], ids=["wire", "one process"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_entities_agree_after_a_storm(
    seed: int, one_process: bool, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """While nodes die, start and lose their sessions, and controllers resign, no node that counts
    as live has older ACLs, users or tokens than were answered.
    """
    world = MemoryWorld()
    await weather(SmallCluster(nursery, world, one_process=one_process), world, seed, turns=40)


@on_zookeeper
async def test_entities_agree_after_a_storm_on_zookeeper(world: World, nursery: trio.Nursery) -> None:
    """So it is on a real server, whose answers take their time and get lost."""
    await weather(SmallCluster(nursery, world), world, 1, turns=15)

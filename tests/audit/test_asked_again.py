"""Every recorded decision can be asked again: the policy, in Python and in rule files, is shown
what it was shown then, and says what it said.

Over lives made by chance, with controllers that go, connections that break, and others who write
meanwhile.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import trio
import trio.testing

from minicontroller.admin.policy.runner import PolicyRunner
from minicontroller.audit.event import Decision, Effect
from minicontroller.audit.replay import Replay
from minicontroller.cluster.entities import Partition, Topic
from minicontroller.cluster.errors import Refusal
from minicontroller.cluster.random_ids import new_id
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.cluster.znodes.topics import encode_topic
from minicontroller.controller.active import jobs
from minicontroller.policies import (
    AlterBrokerConfigsRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteTopicRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from minicontroller.policies.interface import JudgedRequest
from minicontroller.policies.judging import PolicyJudge, PolicyReply
from minicontroller.policies.states import VersionedCluster
from minicontroller.policies.verdict import Verdict
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from minicontroller.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from minicontroller.protocol.messages.create_topics import CreateTopicsRequest
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.store.base import Create, NodeExists, SessionState, Store
from minicontroller.store.memory import MemoryStore
from tests.audit.logs import decisions_in, events_in, found
from tests.handlers.altering import BROKER, TOPIC
from tests.handlers.ruling import wanted
from tests.policies.in_place import InPlace
from tests.rules.reading import rules
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster, answer_of, context_for

NAMES = ["a.orders", "a.users", "b.orders", "b.users", "c"]
ROUNDS = 12
AT_ONCE = 5
PATIENCE_MS = 3_000

RULES = rules("""
[[quota]]
owned = "a.*"
max_topics = 1
max_partitions = 9

[[quota]]
owned = "*.users"
action = "warn"
max_partitions = 2

[[deletion_age]]
action = "audit"
min = "1s"

[[config_bounds]]
configs = { "retention.ms" = { max = 3, absent = "allow" } }

[[rule]]
name = "crowded"
operations = ["create", "alter"]
action = "warn"
condition = 'cluster.topic_count < 3'

[[rule]]
name = "shrinks"
operations = ["alter"]
action = "audit"
condition = 'size(before.configs) <= size(after.configs)'

[[rule]]
name = "validates"
operations = ["create", "alter"]
action = "audit"
condition = '!request.validate_only'
""")


def digest(request: JudgedRequest, cluster: ClusterState) -> str:
    """Return a digest of everything that a policy can see."""
    names = cluster.topics(include_internal=True, include_marked_for_deletion=True)
    seen = [
        type(request).__name__,
        plain(request),
        sorted(names),
        sorted(cluster.topics()),
        [plain(cluster.topic_state(name)) for name in sorted(names)],
        cluster.cluster_size,
    ]
    return sha256(msgspec.json.encode(seen)).hexdigest()


def plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {field: plain(getattr(value, field)) for field in value.__struct_fields__}
    return dict(value) if isinstance(value, Mapping) else value


class Looking(TopicManagementPolicy):
    """Looks at everything, keeps what it saw, and refuses by chance: by what it saw, and by nothing
    else.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)

    def validate_alter_broker_configs(self, request: AlterBrokerConfigsRequest, cluster: ClusterState) -> None:
        self._look(request, cluster)

    def _look(self, request: JudgedRequest, cluster: ClusterState) -> None:
        self.seen.append(seen := digest(request, cluster))
        if seen[0] in "01":
            raise PolicyViolation(f"I saw {seen}.")


class World:
    """A small cluster with one policy, and who asks it for changes."""

    def __init__(self, folder: Path, nursery: trio.Nursery, random: Random, policy: InPlace) -> None:
        self.memory = MemoryWorld()
        self.cluster = SmallCluster(nursery, self.memory, settings={"audit.dir": str(folder)})
        self.random = random
        self.policy = policy
        self.others: Store | None = None

    async def start(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            await self.cluster.start(broker_id)
            node = self.cluster.members[broker_id].node
            node.port.policy = PolicyRunner(self.policy, rules=RULES)
        await self.cluster.until_quiet()

    async def end(self) -> None:
        """All that was decided is in the files."""
        for member in list(self.cluster.members.values()):
            assert member.node.audit is not None
            await member.node.audit.close()

    @property
    def store(self) -> MemoryStore:
        """The controller's."""
        store = self.cluster.controller.store
        assert isinstance(store, MemoryStore)
        return store

    # ------------------------------------------------------------------ what is asked for

    async def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        await self.cluster.until(lambda: bool(self.cluster.rulers()))
        node = self.cluster.controller_node
        try:
            return await answer_of(node, context_for(node, key, version), request)
        except Refusal as refusal:
            return refusal.code

    async def create(self, *names: str, partitions: int = 1, validate_only: bool = False) -> Any:
        topics = [wanted(name, partitions, self.random.randint(1, 2)) for name in names]
        request = CreateTopicsRequest(topics=topics, timeout_ms=PATIENCE_MS, validate_only=validate_only)
        return await self.ask(ApiKey.CREATE_TOPICS, 7, request)

    async def delete(self, *names: str) -> Any:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=PATIENCE_MS)
        return await self.ask(ApiKey.DELETE_TOPICS, 5, request)

    async def grow(self, *names: str, count: int, validate_only: bool = False) -> Any:
        topics = [CreatePartitionsTopic(name=name, count=count) for name in names]
        request = CreatePartitionsRequest(topics=topics, timeout_ms=PATIENCE_MS, validate_only=validate_only)
        return await self.ask(ApiKey.CREATE_PARTITIONS, 3, request)

    async def alter(self, *names: str, value: int, validate_only: bool = False) -> Any:
        configs = [AlterableConfig(name="retention.ms", value=str(value))] if value else []
        resources = [AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=configs) for name in names]
        request = AlterConfigsRequest(resources=resources, validate_only=validate_only)
        return await self.ask(ApiKey.ALTER_CONFIGS, 2, request)

    async def configure(self, *, value: int, validate_only: bool = False) -> Any:
        """A broker, or the default of all."""
        configs = [AlterableConfig(name="log.retention.ms", value=str(1000 * value))] if value else []
        name = self.random.choice(["", "1", "02"])
        resources = [AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=configs)]
        request = AlterConfigsRequest(resources=resources, validate_only=validate_only)
        return await self.ask(ApiKey.ALTER_CONFIGS, 2, request)

    async def act(self) -> None:
        """Something that makes sense, or does not."""
        names = self.random.sample(NAMES, self.random.choice([1, 1, 2, 4]))
        count, validates = self.random.randint(1, 4), self.random.random() < 0.3
        match self.random.choice(["create", "create", "create", "delete", "grow", "alter", "configure"]):
            case "create":
                await self.create(*names, partitions=count, validate_only=validates)
            case "delete":
                await self.delete(*names)
            case "grow":
                await self.grow(*names, count=count, validate_only=validates)
            case "configure":
                await self.configure(value=self.random.randint(0, 5), validate_only=validates)
            case _:
                await self.alter(*names, value=self.random.randint(0, 5), validate_only=validates)

    # ------------------------------------------------------------------ what goes wrong

    async def occupy(self, name: str) -> None:
        """Create the topic in ZooKeeper as another program would."""
        topic = Topic(name, new_id(), (Partition(replicas=(1,)),))
        if self.others is None:
            self.others = await self.memory.open()
        with suppress(NodeExists):
            await self.others.commit(
                [
                    Create(layout.topic_config_path(name), encode_config({})),
                    Create(layout.topic_path(name), encode_topic(topic)),
                    Create(layout.partitions_path(name)),
                ]
            )

    async def lose_a_reply(self, name: str) -> None:
        """Let a commit take effect and break the connection before its answer arrives."""
        store = self.store
        store.reply_is_lost = True
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.create, name)
            with trio.move_on_after(0.5):
                while store.session is SessionState.CONNECTED:  # noqa: ASYNC110 - a store tells nobody else
                    await trio.sleep(0.001)
            store.reply_is_lost = False  # nothing was written
            self.memory.tree.resume(store)

    async def trouble(self, *, others_write: bool) -> None:
        """Meanwhile."""
        match self.random.choice(["others", "others", "break", "lose", "go", "go"]):
            case "others" if others_write:
                await trio.sleep(0.01 * self.random.random())  # something is planned
                for name in NAMES:
                    await self.occupy(name)
            case "break":
                store = self.store
                await self.memory.suspend(store)
                await trio.sleep(0.005)
                await self.memory.resume(store)
            case "lose":
                await self.lose_a_reply(self.random.choice(NAMES))
            case "go":
                controller = self.cluster.controller
                await self.cluster.kill(controller.broker_id)
                await self.cluster.until_succeeded(controller.epoch)
                await self.start(controller.broker_id)
            case _:
                await trio.sleep(0.001)


def ask_again(folder: Path) -> tuple[Looking, int]:
    """Every decision, in the order of the log. Returns a policy that saw it all, and how many there
    were.
    """
    policy, replay, asked = Looking(), Replay(), 0
    judge = PolicyJudge(policy, RULES)
    for event in events_in(folder):
        if isinstance(event, Decision):
            question = replay.question(event)
            assert (question is None) is (event.asked_ms is None)
            if event.policy is not None:
                assert question is not None
                assert_same(event, judge.judge(*question))
                asked += 1
        list(replay.apply(event))
    return policy, asked


def assert_same(event: Decision, verdict: Verdict) -> None:
    then = event.policy
    assert then is not None
    now = verdict.decision.value, verdict.message, verdict.rule, verdict.policy_hash
    assert now == (then.decision, then.message, then.rule, then.policy_hash), event
    assert [(each.rule, each.action.value, each.message, each.error) for each in verdict.findings] == [
        (each.rule, each.action, each.message, each.error) for each in then.findings
    ], event


@pytest.mark.parametrize("others_write", [False, True], ids=["alone", "beside others"])
@pytest.mark.parametrize("seed", range(3))
async def test_whatever_happened_is_asked_again(
    seed: int, tmp_path: Path, nursery: trio.Nursery, *, others_write: bool
) -> None:
    """Batches, re-creations, validation only, refusals of the store, broken connections and new
    controllers: the verdict, message, rule and findings of each recorded decision come out again,
    and the policy is shown, to the last field, what it was shown then.
    """
    random, policy = Random(seed), Looking()
    world = World(tmp_path, nursery, random, InPlace(policy))
    await world.start(1, 2, 3)
    for _ in range(ROUNDS):
        async with trio.open_nursery() as clients:
            for _ in range(AT_ONCE):
                clients.start_soon(world.act)
            await world.trouble(others_write=others_write)
        await world.cluster.until_quiet()
    await world.end()
    again, asked = ask_again(tmp_path)
    assert asked > ROUNDS
    assert set(again.seen) <= set(policy.seen)
    assert set(found(tmp_path)) <= ({"snapshot"} if others_write else set())  # others write nothing into our log
    decisions = decisions_in(tmp_path)
    assert {each.policy.decision for each in decisions if each.policy} == {"allowed", "violated"}


class Agreeing(Looking):
    """Looks, and allows."""

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        self.seen.append(digest(request, cluster))


class Slow(InPlace):
    """A policy that waits at topic `b.users` for a signal, while earlier elements are planned and
    not yet committed.
    """

    def __init__(self, policy: TopicManagementPolicy) -> None:
        super().__init__(policy)
        self.thinks, self.go_on = trio.Event(), trio.Event()

    async def ask(self, request: JudgedRequest, cluster: VersionedCluster) -> PolicyReply:
        if isinstance(request, CreateTopicRequest) and request.topic == "b.users":
            self.thinks.set()
            await self.go_on.wait()
        return await super().ask(request, cluster)


async def test_what_others_made_meanwhile(
    tmp_path: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another program creates the topic after the plan, the element is judged again, so that
    every recorded decision can be replayed from the log alone.
    """
    monkeypatch.setattr(jobs, "PART_SECONDS", math.inf)
    policy = Agreeing()
    slow = Slow(policy)
    world = World(tmp_path, nursery, Random(1), slow)
    await world.start(1, 2)
    async with trio.open_nursery() as clients:
        clients.start_soon(partial(world.create, "a.orders", "c", "b.users", "b.orders"))
        await slow.thinks.wait()
        await world.occupy("c")
        await trio.testing.wait_all_tasks_blocked(0.05)
        slow.go_on.set()
    image = world.cluster.controller.image
    await world.end()
    decisions = {each.name: each for each in decisions_in(tmp_path)}
    assert {"a.orders", "c", "b.orders", "b.users"} == set(image.topics)
    assert (decisions["c"].error, decisions["c"].effect) == ("TOPIC_ALREADY_EXISTS", Effect.NONE)
    assert [each.assumed for each in decisions.values()] == [()] * 4
    again = Looking()
    replay = Replay()
    for event in events_in(tmp_path):
        question = replay.question(event) if isinstance(event, Decision) else None
        if question is not None:
            again.seen.append(digest(*question))
        list(replay.apply(event))
    assert len(again.seen) == 3 and set(again.seen) <= set(policy.seen)
    assert found(tmp_path) == []

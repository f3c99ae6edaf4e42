"""A real run of our own controllers, for their audit log: many people, few of whom do most,
deployments, clean-ups, and fail-overs.

Rule: nothing in the log is made up. Three nodes serve on one embedded store; people connect to them
over sockets as themselves, each to some node, and ask for what people ask for. In the end every
topic is deleted again, so that a log can be followed by another one.
"""

import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import trio

from minicontroller.client.configuration import Address, ClientConfig
from minicontroller.client.errors import AdminError
from minicontroller.client.network import BrokerLink
from minicontroller.controller.node.app import RunningNode, run_node
from minicontroller.controller.node.node import Node
from minicontroller.network.peer import PeerConnection, PeerUnavailable
from minicontroller.process.settings.loading import load_config
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.config_resources import ConfigOperation, ResourceType
from minicontroller.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from minicontroller.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from minicontroller.security.credentials import PlainCredentials
from minicontroller.store.memory import MemoryStore, MemoryTree

NODES: Final = (1, 2, 3)
TIMEOUT_MS: Final = 10_000
IN_FLIGHT: Final = 8
PASSWORD: Final = "history"
RULES: Final = Path(__file__).parent / "policies" / "in_force.toml"
SOFTWARE_OF_CI: Final = "deploy-bot"

TEAMS: Final = (
    "sales", "search", "billing", "fraud", "mobile", "web", "ads", "pricing", "risk", "supply", "hr", "platform",
    "logistics", "support", "payments", "identity", "catalog", "media", "growth", "analytics",
)  # fmt: skip
DOMAINS: Final = ("orders", "clicks", "users", "events", "invoices", "sessions", "alerts", "items", "prices", "returns")
KINDS: Final = ("created", "changed", "removed", "retry", "dead-letter", "snapshot", "audit-log", "raw", "clean", "log")
PARTITIONS: Final = (1, 1, 1, 3, 3, 6, 6, 6, 12, 12, 24, 36, 64)
RETENTIONS: Final = ("600000", "3600000", "86400000", "604800000", "2592000000", "-1")


class Person(msgspec.Struct, frozen=True):
    name: str
    team: str
    client_id: str


def people() -> list[Person]:
    """The first of each team is its deployment."""
    return [
        Person(f"{team}-{who}", team, SOFTWARE_OF_CI if who == "ci" else f"{team}-tools")
        for team in TEAMS
        for who in ("ci", "ann", "bob")
    ]


async def record(
    folder: Path,
    *,
    requests: int,
    failovers: int,
    seed: int = 1,
    on_progress: Callable[[int], None] = lambda _done: None,
) -> None:
    """Audit files of a run of so many requests in `folder`. `on_progress` gets how many are done.
    `folder` must be there.
    """
    async with _Cluster.running(folder) as cluster:
        crowd = _Crowd(cluster, random.Random(seed), on_progress)
        share = -(-requests // (failovers + 1))
        for number in range(failovers + 1):
            await crowd.work(share)
            if number < failovers:
                await cluster.fail_over()
        await crowd.clean_up()


def _deletion(names: list[str]) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=TIMEOUT_MS)


class _Cluster:
    """Three nodes of one store, any of which may go and come back."""

    def __init__(self, nursery: trio.Nursery, folder: Path) -> None:
        self._nursery = nursery
        self._folder = folder
        self._tree = MemoryTree()
        self._local_nodes: dict[int, Node] = {}
        self._ended: dict[int, trio.Event] = {}
        self.nodes: dict[int, RunningNode] = {}

    @classmethod
    @asynccontextmanager
    async def running(cls, folder: Path) -> "AsyncIterator[_Cluster]":
        async with trio.open_nursery() as nursery:
            cluster = cls(nursery, folder)
            for number in NODES:
                await cluster._start(number)
            await cluster.until_ready()
            yield cluster
            for number in NODES:
                await cluster._stop(number, hand_over=False)

    @property
    def controller(self) -> int:
        return next(iter(self.nodes.values())).node.cache.image.controller_id

    async def until_ready(self) -> None:
        for running in self.nodes.values():
            await running.wait_ready(frozenset(self.nodes))

    async def until_empty(self) -> None:
        for running in self.nodes.values():
            await running.node.cache.wait_cluster(lambda image: not image.topics)

    async def fail_over(self) -> None:
        """The controller's node goes, and comes back as one among others."""
        number = self.controller
        await self._stop(number, hand_over=True)
        await self._start(number)
        await self.until_ready()

    async def _start(self, number: int) -> None:
        config = load_config("\n".join(f"{key}={value}" for key, value in self._settings(number).items()), "history")
        self._ended[number] = trio.Event()
        self.nodes[number] = await self._nursery.start(self._run, config, self._ended[number])

    async def _run(
        self,
        config: NodeConfig,
        ended: trio.Event,
        task_status: trio.TaskStatus[RunningNode] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        await run_node(
            config, lambda _: MemoryStore(self._tree), local_nodes=self._local_nodes, task_status=task_status
        )
        ended.set()

    async def _stop(self, number: int, *, hand_over: bool) -> None:
        self.nodes.pop(number).stop(hand_over=hand_over)
        await self._ended[number].wait()

    def _settings(self, number: int) -> Mapping[str, str]:
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        users = " ".join(f'user_{person.name}="{PASSWORD}"' for person in people())
        return {
            "broker.id": str(number),
            "listeners": "CLIENTS://127.0.0.1:0,INTERNAL://127.0.0.1:0",
            "listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INTERNAL",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.internal.plain.sasl.jaas.config": f'{login} username="node" password="n" user_node="n";',
            "listener.name.clients.plain.sasl.jaas.config": f"{login} {users};",
            "zookeeper.connect": "memory",
            "policy.rules.files": str(RULES),
            "policy.rules.reload.interval.ms": "0",
            "audit.dir": str(self._folder),
        }


class _Crowd:
    """The simulated clients' requests, and the topics that exist because of them."""

    def __init__(self, cluster: _Cluster, chance: random.Random, on_progress: Callable[[int], None]) -> None:
        self._cluster = cluster
        self._chance = chance
        self._on_progress = on_progress
        self._people = people()
        self._weights = [1 / (rank + 1) for rank in range(len(self._people))]
        self._chance.shuffle(self._people)
        self._topics: dict[str, int] = {}
        """Partitions of what is there, as far as its maker knows."""
        self._done = 0

    async def work(self, requests: int) -> None:
        """So many requests, some at a time."""
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as hands:
                for _ in range(IN_FLIGHT):
                    hands.start_soon(self._one_hand, nursery, requests // IN_FLIGHT)
            nursery.cancel_scope.cancel()

    async def clean_up(self) -> None:
        """Everything is deleted, by whoever may."""
        person = next(each for each in self._people if each.team == "platform")
        async with trio.open_nursery() as nursery:
            link = self._link(nursery, person, self._cluster.controller)
            await link.greet()
            names = sorted(self._cluster.nodes[self._cluster.controller].node.cache.image.topics)
            for first in range(0, len(names), 500):
                await link.ask(_deletion(names[first : first + 500]), ApiKey.DELETE_TOPICS)
            await self._cluster.until_empty()
            nursery.cancel_scope.cancel()

    async def _one_hand(self, nursery: trio.Nursery, requests: int) -> None:
        links: dict[tuple[str, int], BrokerLink] = {}
        for _ in range(requests):
            [person] = self._chance.choices(self._people, self._weights)
            node = self._chance.choice(NODES)
            if (person.name, node) not in links:
                links[person.name, node] = self._link(nursery, person, node)
            link = links[person.name, node]
            with suppress(PeerUnavailable, AdminError):  # as people do, who come back later
                await link.greet()
                await self._ask(person, link)
            self._done += 1
            self._on_progress(self._done)

    async def _ask(self, person: Person, link: BrokerLink) -> None:
        what = self._chance.random()
        if person.client_id == SOFTWARE_OF_CI and what < 0.1:
            await self._create(person, link, self._chance.randint(5, 30))
        elif what < 0.42 or not self._topics:
            await self._create(person, link, 1)
        elif what < 0.66:
            await self._configure(link)
        elif what < 0.74:
            await self._grow(link)
        else:
            await self._delete(link)

    async def _create(self, person: Person, link: BrokerLink, count: int) -> None:
        topics = [self._new_topic(person) for _ in range(count)]
        validate_only = self._chance.random() < 0.05
        message = CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS, validate_only=validate_only)
        answer = await link.ask(message, ApiKey.CREATE_TOPICS)
        assert isinstance(answer, CreateTopicsResponse)
        for row in answer.topics:
            if not (validate_only or row.error_code):
                self._topics[row.name] = row.num_partitions

    def _new_topic(self, person: Person) -> CreatableTopic:
        chance = self._chance
        team = person.team if chance.random() < 0.97 else chance.choice(TEAMS)
        name = f"{team}.{chance.choice(DOMAINS)}.{chance.choice(KINDS)}"
        if chance.random() < 0.5:
            name += f"-{chance.randint(1, 99)}"
        if chance.random() < 0.02:
            name = name.replace(".", "_", 1).upper()
        configs = {} if chance.random() < 0.5 else {"retention.ms": chance.choice(RETENTIONS)}
        if chance.random() < 0.2:
            configs["cleanup.policy"] = "compact"
        return CreatableTopic(
            name=name,
            replication_factor=3 if chance.random() < 0.9 else chance.choice((1, 2)),
            num_partitions=chance.choice(PARTITIONS),
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )

    async def _configure(self, link: BrokerLink) -> None:
        configs = {"retention.ms": self._chance.choice(RETENTIONS)}
        if self._chance.random() < 0.3:
            configs["max.message.bytes"] = str(self._chance.randint(1, 8) << 20)
        changes = [
            IncrementalAlterableConfig(name=key, config_operation=ConfigOperation.SET, value=value)
            for key, value in configs.items()
        ]
        resource = IncrementalAlterConfigsResource(
            resource_type=ResourceType.TOPIC, resource_name=self._some_topic(), configs=changes
        )
        await link.ask(IncrementalAlterConfigsRequest(resources=[resource]), ApiKey.INCREMENTAL_ALTER_CONFIGS)

    async def _grow(self, link: BrokerLink) -> None:
        name = self._some_topic()
        count = self._topics[name] + self._chance.choice((0, 1, 3, self._topics[name], 40))
        grown = CreatePartitionsTopic(name=name, count=count, assignments=None)
        message = CreatePartitionsRequest(topics=[grown], timeout_ms=TIMEOUT_MS)
        answer = await link.ask(message, ApiKey.CREATE_PARTITIONS)
        assert isinstance(answer, CreatePartitionsResponse)
        if not answer.results[0].error_code and name in self._topics:
            self._topics[name] = count

    async def _delete(self, link: BrokerLink) -> None:
        names = list({self._some_topic() for _ in range(self._chance.choice((1, 1, 1, 1, 2, 5)))})
        answer = await link.ask(_deletion(names), ApiKey.DELETE_TOPICS)
        assert isinstance(answer, DeleteTopicsResponse)
        for row in answer.responses:
            if not row.error_code and row.name is not None:
                self._topics.pop(row.name, None)

    def _some_topic(self) -> str:
        return self._chance.choice(list(self._topics))

    def _link(self, nursery: trio.Nursery, person: Person, node: int) -> BrokerLink:
        host, _, port = self._cluster.nodes[node].bootstrap.rpartition(":")
        credentials = PlainCredentials(person.name, PASSWORD)
        peer = PeerConnection(nursery, host, int(port), client_id=person.client_id, logins=(credentials,))
        return BrokerLink(peer, Address(host, int(port)), ClientConfig((), person.client_id, credentials))

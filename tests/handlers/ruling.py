"""An elected controller on the embedded store with three registered nodes, without sockets. The
tree, the metadata of the nodes and the answers are the program's own. A test may make a node deaf:
updates sent to it are never acknowledged.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import trio

from minicontroller.admin.policy.loading import load_rules
from minicontroller.admin.policy.runner import PolicyRunner
from minicontroller.cluster.entities import Broker, Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import layout, registrations
from minicontroller.cluster.znodes.configs import decode_config, decode_config_change
from minicontroller.controller.active.active_controller import ActiveController
from minicontroller.controller.active.control_requests import ControlRequest, ControlVersions
from minicontroller.controller.node.candidacy import election_of
from minicontroller.controller.node.cluster_paths import prepare
from minicontroller.controller.node.node import Node
from minicontroller.policies import TopicManagementPolicy
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicontroller.store.base import Create
from minicontroller.store.memory import MemoryStore, MemoryTree
from tests.handlers.asking import CLUSTER_ID, Client, broker
from tests.policies.in_place import InPlace
from tests.support.audit_logs import audit_of
from tests.support.specs import APIS

NO_ID = bytes(16)
PATIENT_MS = 30_000


class Link:
    """To one node, by the line that answers all requests, unless it is deaf."""

    def __init__(self, node: Node, deaf: set[int]) -> None:
        self.versions = ControlVersions()
        self._node = node
        self._deaf = deaf

    async def request(self, message: ControlRequest) -> object:
        await trio.lowlevel.checkpoint()
        if self._node.broker_id in self._deaf:
            await trio.sleep_forever()
        return await Client(self._node, handlers=APIS, peer=True).ask(message, self.versions.of(message))

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class NoDice(Random):
    """A source of randomness that raises."""

    def randrange(self, *_limits: Any) -> int:
        raise ArithmeticError("the dice are lost")


class Ruling:
    """The cluster of a test. Node 1 is the controller."""

    def __init__(self, node: Node, nodes: Mapping[int, Node], deaf: set[int]) -> None:
        self.node = node
        self.nodes = nodes
        self.deaf = deaf

    @property
    def store(self) -> MemoryStore:
        assert isinstance(self.node.store, MemoryStore)
        return self.node.store

    @property
    def controller(self) -> ActiveController:
        assert self.node.controller is not None
        return self.node.controller

    @property
    def image(self) -> Image:
        """Return the controller's image."""
        return self.controller.image

    def topic(self, name: str) -> Topic:
        return self.image.topics[name]

    def client(self, **how: Any) -> Client:
        return Client(self.node, handlers=APIS, **how)

    async def ask(self, request: Any, version: int, **how: Any) -> Any:
        """One request of a client at the controller's node."""
        return await self.client(**how).ask(request, version)

    async def make(self, *topics: CreatableTopic) -> None:
        """Topics that a test needs; they are complete afterwards."""
        answer: CreateTopicsResponse = await self.ask(creating(*topics), 7)
        refused = {row.name: row.error_message for row in answer.topics if row.error_code}
        assert not refused

    async def configs(self, path: str) -> Mapping[str, str] | None:
        """Return what the store holds at this path below /config, or None."""
        entry = await self.store.get(f"/config/{path}")
        return None if entry is None else dict(decode_config(entry.data))

    async def notifications(self) -> list[tuple[str, str]]:
        """Return the contents of /config/changes, in order."""
        names = sorted(await self.store.children(layout.CONFIG_CHANGES))
        entries = await self.store.get_many([f"{layout.CONFIG_CHANGES}/{name}" for name in names])
        return [decode_config_change(entry.data) for entry in entries if entry is not None]


@asynccontextmanager
async def ruling(
    settings: Mapping[str, str] | None = None,
    *,
    brokers: Sequence[Broker] = (broker(1), broker(2), broker(3)),
    policy: TopicManagementPolicy | None = None,
) -> AsyncIterator[Ruling]:
    """Run the cluster for the length of the block, with a policy in the same process."""
    tree, deaf = MemoryTree(), set[int]()
    nodes: dict[int, Node] = {}
    await prepare(MemoryStore(tree))
    for each in brokers:
        node = _node(each.broker_id, tree, settings or {})
        path = layout.broker_path(each.broker_id)
        await node.store.commit([Create(path, registrations.encode_broker(each, 0), ephemeral=True)])
        registered = await node.store.get(path)
        assert registered is not None
        node.registered(registered.stat.czxid)
        nodes[each.broker_id] = node
    first = nodes[min(nodes)]
    if policy is not None:
        first.port.policy = PolicyRunner(InPlace(policy))
        first.rule_files = load_rules(first.config, first.port.policy)
    first.port.audit = first.metrics.audit = audit_of(first.config, CLUSTER_ID)
    election = election_of(first, lambda target: Link(nodes[target.broker_id], deaf))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(election.run)
        for node in nodes.values():
            await node.cache.wait_cluster(lambda image: image.controller_id in image.brokers)
        await trio.testing.wait_all_tasks_blocked()  # until the controller has begun its reign, and is idle
        yield Ruling(first, nodes, deaf)
        if first.policy is not None:
            await first.policy.close()
        nursery.cancel_scope.cancel()
    if first.audit is not None:
        await first.audit.close()


def _node(broker_id: int, tree: MemoryTree, settings: Mapping[str, str]) -> Node:
    config = config_from_mapping(
        {"broker.id": str(broker_id), "listeners": "PLAINTEXT://127.0.0.1:0", **dict(settings)}
    )
    return Node(config, CLUSTER_ID, MemoryStore(tree))


# ------------------------------------------------------------------ requests that most tests need


def wanted(
    name: str,
    partitions: int = -1,
    replicas: int = -1,
    *,
    placed: Mapping[int, Sequence[int]] | Sequence[tuple[int, Sequence[int]]] = (),
    configs: Mapping[str, str | None] | Sequence[tuple[str, str | None]] = (),
) -> CreatableTopic:
    """An element of CreateTopics; `placed` gives the brokers of each partition."""
    rows = placed.items() if isinstance(placed, Mapping) else placed
    pairs = configs.items() if isinstance(configs, Mapping) else configs
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[CreatableReplicaAssignment(partition_index=i, broker_ids=list(row)) for i, row in rows],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in pairs],
    )


def creating(*topics: CreatableTopic, timeout_ms: int = PATIENT_MS, validate_only: bool = False) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def codes(answer: CreateTopicsResponse) -> list[int]:
    return [row.error_code for row in answer.topics]


def is_blank(row: CreatableTopicResult) -> bool:
    """Return whether a row holds nothing but the refusal."""
    return (row.num_partitions, row.replication_factor, row.configs, row.topic_id) == (-1, -1, [], NO_ID)

"""Administrators who work on things of their own while the cluster breaks, each with another client
and a ledger of what they were told.
"""

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

import trio

from tests.faults.detector.floods import Addresses
from tests.faults.detector.settling import permitted, told_configs
from tests.faults.tree import Tree
from tests.soak.hands import FAULTS, HANDS, Hands
from tests.soak.ledger import Change, Ledger, State, altered, created, deleted, grown, put
from tests.soak.librdkafka import PRINCIPAL
from tests.support.nodes import NodeProcess
from tests.support.waiting import at_last
from tests.support.wire import ConnectionEndedError

TOPICS = 4
BROKERS = 3
"""Replicas are moved between the first of them."""
PAUSE_SECONDS = 0.2
RETRY_SECONDS = 0.3
PERMITTED = "permitted"
NODES_FOLLOW_SECONDS = 40.0
MOST_FAILURES = 4
"""In a row, until a client is replaced by a new one, which is told where the nodes are now."""


class Person:
    """One administrator; a window of the soak calls it once."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.ledger = Ledger()
        self.longest_seconds = 0.0
        """The longest wait for an acknowledgement."""
        self.reads = 0
        self._offset = 0
        self._retention = 1_000_000

    @property
    def topics(self) -> list[str]:
        return [f"{self.client}-{number}" for number in range(TOPICS)]

    @property
    def log(self) -> str:
        """The topic of the group's offsets, which is never deleted."""
        return f"{self.client}-log"

    @property
    def group(self) -> str:
        return f"{self.client}-group"

    async def __call__(self, addresses: Addresses, dice: random.Random, over: trio.Event) -> None:
        """Work until it is over, with a new client whenever one fails."""
        while not over.is_set():
            choices = [address for _, address in addresses()]
            async with AsyncExitStack() as stack:
                try:
                    if not choices:
                        continue
                    hands = await HANDS[self.client](",".join(choices), stack)
                    await self._work(hands, dice, over)
                except FAULTS:
                    await trio.sleep(RETRY_SECONDS)

    async def _work(self, hands: Hands, dice: random.Random, over: trio.Event) -> None:
        failures = 0
        while failures < MOST_FAILURES and not over.is_set():
            try:
                await self._turn(hands, dice)
                failures = 0
            except FAULTS:
                failures += 1
            await trio.sleep(PAUSE_SECONDS * dice.random())

    async def _turn(self, hands: Hands, dice: random.Random) -> None:
        deed, topic = dice.choice(hands.deeds), dice.choice(self.topics)
        name, partitions = f"topic/{topic}", dice.randint(1, 8)
        self._retention += 1
        retention = str(self._retention)
        match deed:
            case "create":
                await self._change(name, created(partitions, retention), hands.create, topic, partitions, retention)
            case "delete":
                await self._change(name, deleted, hands.delete, topic)
            case "grow":
                await self._change(name, grown(partitions), hands.grow, topic, partitions)
            case "alter":
                await self._change(name, altered(retention), hands.alter, topic, retention)
            case "permit":
                await self._change(f"acl/{topic}", put(PERMITTED), hands.permit, topic)
            case "revoke":
                await self._change(f"acl/{topic}", put(None), hands.revoke, topic)
            case "commit":
                await self._commit(hands)
            case "move":
                await hands.move(topic, dice.sample(range(1, BROKERS + 1), 2))
            case _:
                self.reads += 1
                await hands.read()

    async def _commit(self, hands: Hands) -> None:
        if None in self.ledger.possible(f"topic/{self.log}"):
            await self._change(f"topic/{self.log}", created(1, "1000"), hands.create, self.log, 1, "1000")
        self._offset += 1
        thing = f"offset/{self.group}"
        await self._change(thing, put(self._offset), hands.commit, self.group, self.log, self._offset)

    async def _change(self, thing: str, change: Change, ask: Any, *wanted: Any) -> None:
        """Ask for a change, and note what came of it. Whatever is not acknowledged is in doubt."""
        began = time.monotonic()
        try:
            await ask(*wanted)
        except BaseException:
            self.ledger.doubt(thing, change)
            raise
        self.longest_seconds = max(self.longest_seconds, time.monotonic() - began)
        self.ledger.acknowledge(thing, change, f"{ask.__name__} {wanted}")

    # ------------------ when nothing is under way

    def compare(self, tree: Tree, nodes: Sequence[NodeProcess]) -> list[str]:
        """Compare the ledger with ZooKeeper, and every node with ZooKeeper. Return what differs
        since the last time.
        """
        known = len(self.ledger.findings)
        truth: dict[str, State] = {f"topic/{name}": _topic(tree, name) for name in (*self.topics, self.log)}
        truth |= {f"acl/{name}": _acl(tree, name) for name in self.topics}
        offset = at_last(lambda: self._offset_at(nodes), right=lambda found: found != "unknown", within=20)
        truth[f"offset/{self.group}"] = offset
        self.ledger.compare(truth)
        return self.ledger.findings[known:] + [flaw for node in nodes for flaw in self._flaws(node, truth)]

    def _flaws(self, node: NodeProcess, truth: Mapping[str, State]) -> list[str]:
        flaws = []
        for name in self.topics:
            match truth[f"topic/{name}"]:
                case (_, retention):
                    wanted = {"retention.ms": retention}
                    seen = _patiently(lambda name=name: told_configs(node, f"topics/{name}"), wanted)
                    flaws += [f"node {node.broker_id} says of {name} {seen}, not {wanted}"] if seen != wanted else []
            allowed = {PRINCIPAL} if truth[f"acl/{name}"] is not None else set()
            shown = _patiently(lambda name=name: permitted(node, name), allowed)
            flaws += [f"node {node.broker_id} permits {name} to {shown}, not {allowed}"] if shown != allowed else []
        return flaws

    def _offset_at(self, nodes: Sequence[NodeProcess]) -> State:
        """Return the group's offset as its coordinator tells it."""
        body = {"group_id": self.group, "topics": [{"name": self.log, "partition_indexes": [0]}]}
        for node in nodes:
            try:
                with node.wire() as wire:
                    key = {"coordinator_keys": [self.group], "key_type": 0}
                    (found,) = wire.ask("FindCoordinator", 4, key)["coordinators"]
                    if found["node_id"] != node.broker_id:
                        continue
                    (row,) = wire.ask("OffsetFetch", 1, body)["topics"][0]["partitions"]
            except (ConnectionEndedError, OSError):
                continue
            if row["error_code"] == 0:
                return None if row["committed_offset"] == -1 else int(row["committed_offset"])
        return "unknown"


def _patiently(look: Any, wanted: Any) -> Any:
    return at_last(look, right=wanted.__eq__, within=NODES_FOLLOW_SECONDS)


def _topic(tree: Tree, name: str) -> State:
    value, configs = tree.jsons([f"/brokers/topics/{name}", f"/config/topics/{name}"])
    return None if value is None else (len(value["partitions"]), (configs or {}).get("config", {}).get("retention.ms"))


def _acl(tree: Tree, name: str) -> State:
    found = tree.json(f"/kafka-acl/Topic/{name}") or {"acls": []}
    return PERMITTED if any(acl["principal"] == PRINCIPAL for acl in found["acls"]) else None

"""Another program at work in the tree: it rewrites, damages, adds and deletes znodes of every kind
that nodes read, at random, and puts back afterwards what nobody else may mend.

Rule: its topics are its own, so that what becomes of them is known: they keep their ids, their
partitions and their leaders on every node, whatever it does to their znodes.
"""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import msgspec
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError  # type: ignore[import-untyped]

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.update_metadata import UpdateMetadataRequest
from minicontroller.protocol.registry import KAFKA
from tests.faults.detector.arena import NODES, Arena
from tests.faults.stream import create
from tests.faults.tree import patiently
from tests.support.nodes import NodeProcess
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Login, Wire

TOPICS = ("s0", "s1", "s2")
PARTITIONS = 2
MOST_PARTITIONS = 8
LOST_BY_RIGHT = "and no node knows one"
"""What a controller says of a topic whose id nobody can know any more."""
NODES_USER: Login = ("node", "secret")
"""As `WITH_A_LISTENER_FOR_NODES` has it, and a super user."""
DAMAGED_SECONDS = 1.5
WILD_EPOCH = 2**31 - 1
AWAY = (OSError, ConnectionEndedError, ValueError)
"""What a question ends with at a node that dies, or starts and has no address yet."""

JUNK: tuple[bytes, ...] = (b"", b"not json", b"[]", b"{}", b'{"version":1', b"\xff\xfe", b'{"version":"x","config":7}')
JUNK_CONFIGS = (*JUNK, b'{"version":1,"config":{"retention.ms":1000}}', b'{"version":1,"config":{"a":null}}')
JUNK_BELOW = (
    "/isr_change_notification/isr_change_strange",
    "/log_dir_event_notification/log_dir_event_strange",
    "/config/changes/config_change_strange",
    "/kafka-acl-changes/acl_changes_strange",
    "/kafka-acl-extended-changes/acl_changes_strange",
    "/delegation_token/token_changes/token_change_strange",
    "/minicontroller/group_changes/group_change_strange",
    "/delegation_token/tokens/strange",
    "/minicontroller/groups/strange",
    "/kafka-acl/Topic/strange",
    "/kafka-acl-extended/prefixed/Group/strange",
    "/config/users/strange",
    "/config/clients/strange",
    "/config/ips/10.0.0.1",
    "/config/brokers/77",
    "/brokers/ids/77",
    "/admin/preferred_replica_election",
    "/admin/reassign_partitions",
)
"""Znodes that nobody else writes: each is made with junk in it, and is gone in the end."""
NOTICES = (
    b"",
    b'{"version":3,"entity_path":"topics/s0"}',
    b'{"version":2}',
    b'{"version":1,"entity_type":"topics","entity_name":"s0"}',
    b'{"version":2,"entity_path":"things/s0"}',
    b"null",
)
PARENTS = ("/isr_change_notification", "/config/ips", "/brokers/seqid", "/log_dir_event_notification", "/consumers")
"""Znodes that are made again when they are deleted, if they have no children."""


class Kept(msgspec.Struct):
    """What every node is to say of a topic of the stranger's."""

    topic_id: str
    partitions: int


class Stranger:
    """One program, and what it knows of its topics."""

    def __init__(self, arena: Arena, dice: random.Random) -> None:
        self._arena = arena
        self._dice = dice
        self._client: KazooClient = arena.tree.client
        self._right: dict[str, bytes] = {}
        """The data of znodes that are damaged now, as it was."""
        self.kept: dict[str, Kept] = {}

    def begin(self) -> None:
        """Have topics of its own, and learn what they are."""
        for name in TOPICS:
            until(partial(self._has, name))
            value, _ = patiently(partial(self._client.get, f"/brokers/topics/{name}"))
            content = json.loads(value)
            self.kept[name] = Kept(content["topic_id"], len(content["partitions"]))

    def _has(self, name: str) -> bool:
        if patiently(partial(self._client.exists, f"/brokers/topics/{name}")) is not None:
            return True
        for node in self._arena.nodes.running:
            with suppress(*AWAY), node.wire() as wire:
                create(wire, name, partitions=PARTITIONS, replicas=NODES)
                break
        return False

    def act(self) -> None:
        """Do one of its deeds."""
        with suppress(NoNodeError, NodeExistsError, BadVersionError):
            self._dice.choice(DEEDS)(self)

    def damage(self, path: str, data: bytes) -> None:
        """Write over a znode, and keep what was there."""
        right, stat = self._client.get(path)
        if self._right.setdefault(path, right) == right:
            self._client.set(path, data, version=stat.version)

    def mend(self) -> None:
        """Put back what it has damaged, where nobody else has mended or removed it."""
        for path, right in list(self._right.items()):
            with suppress(NoNodeError, BadVersionError):
                now, stat = patiently(partial(self._client.get, path))
                if now in JUNK_CONFIGS or _is_damaged(path, now):
                    patiently(partial(self._client.set, path, right, version=stat.version))
            del self._right[path]

    def tidy(self) -> None:
        """Remove what it has added, and give its topics their configs and states."""
        self.mend()
        for path in JUNK_BELOW:
            with suppress(NoNodeError):
                patiently(partial(self._client.delete, path))

    # ------------------ deeds

    def topic(self) -> str:
        return f"/brokers/topics/{self._dice.choice(TOPICS)}"

    def damage_topic(self) -> None:
        path = self.topic()
        if path in self._right:
            return
        content = json.loads(self._client.get(path)[0])
        count = len(content["partitions"])
        gap = content | {"partitions": content["partitions"] | {str(count + 2): [1]}}
        empty = content | {"partitions": content["partitions"] | {"0": []}}
        less = content | {"partitions": {"0": content["partitions"]["0"]}}
        self.damage(path, self._dice.choice((*JUNK, *(json.dumps(each).encode() for each in (gap, empty, less)))))

    def drop_id(self) -> None:
        """Write the topic as tools before Kafka 2.8 do."""
        path = self.topic()
        if path not in self._right:
            value, stat = self._client.get(path)
            old = {"version": 1, "partitions": json.loads(value)["partitions"]}
            self._client.set(path, json.dumps(old).encode(), version=stat.version)

    def add_partition(self) -> None:
        path = self.topic()
        name = path.rpartition("/")[2]
        value, stat = self._client.get(path)
        content = json.loads(value) if path not in self._right else {}
        if content and len(content["partitions"]) < MOST_PARTITIONS:
            content["partitions"][str(len(content["partitions"]))] = self._dice.sample(range(1, NODES + 1), NODES)
            self._client.set(path, json.dumps(content).encode(), version=stat.version)
            self.kept[name].partitions = len(content["partitions"])

    def damage_state(self) -> None:
        self.damage(f"{self.topic()}/partitions/0/state", self._dice.choice(JUNK))

    def damage_configs(self) -> None:
        name = self.topic().rpartition("/")[2]
        self.damage(f"/config/topics/{name}", self._dice.choice(JUNK_CONFIGS))

    def rewrite(self) -> None:
        """Write what is there again, which makes versions that nobody expects."""
        path = self._dice.choice(
            ("/controller_epoch", "/minicontroller/commits", "/feature", self.topic(), "/cluster/id")
        )
        if path not in self._right:
            value, stat = self._client.get(path)
            self._client.set(path, value, version=stat.version)

    def add_junk(self) -> None:
        self._client.create(self._dice.choice(JUNK_BELOW), self._dice.choice(JUNK))

    def damage_registration(self) -> None:
        path = f"/brokers/ids/{self._dice.randint(1, NODES)}"
        stat = self._client.exists(path)
        if stat is not None:
            self._client.set(path, self._dice.choice(JUNK), version=stat.version)

    def delete_registration(self) -> None:
        self._client.delete(f"/brokers/ids/{self._dice.randint(1, NODES)}")

    def delete_registrations(self) -> None:
        self._client.delete("/brokers/ids", recursive=True)

    def damage_cluster_id(self) -> None:
        """The nodes that run write it again."""
        stat = self._client.exists("/cluster/id")
        if stat is not None and self._dice.random() < 0.5:
            self._client.set("/cluster/id", self._dice.choice(JUNK), version=stat.version)
        else:
            self._client.delete("/cluster/id")

    def lie(self) -> None:
        """Tell a node of a controller that nobody elected."""
        node = self._dice.choice(list(self._arena.nodes.running))
        header = RequestHeader(api_key=ApiKey.UPDATE_METADATA, api_version=6, correlation_id=1, client_id="stranger")
        lie = UpdateMetadataRequest(controller_id=77, controller_epoch=WILD_EPOCH, live_brokers=[], topic_states=[])
        with suppress(*AWAY), Wire(self._arena.logins[node.broker_id], login=NODES_USER) as wire:
            wire.exchange(KAFKA.encode_request(header, lie))

    def damage_feature(self) -> None:
        self.damage("/feature", self._dice.choice(JUNK))

    def notify(self) -> None:
        self._client.create("/config/changes/config_change_", self._dice.choice(NOTICES), sequence=True)

    def delete_parent(self) -> None:
        with suppress(KazooException):  # it has children
            self._client.delete(self._dice.choice(PARENTS))

    def change_secret(self) -> None:
        self._client.delete("/minicontroller/membership")

    # ------------------ what nodes say

    def look(self) -> None:
        """Ask every node that can be asked of the topics, until it says what is right. Raises
        AssertionError.
        """
        for node in self._arena.nodes.running:
            for name in list(self.kept):
                until(partial(self._what_is_wrong, node, name), right=lambda wrong: not wrong, within=40)

    def look_at_damage(self) -> None:
        """Look while a topic is damaged and a node was lied to, once nodes had the time to lose
        what they know.
        """
        with suppress(KazooException):
            self.damage_topic()
        self.lie()
        time.sleep(DAMAGED_SECONDS)
        self.look()

    def _what_is_wrong(self, node: NodeProcess, name: str) -> str:
        kept = self.kept[name]
        try:
            answer = node.metadata([name])
        except AWAY:
            return ""
        (topic,) = answer["topics"]
        found = _led(topic)
        if answer["controller_id"] not in range(1, NODES + 1):
            return f"node {node.broker_id} says that {answer['controller_id']} is the controller"
        if topic["error_code"] or len(found) < kept.partitions or any(leader < 0 for leader in found):
            return f"node {node.broker_id} says of {name}, which has {kept.partitions} partitions: {topic}"
        return ""

    def ids(self) -> list[str]:
        """The topics that have other ids in the tree than before."""
        wrong = []
        for name, kept in self.kept.items():
            value, _ = patiently(partial(self._client.get, f"/brokers/topics/{name}"))
            now = json.loads(value).get("topic_id")
            if now != kept.topic_id and not any(LOST_BY_RIGHT in node.log.read_text() for node in self._arena.nodes):
                wrong.append(f"{name} had the id {kept.topic_id} and has {now}")
        return wrong


def _led(topic: dict[str, Any]) -> list[int]:
    return [partition["leader_id"] for partition in topic["partitions"]]


def _is_damaged(path: str, data: bytes) -> bool:
    """Whether this is a topic's znode with partitions that cannot be true."""
    if not path.startswith("/brokers/topics/") or path.endswith("/state"):
        return False
    rows = json.loads(data)["partitions"]
    return sorted(map(int, rows)) != list(range(len(rows))) or not all(rows.values()) or len(rows) == 1


DEEDS: tuple[Callable[[Stranger], None], ...] = (
    Stranger.damage_topic,
    Stranger.damage_topic,
    Stranger.drop_id,
    Stranger.add_partition,
    Stranger.damage_state,
    Stranger.damage_configs,
    Stranger.rewrite,
    Stranger.add_junk,
    Stranger.add_junk,
    Stranger.damage_registration,
    Stranger.delete_registration,
    Stranger.delete_registrations,
    Stranger.damage_cluster_id,
    Stranger.lie,
    Stranger.damage_feature,
    Stranger.notify,
    Stranger.delete_parent,
    Stranger.change_secret,
    Stranger.mend,
    Stranger.mend,
)


@contextmanager
def stranger_in(arena: Arena, dice: random.Random) -> Iterator[Stranger]:
    """A stranger that leaves the tree as somebody can live in it. Raises AssertionError if a topic
    is not what it was.
    """
    stranger = Stranger(arena, dice)
    stranger.begin()
    try:
        yield stranger
        stranger.look_at_damage()
    finally:
        stranger.tidy()
    stranger.look()
    until(stranger.ids, right=lambda wrong: not wrong, within=40)

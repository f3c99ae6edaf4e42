"""The troubles that a cluster meets: each begins, lasts, and is over, beside whatever others there
are.

Rule: a trouble takes what it breaks for itself, and leaves it whole; so any mix of them may go on
at once, and when all are over the cluster is one that has nothing left to complain of.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError  # type: ignore[import-untyped]

from minicontroller.cluster.znodes.configs import encode_config
from tests.faults.detector.arena import NODES, Arena
from tests.faults.detector.clients import KEYS, TOPICS, Journal
from tests.faults.detector.history import ALTER, DEFAULT, OK, REPLACE, STRANGER
from tests.faults.detector.models import LEFT, SET
from tests.faults.detector.stranger import stranger_in
from tests.faults.tree import patiently
from tests.support.nodes import NodeProcess
from tests.support.proxy import Proxy
from tests.support.zookeeper import ZooKeeperServer

LONG_SECONDS = 4.5
"""Sessions end after 3."""
FAR_AWAY_SECONDS = 0.003
LEFTOVER = encode_config(LEFT)
STRANGE_SECONDS = 0.05
"""Between two deeds of a stranger."""


class Stage:
    """The parts that troubles share: the cluster, its victims, and when it is over."""

    def __init__(self, arena: Arena, journal: Journal, dice: random.Random) -> None:
        self.arena = arena
        self.journal = journal
        self.dice = dice
        self.over = threading.Event()
        self._lock = threading.Lock()
        self._free_nodes = set(range(1, NODES + 1))
        self._free_servers = set(range(len(arena.ensemble.servers)))
        self.down: set[int] = set()
        """Nodes that nobody can ask now."""

    @contextmanager
    def node(self, *, ruling: bool = False) -> Iterator[NodeProcess | None]:
        """Return a node that nobody else breaks, the controller more often than others, or none but
        the controller; None if there is none.
        """
        with self._lock:
            claim = self.controller()
            choices = sorted(self._free_nodes)
            if ruling:
                choices = sorted(self._free_nodes & {claim})
            elif claim in self._free_nodes and self.dice.random() < 0.4:
                choices = [claim]
            number = self.dice.choice(choices) if choices else None
            self._free_nodes.discard(number or 0)
        try:
            yield None if number is None else self.arena.nodes[number]
        finally:
            if number is not None:
                self._free_nodes.add(number)

    @contextmanager
    def server(self, *, leader: bool = False) -> Iterator[ZooKeeperServer | None]:
        """Return a server, one alone at a time: two of three are a quorum."""
        with self._lock:
            mine = len(self._free_servers) == len(self.arena.ensemble.servers)
            number = self.dice.randrange(len(self.arena.ensemble.servers))
            if mine and leader:
                servers = self.arena.ensemble.servers
                number = next((at for at, each in enumerate(servers) if "Mode: leader" in each.status()), number)
            if mine:
                self._free_servers.discard(number)
        try:
            yield self.arena.ensemble.servers[number] if mine else None
        finally:
            if mine:
                self._free_servers.add(number)

    def linger(self) -> None:
        """For a moment, or past the end of sessions."""
        self.over.wait(self.dice.choice((0.05, 0.5, 1.5, LONG_SECONDS)))

    def controller(self) -> int:
        try:
            return self.arena.tree.controller_id or 0
        except KazooException:  # the way to its server is broken, too
            return 0


# ------------------ nodes


def kill(stage: Stage) -> None:
    with stage.node() as node:
        if node is not None:
            kill_one(stage, node)


def kill_one(stage: Stage, node: NodeProcess) -> None:
    """SIGKILL, and a new life for it."""
    stage.down.add(node.broker_id)
    node.kill()
    stage.linger()
    node.start()
    node.wait_ready()
    stage.down.discard(node.broker_id)


def kill_controller(stage: Stage) -> None:
    """If nobody may kill the controller, it is deposed, and another node may be the next one."""
    with stage.node(ruling=True) as node:
        if node is not None:
            kill_one(stage, node)
        elif stage.controller() > NODES:
            stage.arena.tree.client.delete("/controller")


def terminate(stage: Stage) -> None:
    with stage.node() as node:
        if node is not None:
            stage.down.add(node.broker_id)
            node.stop()
            node.start()
            node.wait_ready()
            stage.down.discard(node.broker_id)


def freeze(stage: Stage) -> None:
    with stage.node() as node:
        if node is not None:
            node.freeze()
            stage.linger()
            node.thaw()


def move_controller(stage: Stage) -> None:
    """Somebody deletes `/controller`, as operators do to have another one, while the controller
    looks away; its session lives on.
    """
    with stage.node() as node:
        if node is not None:
            node.freeze()
            try:
                if stage.controller() == node.broker_id:
                    stage.arena.tree.client.delete("/controller")
                stage.over.wait(stage.dice.choice((0.2, 1.0)))
            finally:
                node.thaw()


def cut_from_nodes(stage: Stage) -> None:
    with stage.node() as node:
        if node is not None:
            stage.arena.to_node[node.broker_id - 1].cut()
            stage.linger()
            stage.arena.to_node[node.broker_id - 1].mend()


def cut_from_zookeeper(stage: Stage) -> None:
    with stage.node() as node:
        if node is not None:
            proxies = stage.arena.to_zookeeper[node.broker_id - 1]
            for proxy in proxies:
                proxy.cut()
            stage.linger()
            for proxy in proxies:
                proxy.mend()


def unheard_by_zookeeper(stage: Stage) -> None:
    """The requests of a node are not heard; then the connection breaks."""
    _swallow(stage, Proxy.swallow_requests)


def unanswered_by_zookeeper(stage: Stage) -> None:
    """The requests of a node are done, and the answers go nowhere; then the connection breaks."""
    _swallow(stage, Proxy.swallow_answers)


def _swallow(stage: Stage, swallow: Callable[[Proxy], None]) -> None:
    with stage.node() as node:
        if node is not None:
            proxies = stage.arena.to_zookeeper[node.broker_id - 1]
            for proxy in proxies:
                swallow(proxy)
            stage.over.wait(stage.dice.choice((0.05, 0.3)))
            for proxy in proxies:
                proxy.cut()
                proxy.mend()


# ------------------ ZooKeeper


def far_zookeeper(stage: Stage) -> None:
    proxies = [proxy for proxies in stage.arena.to_zookeeper for proxy in proxies]
    for proxy in proxies:
        proxy.delay(FAR_AWAY_SECONDS)
    stage.linger()
    for proxy in proxies:
        proxy.delay(0)


def kill_server(stage: Stage) -> None:
    _kill_server(stage, leader=False)


def kill_leader(stage: Stage) -> None:
    _kill_server(stage, leader=True)


def _kill_server(stage: Stage, *, leader: bool) -> None:
    with stage.server(leader=leader) as server:
        if server is not None:
            server.kill()
            stage.over.wait(stage.dice.choice((0.0, 1.0)))
            server.start()


def freeze_server(stage: Stage) -> None:
    with stage.server() as server:
        if server is not None:
            server.freeze()
            stage.linger()
            server.thaw()


# ------------------ other programs that write to the tree


def leftovers(stage: Stage) -> None:
    """Configs of topics that are not there: what is left of topics that somebody else deleted."""
    client = stage.arena.tree.client
    while not stage.over.wait(STRANGE_SECONDS * stage.dice.random()):
        name = f"t{stage.dice.randrange(TOPICS)}"
        with suppress(KazooException):  # what it did not hear of is removed below
            if client.exists(f"/brokers/topics/{name}") is None:
                client.create(f"/config/topics/{name}", LEFTOVER)
    for number in range(TOPICS):
        with suppress(NoNodeError, BadVersionError):
            data, stat = patiently(partial(client.get, f"/config/topics/t{number}"))
            if data == LEFTOVER:
                patiently(partial(client.delete, f"/config/topics/t{number}", version=stat.version))


def strange_configs(stage: Stage) -> None:
    """Another program changes configs, carefully: it writes what it has read, with the version, and
    notifies.
    """
    client = stage.arena.tree.client
    while not stage.over.wait(STRANGE_SECONDS * 2 * stage.dice.random()):
        group = stage.dice.choice(("topics", "topics", "brokers"))
        name = f"t{stage.dice.randrange(TOPICS)}" if group == "topics" else DEFAULT
        path, key = f"/config/{group}/{name}", stage.dice.choice(KEYS[group])
        operation = stage.journal.new(
            client=STRANGER, entity=f"{group}/{name}", kind=ALTER, steps=[(key, SET, stage.journal.value())]
        )
        try:
            data, stat = client.get(path)
            if group == "topics" and client.exists(f"/brokers/topics/{name}") is None:
                raise NoNodeError
            configs = json.loads(data)["config"] if data else {}
            configs[key] = operation.steps[0][2]
            written = json.dumps({"version": 1, "config": configs}).encode()
            now = client.set(path, written, version=stat.version)
            operation.outcome, operation.ended = OK, time.monotonic()
            if now.czxid != stat.czxid:  # another topic of this name was born meanwhile, and has the same version
                operation.kind, operation.steps, operation.configs = REPLACE, [], configs
            notice = json.dumps({"version": 2, "entity_path": f"{group}/{name}"}).encode()
            client.create("/config/changes/config_change_", notice, sequence=True)
        except (NoNodeError, BadVersionError):
            stage.journal.operations.remove(operation)


def false_marks(stage: Stage) -> None:
    """Marks of deletion for topics that are not there."""
    client = stage.arena.tree.client
    while not stage.over.wait(STRANGE_SECONDS * 4 * stage.dice.random()):
        with suppress(NodeExistsError):
            client.create(f"/admin/delete_topics/ghost-{stage.dice.randrange(5)}")


def malformed(stage: Stage) -> None:
    """Znodes that make no sense to anybody."""
    client = stage.arena.tree.client
    strange = {
        "/brokers/topics/broken": b"{",
        "/brokers/ids/nine": b"{}",
        "/brokers/ids/99": b'{"version":5,"endpoints":["X://h:99999999999"],"listener_security_protocol_map":{}}',
        "/config/topics/broken": b"\xff\xfe",
        "/config/changes/config_change_strange": b"[]",
        "/admin/delete_topics/broken2": b"{",
        "/isr_change_notification/isr_change_nonsense": b"nonsense",
    }
    chosen = stage.dice.sample(sorted(strange), 3)
    try:
        for path in chosen:
            with suppress(NodeExistsError, NoNodeError):
                client.create(path, strange[path])
        stage.linger()
    finally:  # also of what was created without an answer
        for path in chosen:
            with suppress(NoNodeError):
                if patiently(partial(client.get, path))[0] == strange[path]:
                    patiently(partial(client.delete, path, recursive=True))


def stranger(stage: Stage) -> None:
    """A program that rewrites, damages, adds and deletes znodes of every kind."""
    with stranger_in(stage.arena, stage.dice) as program:
        while not stage.over.wait(STRANGE_SECONDS * 6 * stage.dice.random()):
            with suppress(KazooException):
                program.act()


Trouble = Callable[[Stage], None]

BREAKING: tuple[Trouble, ...] = (
    kill,
    kill_controller,
    terminate,
    freeze,
    move_controller,
    cut_from_nodes,
    cut_from_zookeeper,
    unheard_by_zookeeper,
    unanswered_by_zookeeper,
    kill_server,
    kill_leader,
    freeze_server,
    stranger,
)
STRANGE: tuple[Trouble, ...] = (far_zookeeper, leftovers, strange_configs, false_marks, malformed)
"""These leave every node registered and every controller in its place."""
TROUBLES = {trouble.__name__: trouble for trouble in (*BREAKING, *STRANGE)}


def play(stage: Stage, trouble: Trouble) -> None:
    """Again and again until it is over, with pauses."""
    while not stage.over.is_set():
        with suppress(KazooException):  # a stranger's way to the tree breaks like everybody's
            trouble(stage)
        stage.over.wait(stage.dice.random())

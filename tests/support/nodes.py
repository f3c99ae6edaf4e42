"""Nodes as they are run in earnest: `minicontroller serve --config FILE`, each a process that can
be killed, frozen and started again.

A node listens wherever there is room, also after it was started again: nobody can take its port
meanwhile.
"""

import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.support.cluster import READY, READY_TIMEOUT_SECONDS, STOP_TIMEOUT_SECONDS
from tests.support.forked import COMMAND, Forked, begin
from tests.support.waiting import until
from tests.support.wire import Body, Wire

SESSION_TIMEOUT_MS = 3_000
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"


class NodeProcess:
    """One `minicontroller serve`, over several lives."""

    def __init__(
        self,
        directory: Path,
        broker_id: int,
        zookeeper: str,
        settings: Mapping[str, str],
        *options: str,
        command: Sequence[str | Path] | None = None,
    ) -> None:
        """`options` are those of `serve`; `command` stands for the installed one."""
        self.broker_id = broker_id
        self._command = tuple(command or [COMMAND])
        self._options = options
        self.config = directory / f"node-{broker_id}.properties"
        self.log = directory / f"node-{broker_id}.log"
        self._process: subprocess.Popen[str] | Forked | None = None
        self._life_begins = 0
        self._ready = ""
        self.config.write_text(
            "".join(f"{key}={value}\n" for key, value in (node_settings(broker_id, zookeeper) | dict(settings)).items())
        )

    def start(self) -> None:
        """Begin a life; `wait_ready` tells when it serves."""
        assert self._process is None, "already started"
        self._ready = ""
        with self.log.open("ab") as log:
            self._life_begins = log.tell()
            self._process = begin(["serve", "--config", self.config, *self._options], command=self._command, stdout=log)

    def wait_ready(self) -> None:
        until(lambda: self._ready_line or self.has_ended, within=READY_TIMEOUT_SECONDS)
        assert self._ready_line, f"node {self.broker_id} does not serve; it said:\n{self.output}"

    @property
    def output(self) -> str:
        """Its output in its present life."""
        with self.log.open("rb") as log:
            log.seek(self._life_begins)
            return log.read().decode()

    @property
    def address(self) -> str:
        """host:port for clients."""
        return self._ready_line.partition(" http=")[0]

    @property
    def http(self) -> str:
        """host:port of its metrics, if its configuration asks for them."""
        return self._ready_line.partition(" http=")[2]

    @property
    def _ready_line(self) -> str:
        """Read once in each life; logs grow."""
        if not self._ready:
            line, end, _ = self.output.partition(READY)[2].partition("\n")
            self._ready = line if end else ""
        return self._ready

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def wait_end(self) -> int:
        """It ends by itself. Returns its exit code."""
        assert self._process is not None
        code = self._process.wait(STOP_TIMEOUT_SECONDS)
        self._process = None
        return code

    @property
    def is_running(self) -> bool:
        return self._process is not None

    @property
    def has_ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def kill(self) -> None:
        """SIGKILL, and wait for the end; also of a frozen node."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> float:
        """SIGTERM, and what must be true afterwards. Returns how many seconds it took."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(STOP_TIMEOUT_SECONDS)
        seconds = time.monotonic() - began
        self._process = None
        assert code == 0, f"SIGTERM ended node {self.broker_id} with code {code}; it said:\n{self.output}"
        return seconds

    def terminate_nowait(self) -> None:
        """SIGTERM; `stop` waits for the end."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def freeze(self) -> None:
        """SIGSTOP: its connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def wire(self) -> Wire:
        return Wire(self.address)

    def metadata(self, topics: Sequence[str] | None = (), *, version: int = 9) -> Body:
        """Its view of the cluster and of these topics (None: of all)."""
        wanted = None if topics is None else [{"name": name} for name in topics]
        body: dict[str, Any] = {"topics": wanted}
        if version >= 4:
            body["allow_auto_topic_creation"] = False
        with self.wire() as wire:
            return wire.ask("Metadata", version, body)


def node_settings(broker_id: int, zookeeper: str) -> dict[str, str]:
    """As little as a node needs: Kafka's default listener, for clients and nodes, and where the
    others are found.
    """
    return {
        "broker.id": str(broker_id),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": zookeeper,
        "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    }


WITH_A_LISTENER_FOR_NODES = {
    "listeners": "CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.internal.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.internal.plain.sasl.jaas.config": f'{JAAS} username="node" password="secret" user_node="secret";',
}
"""Clients outside, nodes inside, where they log in as a user, too."""


class Nodes:
    """A cluster of such nodes, ids from 1."""

    def __init__(self, directory: Path, zookeepers: Sequence[str], settings: Mapping[str, str] | None = None) -> None:
        """`zookeepers`: the connection string of each node."""
        self.nodes = [
            NodeProcess(directory, broker_id, zookeeper, settings or {})
            for broker_id, zookeeper in enumerate(zookeepers, 1)
        ]

    @classmethod
    def of(cls, nodes: Iterable[NodeProcess]) -> Self:
        """Return a cluster of these nodes, whose ids count from 1."""
        cluster = cls(Path(), ())
        cluster.nodes = list(nodes)
        return cluster

    def __getitem__(self, broker_id: int) -> NodeProcess:
        return self.nodes[broker_id - 1]

    def __iter__(self) -> Iterator[NodeProcess]:
        return iter(self.nodes)

    @property
    def addresses(self) -> dict[int, str]:
        """host:port for clients, by node id."""
        return {node.broker_id: node.address for node in self.nodes}

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses.values())

    @property
    def running(self) -> list[NodeProcess]:
        return [node for node in self.nodes if node.is_running]

    def start(self, *broker_ids: int) -> None:
        """These (none named: all) are started, serve, and are known to every node that runs."""
        started = [self[broker_id] for broker_id in broker_ids] or self.nodes
        for node in started:
            node.start()
        for node in started:
            node.wait_ready()
        self.wait_known()

    def wait_known(self) -> None:
        """Until every node that runs knows exactly those that run, and a controller among them."""
        ids = {node.broker_id for node in self.running}
        for node in self.running:
            until(partial(brokers_and_controller, node), right=lambda seen: seen[0] == ids and seen[1] in ids)

    def controller(self) -> NodeProcess:
        """Who rules, once all that run agree on it."""
        running = self.running

        def opinions() -> set[int]:
            return {node.metadata(version=1)["controller_id"] for node in running}

        (broker_id,) = until(opinions, right=lambda ids: len(ids) == 1 and -1 not in ids)
        return self[broker_id]

    def others(self, node: NodeProcess) -> list[NodeProcess]:
        """All that run but this one."""
        return [each for each in self.running if each is not node]

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()


def brokers_and_controller(node: NodeProcess) -> tuple[set[int], int]:
    seen = node.metadata(version=1)
    return {broker["node_id"] for broker in seen["brokers"]}, seen["controller_id"]


@contextmanager
def running_nodes(
    directory: Path, zookeepers: Sequence[str], settings: Mapping[str, str] | None = None
) -> Iterator[Nodes]:
    """They run for the length of the block. None of them may have stumbled: no traceback in any
    log.
    """
    nodes = Nodes(directory, zookeepers, settings)
    try:
        nodes.start()
        yield nodes
    finally:
        nodes.kill()
    for node in nodes:
        said = node.log.read_text()
        assert "Traceback" not in said, f"node {node.broker_id} stumbled:\n{said}"

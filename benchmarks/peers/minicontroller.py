"""minicontroller itself: one process of three nodes on either store, and three processes on ZooKeeper."""

import sys

from .base import HOST, Process, System, free_ports, wait_for_ready_line
from .java import KAFKA_WITH_ZOOKEEPER, ZooKeeper, jars, missing_java

READY_SECONDS = 30.0
SESSION_MS = 6000

PROPERTIES = """\
broker.id={node_id}
listeners=PLAINTEXT://{host}:{port}
zookeeper.connect={zookeeper}
zookeeper.session.timeout.ms={session_ms}
auto.create.topics.enable=false
"""


class OnMemory(System):
    """`minicontroller up` on the embedded store."""

    name = "minicontroller-memory"
    title = "minicontroller, embedded store"
    forwards = True

    def __init__(self) -> None:
        super().__init__()
        self.interpreter = [sys.executable]  # a profiler puts itself in here

    @classmethod
    def missing(cls) -> str | None:
        return None

    def start(self) -> None:
        log = self.folder / "log.txt"
        log.unlink(missing_ok=True)
        command = [*self.interpreter, "-m", "minicontroller", "up", "--brokers", "3", "--port", "0"]
        process = Process([*command, "--store", self.store(), "--set", "auto.create.topics.enable=false"], log=log)
        self.nodes[0] = process
        self.addresses = wait_for_ready_line(process, READY_SECONDS)

    def store(self) -> str:
        return "memory"


class _WithZooKeeper(System):
    """A ZooKeeper server of the same jars and options as the peer's."""

    forwards = True
    durable = True

    def __init__(self) -> None:
        super().__init__()
        self._zookeeper: ZooKeeper | None = None

    @classmethod
    def missing(cls) -> str | None:
        return missing_java()

    def prepare(self) -> None:
        jars(KAFKA_WITH_ZOOKEEPER)
        self._zookeeper = ZooKeeper(self.folder)

    def close(self) -> None:
        self.stop()
        if self._zookeeper is not None:
            self._zookeeper.stop()
            self._zookeeper = None
        super().close()

    def zookeeper(self) -> str | None:
        return None if self._zookeeper is None else f"{self._zookeeper.connect}/minicontroller"

    def zookeeper_pid(self) -> int | None:
        return None if self._zookeeper is None else self._zookeeper.process.pid


class OnZooKeeper(_WithZooKeeper, OnMemory):
    """`minicontroller up` on a ZooKeeper."""

    name = "minicontroller-zookeeper"
    title = "minicontroller on ZooKeeper"

    def store(self) -> str:
        return f"zookeeper://{self.zookeeper()}"


class Processes(_WithZooKeeper):
    """Three times `minicontroller serve`, as one runs it where it must survive."""

    name = "minicontroller-processes"
    title = "minicontroller on ZooKeeper, three processes"
    separate_processes = True

    def prepare(self) -> None:
        super().prepare()
        self.addresses = [(HOST, port) for port in free_ports(3)]

    def start(self) -> None:
        for node_id in range(1, len(self.addresses) + 1):
            self.restart_node(node_id)

    def restart_node(self, node_id: int) -> None:
        home = self.folder / f"node-{node_id}"
        home.mkdir(exist_ok=True)
        host, port = self.addresses[node_id - 1]
        properties = home / "server.properties"
        properties.write_text(
            PROPERTIES.format(node_id=node_id, host=host, port=port, zookeeper=self.zookeeper(), session_ms=SESSION_MS)
        )
        command = [sys.executable, "-m", "minicontroller", "serve", "--config", str(properties)]
        self.nodes[node_id] = Process(command, log=home / "log.txt")

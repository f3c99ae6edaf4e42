"""minicontroller itself: one process of three nodes on either store, and three processes on
ZooKeeper.
"""

import sys

from .base import HOST, Process, System, free_ports, wait_for_ready_line
from .java import WithZooKeeper

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
        settings = {"auto.create.topics.enable": "false", **self.settings}
        sets = [each for key, value in settings.items() for each in ("--set", f"{key}={value}")]
        process = Process([*self.command(), "--store", self.store(), *sets], log=log)
        self.nodes[0] = process
        self.addresses = wait_for_ready_line(process, READY_SECONDS)

    def command(self) -> list[str]:
        return [*self.interpreter, "-m", "minicontroller", "up", "--brokers", "3", "--port", "0"]

    def store(self) -> str:
        return "memory"


class OnZooKeeper(WithZooKeeper, OnMemory):
    """`minicontroller up` on a ZooKeeper."""

    name = "minicontroller-zookeeper"
    title = "minicontroller on ZooKeeper"
    forwards = True
    chroot = "/minicontroller"

    def store(self) -> str:
        return f"zookeeper://{self.zookeeper()}"


class Processes(WithZooKeeper):
    """Three times `minicontroller serve`, as one runs it where it must survive."""

    name = "minicontroller-processes"
    title = "minicontroller on ZooKeeper, three processes"
    forwards = True
    chroot = "/minicontroller"
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
            PROPERTIES.format(
                node_id=node_id,
                host=host,
                port=port,
                zookeeper=self.zookeeper(),
                session_ms=SESSION_MS,
            )
            + self.more_properties()
        )
        command = [sys.executable, "-m", "minicontroller", "serve", "--config", str(properties)]
        self.nodes[node_id] = Process(command, log=home / "log.txt")

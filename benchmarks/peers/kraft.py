"""A real Kafka without ZooKeeper: three nodes that are broker and controller at once (KRaft's
combined mode).
"""

import signal
import subprocess

from .base import HOST, CannotRunError, Process, System, free_ports
from .java import KAFKA_WITH_KRAFT, jars, java, missing_java

PROPERTIES = """\
process.roles=broker,controller
node.id={node_id}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{quorum_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
controller.quorum.voters={voters}
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
"""
CLUSTER_ID = "bWluaWNvbnRyb2xsZXItYg"  # any 16 bytes in base64


class KRaft(System):
    name = "kraft"
    stop_signal = signal.SIGKILL  # its data goes too, and leaving in order takes it half a minute
    title = f"Kafka {KAFKA_WITH_KRAFT}, KRaft"
    forwards = True

    @classmethod
    def missing(cls) -> str | None:
        return missing_java()

    def prepare(self) -> None:
        jars(KAFKA_WITH_KRAFT)
        ports = free_ports(6)
        self.addresses = [(HOST, port) for port in ports[:3]]
        voters = ",".join(f"{node_id}@{HOST}:{port}" for node_id, port in enumerate(ports[3:], 1))
        for node_id, quorum_port in enumerate(ports[3:], 1):
            self._configure(node_id, quorum_port, voters)

    def start(self) -> None:
        for node_id in range(1, len(self.addresses) + 1):
            home = self.folder / f"node-{node_id}"
            command = java(KAFKA_WITH_KRAFT, "kafka.Kafka", str(home / "server.properties"), heap="512m", folder=home)
            self.nodes[node_id] = Process(command, log=home / "log.txt")

    def _configure(self, node_id: int, quorum_port: int, voters: str) -> None:
        """Writes the node's properties and formats its folder, which KRaft wants before the first
        start.
        """
        home = self.folder / f"node-{node_id}"
        home.mkdir()
        host, port = self.addresses[node_id - 1]
        properties = home / "server.properties"
        properties.write_text(
            PROPERTIES.format(
                node_id=node_id, host=host, port=port, quorum_port=quorum_port, voters=voters, data=home / "data"
            )
        )
        tool = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(properties)]
        command = java(KAFKA_WITH_KRAFT, *tool, heap="256m", folder=home)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotRunError(f"kraft: its folder could not be formatted: {done.stderr.strip()[-500:]}")

"""A real Kafka in ZooKeeper mode: three brokers, a process each, and a ZooKeeper of their own."""

import signal

from ..base import HOST, Process, free_ports
from ..java import KAFKA_WITH_ZOOKEEPER, WithZooKeeper, java

# Kafka's defaults except: one data folder each, small internal topics, the session of 6 s that the
# failover lines are about (Kafka's default until 2.5; 18 s since), and no topic made by a mere
# question.
PROPERTIES = """\
broker.id={node_id}
listeners=PLAINTEXT://{host}:{port}
advertised.listeners=PLAINTEXT://{host}:{port}
zookeeper.connect={zookeeper}
zookeeper.session.timeout.ms={session_ms}
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
"""
SESSION_MS = 6000


class Kafka(WithZooKeeper):
    name = "kafka"
    stop_signal = signal.SIGKILL  # its data goes too, and leaving in order takes it half a minute
    title = f"Kafka {KAFKA_WITH_ZOOKEEPER} on ZooKeeper"
    separate_processes = True
    chroot = "/kafka"

    def prepare(self) -> None:
        super().prepare()
        self.addresses = [(HOST, port) for port in free_ports(3)]

    def start(self) -> None:
        for node_id in range(1, len(self.addresses) + 1):
            self.restart_node(node_id)

    def restart_node(self, node_id: int) -> None:
        home = self.folder / f"broker-{node_id}"
        home.mkdir(exist_ok=True)
        properties = home / "server.properties"
        host, port = self.addresses[node_id - 1]
        properties.write_text(
            PROPERTIES.format(
                node_id=node_id,
                host=host,
                port=port,
                zookeeper=self.zookeeper(),
                session_ms=SESSION_MS,
                data=home / "data",
            )
            + self.more_properties()
        )
        command = java(KAFKA_WITH_ZOOKEEPER, "kafka.Kafka", str(properties), heap="512m", folder=home)
        self.nodes[node_id] = Process(command, log=home / "log.txt")

"""Writes what a real Kafka 3.9.1 in ZooKeeper mode leaves in its znodes: `python -m
tests.vectors.znodes.record`.

Needs Java, and Maven for Kafka's jars (once). Each line of the files is a path, a tab, and the data
as Kafka wrote it - all of it is text - or `null`. The order of keys is Kafka's; ids, ports and
times are of that run.
"""

import json
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from tests.support.kafka import KAFKA_VERSION, KafkaCluster, kafka_libs
from tests.support.ports import free_port

HERE = Path(__file__).parent
WAIT_SECONDS = 60.0
PAUSE_SECONDS = 0.1
MORE_OF_THE_SAME = re.compile(r"/brokers/topics/wide-\d+/partitions/([2-9]|\d\d)")
"""Left out of the files."""
PARTITIONS = (1, 4, 5, 10, 11, 12, 13, 24, 25, 30, 100)
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b" user_a="b";'
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
ADMIN_JAAS = f'{PLAIN_LOGIN} required username="admin" password="b" user_admin="b";'
ACLS = (
    "--allow-principal User:alice --operation Read --operation DescribeConfigs --topic orders",
    "--deny-principal User:bob --deny-host 10.0.0.1 --operation Write --topic orders",
    "--allow-principal User:alice --operation Write --topic ord: --resource-pattern-type prefixed",
    "--allow-principal User:* --operation IdempotentWrite --cluster",
    "--allow-principal User:alice --operation All --group *",
    "--allow-principal User:alice --operation Describe --transactional-id t",
    "--allow-principal User:alice --operation Describe --delegation-token t",
    "--allow-principal User:alice --operation CreateTokens --user-principal User:bob",
    "--allow-principal User:alice --operation Read --topic gone",
)
FEW_CONFIGS = {
    "retention.ms": "60000",
    "cleanup.policy": "compact",
    "min.insync.replicas": "2",
    "segment.bytes": "1048576",
    "compression.type": "gzip",
}
MANY_CONFIGS = {
    **FEW_CONFIGS,
    "retention.bytes": "-1",
    "segment.ms": "100000",
    "max.message.bytes": "1000",
    "flush.ms": "9",
    "flush.messages": "7",
    "index.interval.bytes": "4096",
    "file.delete.delay.ms": "10",
    "segment.jitter.ms": "0",
    "preallocate": "true",
    "message.timestamp.type": "LogAppendTime",
    "unclean.leader.election.enable": "true",
}


class Cluster(KafkaCluster):
    """Node 2 has a second listener."""

    def _properties(self, number: int) -> dict[str, str]:
        properties = super()._properties(number) | {
            "broker.rack": f"rack-{number}",
            "replica.lag.time.max.ms": "2000",
            "zookeeper.session.timeout.ms": "6000",
            "controlled.shutdown.enable": "false",
        }
        if number == 2:
            both = f"PLAINTEXT://{self.addresses[2]},CLIENTS://127.0.0.1:{free_port()}"
            properties |= {"listeners": both, "advertised.listeners": both}
            properties["listener.security.protocol.map"] = "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT"
        return properties


class SecuredCluster(KafkaCluster):
    """Without any listener in plain text, and without a rack."""

    def _properties(self, number: int) -> dict[str, str]:
        address = f"SASL_PLAINTEXT://{self.addresses[number]}"
        return super()._properties(number) | {
            "listeners": address,
            "advertised.listeners": address,
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        }

    def wait_until_complete(self, numbers: set[int]) -> None:
        """Nobody asks it anything: its registration is all that is wanted."""


class AuthorizedCluster(KafkaCluster):
    """With an authorizer, delegation tokens, and a listener where `admin` logs in."""

    def _properties(self, number: int) -> dict[str, str]:
        plain = f"PLAINTEXT://{self.addresses[number]}"
        self.secured = f"127.0.0.1:{free_port()}"
        both = f"{plain},SASL_PLAINTEXT://{self.secured}"
        return super()._properties(number) | {
            "listeners": both,
            "advertised.listeners": both,
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": ADMIN_JAAS,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            "delegation.token.secret.key": "key",
        }


class Znodes:
    """The znodes of a cluster's ZooKeeper."""

    def __init__(self, connect: str) -> None:
        self.client = KazooClient(connect)
        self.client.start()

    def text(self, path: str) -> str:
        return str((self.client.get(path)[0] or b"").decode()) if self.client.exists(path) else ""

    def wait(self, path: str, holds: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not holds(self.text(path)):
            assert time.monotonic() < deadline, f"{path} is {self.text(path)}"
            time.sleep(PAUSE_SECONDS)

    def write(self, name: str, note: str) -> None:
        lines = [f"# Apache Kafka {KAFKA_VERSION}, ZooKeeper mode: {note}"]
        for path in self.walk("/"):
            data = self.client.get(path)[0]
            lines.append(f"{path}\t{'null' if data is None else data.decode()}")
        (HERE / f"{name}.tsv").write_text("\n".join(lines) + "\n")

    def walk(self, path: str) -> Iterator[str]:
        for name in sorted(self.client.get_children(path)):
            child = f"{path.rstrip('/')}/{name}"
            if child != "/zookeeper" and not MORE_OF_THE_SAME.match(child):
                yield child
                yield from self.walk(child)

    def close(self) -> None:
        self.client.stop()
        self.client.close()


def tool(cluster: KafkaCluster, main: str, *arguments: str) -> None:
    command = ["java", "-Xmx64m", "-Dsun.jnu.encoding=UTF-8", "-cp", f"{kafka_libs()}/*", main]
    command += ["--bootstrap-server", cluster.bootstrap, *arguments]
    subprocess.run(command, check=True, capture_output=True)


def alter(cluster: KafkaCluster, entity: str, *change: str) -> None:
    tool(cluster, "kafka.admin.ConfigCommand", "--alter", *entity.split(), *change)


def administer(cluster: KafkaCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = [NewTopic(f"wide-{n}", n, 2) for n in PARTITIONS]
    topics += [NewTopic("orders", 3, 3, config=FEW_CONFIGS), NewTopic("many-configs", 1, 1, config=MANY_CONFIGS)]
    for future in admin.create_topics(topics).values():
        future.result()
    admin.create_partitions([NewPartitions("wide-1", 3)])["wide-1"].result()
    alter(cluster, "--entity-type topics --entity-name orders", "--add-config", "retention.ms=70000,flush.ms=5")
    alter(cluster, "--entity-type topics --entity-name wide-4", "--add-config", "retention.ms=1")
    alter(cluster, "--entity-type topics --entity-name wide-4", "--delete-config", "retention.ms")
    alter(cluster, "--entity-type brokers --entity-name 1", "--add-config", "log.cleaner.threads=2")
    alter(cluster, "--entity-type brokers --entity-default", "--add-config", "log.retention.ms=1000000")
    alter(
        cluster,
        "--entity-type clients --entity-name app",
        "--add-config",
        "producer_byte_rate=1000,consumer_byte_rate=9",
    )
    alter(
        cluster,
        "--entity-type users --entity-name a*b --entity-type clients --entity-default",
        "--add-config",
        "producer_byte_rate=5",
    )
    alter(cluster, "--entity-type ips --entity-name 10.0.0.1", "--add-config", "connection_creation_rate=7")
    alter(
        cluster,
        "--entity-type users --entity-name alice",
        "--add-config",
        "SCRAM-SHA-256=[iterations=4096,password=secret]",
    )
    alter(cluster, "--entity-type users --entity-name alice", "--add-config", "request_percentage=50")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    producer.produce("wide-5", b"x")
    producer.flush(WAIT_SECONDS)


def reassign(znodes: Znodes, topic: str, replicas: list[int]) -> None:
    """By the old way, which asks no broker."""
    wanted = {"topic": topic, "partition": 0, "replicas": replicas}
    znodes.client.create("/admin/reassign_partitions", json.dumps({"version": 1, "partitions": [wanted]}).encode())


def record_cluster() -> None:
    cluster = Cluster(Path(tempfile.mkdtemp()), 3)
    try:
        cluster.start()
        znodes = Znodes(cluster.zookeeper.connect)
        administer(cluster)
        znodes.write("administered", "three brokers, topics and configs made by Kafka's own tools and librdkafka")
        # A reassignment to a broker that does not answer stays half-way, and so does a deletion.
        cluster.processes["broker-3"].send_signal(signal.SIGSTOP)
        reassign(znodes, "many-configs", [3])
        znodes.client.create("/admin/delete_topics/orders", None)
        znodes.wait("/brokers/topics/many-configs", lambda text: '"adding_replicas":{"0"' in text)
        znodes.write("frozen", "broker 3 is frozen; many-configs is being reassigned to it, orders being deleted")
        znodes.wait("/brokers/ids/3", lambda text: not text)
        znodes.wait("/brokers/topics/wide-100/partitions/99/state", lambda text: '"leader":3' not in text)
        znodes.write("failed", "broker 3 has failed")
        znodes.close()
    finally:
        cluster.stop()


def record_secured() -> None:
    cluster = SecuredCluster(Path(tempfile.mkdtemp()), 1)
    try:
        cluster.start()
        znodes = Znodes(cluster.zookeeper.connect)
        znodes.wait("/brokers/ids/1", bool)
        znodes.write("secured", "one broker without a listener in plain text")
        znodes.close()
    finally:
        cluster.stop()


def record_authorized() -> None:
    cluster = AuthorizedCluster(Path(tempfile.mkdtemp()), 1)
    try:
        cluster.start()
        for acl in ACLS:
            tool(cluster, "kafka.admin.AclCommand", "--add", *acl.split())
        gone = "--allow-principal User:alice --operation Read --topic gone"
        tool(cluster, "kafka.admin.AclCommand", "--remove", "--force", *gone.split())
        for quota in (["--add-config", "request_percentage=5.5"], ["--delete-config", "request_percentage"]):
            alter(cluster, "--entity-type users --entity-name b/x~ --entity-type clients --entity-name a.b", *quota)
            alter(cluster, "--entity-type clients --entity-name gone", *quota)
        create = ["java", "-cp", f"{kafka_libs()}/*", str(HERE / "Tokens.java"), cluster.secured, ADMIN_JAAS]
        subprocess.run(create, check=True, capture_output=True)
        znodes = Znodes(cluster.zookeeper.connect)
        znodes.write("authorized", "one broker with ACLs and delegation tokens made by Kafka's own tools")
        znodes.close()
    finally:
        cluster.stop()


if __name__ == "__main__":
    record_cluster()
    record_secured()
    record_authorized()

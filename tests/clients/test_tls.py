"""Real clients over TLS, at nodes of `serve` on a real ZooKeeper that talk to each other over TLS,
too.
"""

import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic

from tests.clients.test_sasl import FORBIDDEN, POLICY, USERS
from tests.faults.tree import Tree
from tests.security.test_key_stores import as_pkcs12
from tests.support.certificates import Authority
from tests.support.cluster import unlike_kafka
from tests.support.forked import COMMAND
from tests.support.maven import VERSIONS, java_tests_hold, needs_maven, time_to_download
from tests.support.nodes import JAAS, Nodes, running_nodes
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = unlike_kafka("the real Kafka of these tests has no TLS")

PASSWORD = "planted-secret"
BETWEEN_NODES = ("SSL", "SASL_SSL")
"""The security protocols between nodes that the tests run with, one after the other."""
LISTENERS = ("CLIENT", "MUTUAL", "LOGIN", "INTERNAL")


class Secured:
    """Three nodes with a listener for each way of being let in."""

    def __init__(self, nodes: Nodes, authority: Authority, tree: Tree, between_nodes: str) -> None:
        self.nodes = nodes
        self.between_nodes = between_nodes
        self.authority = authority
        self.alice = authority.issue("alice", "alice.example")
        self._tree = tree

    def addresses(self, listener: str) -> list[str]:
        rows = [self._tree.json(f"/brokers/ids/{number}")["endpoints"] for number in (1, 2, 3)]
        prefix = f"{listener}://"
        return [each.removeprefix(prefix) for row in rows for each in row if each.startswith(prefix)]

    def not_the_controller(self, listener: str) -> str:
        controller = self.nodes.controller().broker_id
        return next(each for number, each in enumerate(self.addresses(listener), 1) if number != controller)

    def confluent(self, bootstrap: str, **more: Any) -> AdminClient:
        settings: Mapping[str, Any] = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority.file),
            "log_level": 0,
        }
        return AdminClient({**settings, **{key.replace("_", "."): value for key, value in more.items()}})


@contextmanager
def secured_nodes(
    folder: Path, zookeeper: ZooKeeperServer, between_nodes: str, more: Mapping[str, str] | None = None
) -> Iterator[Secured]:
    """By the security protocol between nodes. Their certificates name the address, which each of
    them compares.
    """
    authority = Authority(folder)
    (folder / "policy.py").write_text(POLICY)
    protocols = {"CLIENT": "PLAINTEXT", "MUTUAL": "SSL", "LOGIN": "SASL_SSL", "INTERNAL": between_nodes}
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.login.plain.sasl.jaas.config": USERS,
        "listener.name.internal.plain.sasl.jaas.config": f'{JAAS} username="node" password="secret" user_node="secret";',
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(as_pkcs12(authority.issue("node", "127.0.0.1"), PASSWORD)),
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.mutual.ssl.principal.mapping.rules": "RULE:^OU=([^,]+),.*$/$1/",
        "listener.name.internal.ssl.client.auth": "required",
        "topic.management.policy.class.name": f"{folder / 'policy.py'}:WhoAsks",
        **(more or {}),
    }
    chroot = f"/{folder.name}"
    with running_nodes(folder, [zookeeper.connect + chroot] * 3, settings) as nodes:
        with Tree(zookeeper.connect, chroot) as tree:
            yield Secured(nodes, authority, tree, between_nodes)
        for node in nodes:
            assert PASSWORD not in node.output


@pytest.fixture(scope="module", params=BETWEEN_NODES)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer
) -> Iterator[Secured]:
    with secured_nodes(tmp_path_factory.mktemp("tls"), zookeeper, request.param) as nodes:
        yield nodes


def test_confluent_kafka_shows_its_certificate(secured: Secured, topic: str) -> None:
    """What librdkafka asks a node that is not the controller is done in the name that the rules
    make of its certificate, over TLS between the nodes.
    """
    pem = str(secured.alice)
    admin = secured.confluent(secured.not_the_controller("MUTUAL"), ssl_certificate_location=pem, ssl_key_location=pem)
    admin.create_topics([NewTopic(topic, 2, 3)])[topic].result()
    for address in secured.addresses("MUTUAL"):
        another = secured.confluent(address, ssl_certificate_location=pem, ssl_key_location=pem)
        until(lambda another=another: topic in another.list_topics(timeout=60).topics)  # type: ignore[misc]
    with pytest.raises(KafkaException, match="refused to User:alice"):
        admin.create_topics([NewTopic(f"{FORBIDDEN}{topic}", 1, 1)])[f"{FORBIDDEN}{topic}"].result()
    admin.delete_topics([topic])[topic].result()


def test_confluent_kafka_without_a_certificate_is_told_so(secured: Secured) -> None:
    """It is not let in, and the log of the node has the reason."""
    with pytest.raises(KafkaException):
        secured.confluent(secured.addresses("MUTUAL")[0]).list_topics(timeout=2)
    until(lambda: "it has shown no certificate, and this listener demands one" in secured.nodes[1].output)


def test_kafka_python_logs_in_over_tls(secured: Secured, topic: str) -> None:
    """With SASL_SSL the user counts, and no certificate is asked for."""
    admin = KafkaAdminClient(
        bootstrap_servers=secured.not_the_controller("LOGIN"),
        security_protocol="SASL_SSL",
        ssl_cafile=str(secured.authority.file),
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password="alice-secret",
    )
    admin.create_topics([PythonNewTopic(topic, 2, 3)])
    until(lambda: topic in admin.list_topics())
    with pytest.raises(Exception, match="refused to User:alice"):
        admin.create_topics([PythonNewTopic(f"{FORBIDDEN}{topic}", 1, 1)])
    admin.delete_topics([topic])
    admin.close()


def test_stores_are_changed_as_kafka_changes_them(secured: Secured, tmp_path: Path) -> None:
    """A node is given another key store while it runs, by a client, under the name of its listener.
    What Kafka refuses is refused, before anything is written: files that are no stores, and the
    certificate of somebody else.
    """
    authority = Authority(tmp_path, parent=secured.authority)
    renewed = authority.issue("node", "127.0.0.1").rename(tmp_path / "renewed.pem")
    key = "listener.name.login.ssl.keystore."
    expected = {
        "/none.pem": "names a file that cannot be read: /none.pem",
        str(secured.authority.file): "must hold a certificate and the private key that belongs to it",
        str(authority.issue("another", "127.0.0.1")): "Keystore DistinguishedName does not match",
        str(authority.issue("node", "localhost")): "Keystore SubjectAltNames do not match",
    }
    admin = AdminClient({"bootstrap.servers": secured.nodes[1].address, "log_level": 0})
    for file, why in expected.items():
        with pytest.raises(KafkaException) as raised:
            changed(admin, {f"{key}type": "PEM", f"{key}location": file})
        assert raised.value.args[0].code() == KafkaError.INVALID_REQUEST
        assert raised.value.args[0].str().startswith("Validation of dynamic config update of SSLFactory failed: ")
        assert why in raised.value.args[0].str()
    before = shown_by(secured.addresses("LOGIN")[0])
    changed(admin, {f"{key}type": "PEM", f"{key}location": str(renewed)})
    until(lambda: shown_by(secured.addresses("LOGIN")[0]) != before)
    assert shown_by(secured.addresses("MUTUAL")[0]) == before


def changed(admin: AdminClient, configs: Mapping[str, str]) -> None:
    """The configs of node 1."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()]
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=entries)
    admin.incremental_alter_configs([resource])[resource].result()


def shown_by(address: str) -> str:
    host, _, port = address.rpartition(":")
    return ssl.get_server_certificate((host, int(port)))


def test_our_own_commands_speak_tls(secured: Secured, tmp_path: Path, topic: str) -> None:
    """The file of a client serves `ping` and every other command."""
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.authority.file}\n"
        f"ssl.keystore.location={as_pkcs12(secured.alice, PASSWORD)}\nssl.keystore.password={PASSWORD}\n"
    )
    address = secured.not_the_controller("MUTUAL")
    assert called("ping", "--command-config", str(config), address).startswith("ready: controller ")
    called("topics", "create", topic, "--bootstrap-server", address, "--command-config", str(config))
    called("topics", "delete", topic, "--yes", "--bootstrap-server", address, "--command-config", str(config))


def called(*arguments: str) -> str:
    return subprocess.run([COMMAND, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.slow
@time_to_download
@needs_maven
def test_the_java_admin_client_shows_its_certificate(secured: Secured, tmp_path: Path) -> None:
    """It reads the stores that were made for it, checks the names of the nodes, and does its
    work. Each of its versions meets one of the protocols between nodes, which it cannot see.
    """
    version = dict(zip(BETWEEN_NODES, VERSIONS, strict=True))[secured.between_nodes]
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SSL\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.authority.file}\n"
        f"ssl.keystore.type=PKCS12\nssl.keystore.location={as_pkcs12(secured.alice, PASSWORD)}\n"
        f"ssl.keystore.password={PASSWORD}\n"
    )
    java_tests_hold(
        f"-Dkafka.version={version}",
        f"-Dbootstrap.servers={secured.not_the_controller('MUTUAL')}",
        f"-Dnodes={','.join(secured.addresses('MUTUAL'))}",
        f"-Dclient.config={config}",
        "-Dtest=OverviewTest,TopicsTest",
    )

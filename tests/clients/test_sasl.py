"""Real clients that authenticate by SASL/PLAIN: at nodes of `serve` on a real ZooKeeper, and at
those of `up`.
"""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic
from kafka.errors import KafkaTimeoutError, PolicyViolationError

from tests.faults.tree import Tree
from tests.support.cluster import running_cluster, unlike_kafka
from tests.support.maven import java_tests_hold, needs_maven, time_to_download
from tests.support.nodes import JAAS, WITH_A_LISTENER_FOR_NODES, running_nodes
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = unlike_kafka("the real Kafka of these tests authenticates nobody")

CHROOT = "/sasl"
USERS = f'{JAAS} user_alice="alice-secret" user_bob="bob-secret";'
FORBIDDEN = "forbidden-"
POLICY = f'''
from minicontroller.policies import PolicyViolation, TopicManagementPolicy


class WhoAsks(TopicManagementPolicy):
    """Tells whoever makes a topic with such a name who he is."""

    def validate_create_topic(self, request, cluster):
        if request.topic.startswith("{FORBIDDEN}"):
            raise PolicyViolation(f"refused to {{request.principal}}")
'''


class Secured:
    """A cluster whose clients authenticate."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses
        """In the order of the nodes' ids."""
        self.controller_id = self.confluent(self.addresses[0]).list_topics(timeout=60).controller_id

    @property
    def not_the_controller(self) -> str:
        return next(address for number, address in enumerate(self.addresses, 1) if number != self.controller_id)

    @staticmethod
    def confluent(
        bootstrap: str, user: str = "alice", password: str | None = None, more: Mapping[str, Any] | None = None
    ) -> AdminClient:
        return AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": password or f"{user}-secret",
                "log_level": 0,
                **(more or {}),
            }
        )

    @staticmethod
    def python(bootstrap: str, user: str = "alice", password: str | None = None, **more: Any) -> KafkaAdminClient:
        return KafkaAdminClient(
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_plain_username=user,
            sasl_plain_password=password or f"{user}-secret",
            **{"sasl_mechanism": "PLAIN", **more},
        )


class Told(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture(scope="module", params=["serve", "up"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Three nodes that authenticate clients and each other, with a policy at the controller."""
    folder = tmp_path_factory.mktemp("sasl")
    policy = folder / "policy.py"
    policy.write_text(POLICY)
    settings = {"topic.management.policy.class.name": f"{policy}:WhoAsks"}
    if request.param == "up":
        settings |= {
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
            "listener.name.plaintext.plain.sasl.jaas.config": USERS,
        }
        with running_cluster(settings=settings) as cluster:
            yield Secured(cluster.bootstrap.split(","))
    else:
        zookeeper: ZooKeeperServer = request.getfixturevalue("zookeeper")
        yield from secured_nodes(folder, zookeeper, settings)


def secured_nodes(folder: Path, zookeeper: ZooKeeperServer, settings: dict[str, str]) -> Iterator[Secured]:
    """With a third listener, for whoever looks after the nodes: it is the one that they name when
    they are ready.
    """
    settings |= WITH_A_LISTENER_FOR_NODES | {
        "listeners": "CLIENT://127.0.0.1:0,SECURE://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,SECURE:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": USERS,
    }
    with running_nodes(folder, [zookeeper.connect + CHROOT] * 3, settings), Tree(zookeeper.connect, CHROOT) as tree:
        endpoints = [tree.json(f"/brokers/ids/{number}")["endpoints"] for number in (1, 2, 3)]
        prefix = "SECURE://"
        yield Secured([each.removeprefix(prefix) for row in endpoints for each in row if each.startswith(prefix)])


# ------------------------------------------------------------------ who is let in


def test_confluent_kafka_does_its_work(secured: Secured, topic: str) -> None:
    """A librdkafka client authenticates at each node that it comes to: a topic is made, described
    at every node, configured and deleted.
    """
    admin = secured.confluent(secured.not_the_controller)
    admin.create_topics([NewTopic(topic, 2, 3)])[topic].result()
    for address in secured.addresses:
        until(lambda address=address: topic in secured.confluent(address).list_topics(timeout=60).topics)  # type: ignore[misc]
    resource = ConfigResource(
        ResourceType.TOPIC,
        topic,
        incremental_configs=[ConfigEntry("retention.ms", "1234", incremental_operation=AlterConfigOpType.SET)],
    )
    admin.incremental_alter_configs([resource])[resource].result()
    until(lambda: admin.describe_configs([resource])[resource].result()["retention.ms"].value == "1234")
    admin.delete_topics([topic])[topic].result()


def test_kafka_python_does_its_work(secured: Secured, topic: str) -> None:
    """Such a client sends writes to any node, here to one that is not the controller: they are
    forwarded between authenticated nodes.
    """
    admin = secured.python(secured.not_the_controller)
    admin.create_topics([PythonNewTopic(topic, 2, 3)])
    until(lambda: topic in admin.list_topics())
    admin.delete_topics([topic])
    until(lambda: topic not in admin.list_topics())
    admin.close()


def test_nobody_is_asked_again(secured: Secured) -> None:
    """Without `connections.max.reauth.ms` no session has a lifetime: librdkafka, which tells of
    every lifetime, tells of none.
    """
    log = logging.Logger("librdkafka")  # noqa: LOG001 - one that nobody else hears
    told = Told()
    log.addHandler(told)
    client = secured.confluent(secured.not_the_controller, more={"debug": "security", "logger": log, "log_level": 7})
    client.list_topics(timeout=60)
    client.poll(0)
    assert any("Received SASL frame from broker" in line for line in told.lines)
    assert not any("session lifetime" in line for line in told.lines)


# ------------------------------------------------------------------ who he is


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_the_policy_knows_who_asks(secured: Secured, topic: str, user: str) -> None:
    """The policy at the controller sees the user who authenticated at whichever node, by every
    client (K590-2a).
    """
    name = FORBIDDEN + topic
    for address in secured.addresses:
        confluent = secured.confluent(address, user)
        with pytest.raises(KafkaException, match=f"refused to User:{user}"):
            confluent.create_topics([NewTopic(name, 1, 1)])[name].result()
        python = secured.python(address, user)
        with pytest.raises(PolicyViolationError, match=f"refused to User:{user}"):
            python.create_topics([PythonNewTopic(name, 1, 1)])
        python.close()


# ------------------------------------------------------------------ who is not


def authentication_errors(
    secured: Secured, user: str = "alice", password: str | None = None, more: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the errors that librdkafka's callback tells of a client that is not let in."""
    errors: list[KafkaError] = []
    client = secured.confluent(secured.not_the_controller, user, password, {"error_cb": errors.append, **(more or {})})

    def refusals() -> list[str]:
        client.poll(0.05)
        return [error.str() for error in errors if error.code() == KafkaError._AUTHENTICATION]

    return until(refusals)


@pytest.mark.parametrize("user", ["alice", "mallory"])
def test_a_wrong_password_is_told_as_such(secured: Secured, user: str) -> None:
    """Clients of librdkafka read Kafka's own text, the same for a wrong password and an unknown
    user; and no topic is shown to him.
    """
    first = authentication_errors(secured, user, "guess")[0]
    assert "Authentication failed: Invalid username or password" in first
    with pytest.raises(KafkaException):
        secured.confluent(secured.not_the_controller, user, "guess").list_topics(timeout=0.5)


def test_a_mechanism_that_is_not_offered_is_told_what_is(secured: Secured) -> None:
    """Clients of librdkafka read which mechanisms the listener has."""
    first = authentication_errors(secured, more={"sasl.mechanism": "SCRAM-SHA-256"})[0]
    assert "broker's supported mechanisms: PLAIN" in first


@pytest.mark.parametrize(
    "wrong", [{"password": "guess"}, {"sasl_mechanism": "SCRAM-SHA-256"}], ids=["password", "mechanism"]
)
def test_kafka_python_is_not_let_in(secured: Secured, wrong: dict[str, str]) -> None:
    """It tries again until its own patience ends. (Whether it reads the node's error or only the
    end of the connection behind it is chance in this client, at a real Kafka too.)
    """
    with pytest.raises(KafkaTimeoutError):
        secured.python(secured.not_the_controller, bootstrap_timeout_ms=700, **wrong)


def test_a_client_without_sasl_is_cut_off(secured: Secured) -> None:
    """A request before authentication ends the connection: nothing of the cluster is shown."""
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": secured.not_the_controller, "log_level": 0}).list_topics(timeout=0.5)


@pytest.mark.slow
@time_to_download
@needs_maven
def test_the_java_admin_client(secured: Secured) -> None:
    """It does its work as a user whom the policy knows, and reads Kafka's errors where it is not
    let in.
    """
    java_tests_hold(
        f"-Dbootstrap.servers={secured.not_the_controller}",
        f"-Dnodes={','.join(secured.addresses)}",
        "-Duser=alice",
        "-Dpassword=alice-secret",
        "-Dtest=SaslTest,OverviewTest",
    )

"""ACLs in earnest: nodes of `serve` on a real ZooKeeper with Kafka's AclAuthorizer, real clients
who log in, and Kafka's own `kafka-acls`, which writes to ZooKeeper beside the nodes.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka.admin
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePatternFilter,
)
from kafka.errors import ClusterAuthorizationFailedError

from tests.faults.tree import Tree
from tests.support.cluster import MiniCluster, running_cluster, unlike_kafka
from tests.support.java import java
from tests.support.kafka import kafka_libs
from tests.support.maven import VERSIONS, java_tests_hold, needs_maven, time_to_download
from tests.support.nodes import JAAS, WITH_A_LISTENER_FOR_NODES, running_nodes
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = unlike_kafka("the real Kafka of these tests has no authorizer")

CHROOT = "/acls"
USERS = f'{JAAS} user_admin="admin-secret" user_alice="alice-secret" user_bob="bob-secret";'
SETTINGS = WITH_A_LISTENER_FOR_NODES | {
    "listeners": "CLIENT://127.0.0.1:0,SECURE://127.0.0.1:0,INTERNAL://127.0.0.1:0",
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,SECURE:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
    "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.secure.plain.sasl.jaas.config": USERS,
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
    "metadata.completion": "cluster",
}
LIMIT_SECONDS = 150
ANYTHING: Any = None  # which librdkafka's type hints do not allow
ANY_ACL = AclBindingFilter(
    ResourceType.ANY, ANYTHING, ResourcePatternType.ANY, ANYTHING, ANYTHING, AclOperation.ANY, AclPermissionType.ANY
)


class Guarded:
    """A cluster whose clients may do what the ACLs say; `admin` may do everything."""

    def __init__(self, zookeeper: str, addresses: list[str]) -> None:
        self.zookeeper = zookeeper
        self.addresses = addresses
        """In the order of the nodes' ids."""
        self.admin = self.client(addresses[0], "admin")
        self.controller_id = self.admin.list_topics(timeout=60).controller_id

    @property
    def not_the_controller(self) -> str:
        return next(address for number, address in enumerate(self.addresses, 1) if number != self.controller_id)

    def client(self, address: str, user: str) -> AdminClient:
        return AdminClient(
            {
                "bootstrap.servers": address,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": user,
                "sasl.password": f"{user}-secret",
                "log_level": 0,
            }
        )

    def sees(self, address: str, user: str) -> set[str]:
        """The topics that a node shows to a user."""
        return set(self.client(address, user).list_topics(timeout=60).topics)

    def kafka_acls(self, *words: str) -> str:
        """Return the output of Kafka's tool, which writes to ZooKeeper itself."""
        command = [*java(kafka_libs()), "kafka.admin.AclCommand"]
        command += ["--authorizer-properties", f"zookeeper.connect={self.zookeeper}", *words]
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        assert run.returncode == 0, run.stderr
        return run.stdout


@pytest.fixture(name="guarded", scope="module")
def guarded_cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Guarded]:
    folder, place = tmp_path_factory.mktemp("acls"), zookeeper.connect + CHROOT
    with running_nodes(folder, [place] * 3, SETTINGS), Tree(zookeeper.connect, CHROOT) as tree:
        endpoints = [tree.json(f"/brokers/ids/{number}")["endpoints"] for number in (1, 2, 3)]
        prefix = "SECURE://"
        yield Guarded(
            place, [each.removeprefix(prefix) for row in endpoints for each in row if each.startswith(prefix)]
        )


def allow(name: str, operation: AclOperation, user: str = "alice", *, prefixed: bool = False) -> AclBinding:
    pattern_type = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, name, pattern_type, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def filter_of(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        acl.restype, acl.name, acl.resource_pattern_type, acl.principal, acl.host, acl.operation, acl.permission_type
    )


def test_an_acl_is_in_force_on_every_node_when_it_is_acknowledged(guarded: Guarded) -> None:
    """An ACL that is made through one node opens all of them at once, and one that is removed while
    its holder is connected closes their next request (K4-L4b).
    """
    guarded.admin.create_topics([NewTopic("force-1", 1, 1)])["force-1"].result()
    acl = allow("force-", AclOperation.READ, prefixed=True)
    at_each = [guarded.client(address, "alice") for address in guarded.addresses]
    giver = guarded.client(guarded.not_the_controller, "admin")
    for _ in range(5):
        assert [set(client.list_topics(timeout=60).topics) & {"force-1"} for client in at_each] == [set()] * 3
        giver.create_acls([acl])[acl].result()
        assert [set(client.list_topics(timeout=60).topics) & {"force-1"} for client in at_each] == [{"force-1"}] * 3
        assert giver.delete_acls([filter_of(acl)])[filter_of(acl)].result() == [acl]


def test_a_change_is_decided_under_the_callers_own_name(guarded: Guarded) -> None:
    """Through a node that is not the controller, alice makes what she may make and nothing else
    (K590-5b).
    """
    made = allow("own-", AclOperation.CREATE, prefixed=True)
    guarded.admin.create_acls([made])[made].result()
    alice = guarded.client(guarded.not_the_controller, "alice")
    futures = alice.create_topics([NewTopic("own-1", 1, 1), NewTopic("foreign-1", 1, 1)])
    futures["own-1"].result()
    with pytest.raises(KafkaException) as refused:
        futures["foreign-1"].result()
    assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaException) as refused:
        alice.create_acls([allow("own-", AclOperation.ALL)])[allow("own-", AclOperation.ALL)].result()
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED


def test_whoever_may_not_describe_the_cluster_sees_no_acls(guarded: Guarded) -> None:
    """kafka-python tells of the refusal; librdkafka shows no ACLs, also of a real Kafka's."""
    acl = allow("seen-", AclOperation.ALL)
    guarded.admin.create_acls([acl])[acl].result()
    assert acl in guarded.admin.describe_acls(ANY_ACL).result()
    assert guarded.client(guarded.addresses[0], "alice").describe_acls(ANY_ACL).result() == []
    alice = KafkaAdminClient(
        bootstrap_servers=guarded.not_the_controller,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="alice",
        sasl_plain_password="alice-secret",
    )
    everything = ResourcePatternFilter(kafka.admin.ResourceType.ANY, None, ACLResourcePatternType.ANY)
    with pytest.raises(ClusterAuthorizationFailedError):
        alice.describe_acls(ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, everything))
    alice.close()


@needs_maven
def test_kafka_acls_reads_ours_and_its_changes_are_seen(guarded: Guarded) -> None:
    """`kafka-acls` works on ZooKeeper, not on us: we follow its notifications, and it finds what
    we wrote.
    """
    guarded.admin.create_topics([NewTopic("tool-1", 1, 1)])["tool-1"].result()
    ours = allow("tool-", AclOperation.WRITE, "bob", prefixed=True)
    guarded.admin.create_acls([ours])[ours].result()
    listed = guarded.kafka_acls("--list", "--topic", "tool-1", "--resource-pattern-type", "match")
    assert "name=tool-, patternType=PREFIXED" in listed
    assert "(principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW)" in listed

    guarded.kafka_acls("--add", "--allow-principal", "User:alice", "--operation", "Describe", "--topic", "tool-1")
    for address in guarded.addresses:
        until(lambda address=address: "tool-1" in guarded.sees(address, "alice"))  # type: ignore[misc]
    guarded.kafka_acls("--add", "--deny-principal", "User:bob", "--operation", "Describe", "--topic", "tool-1")
    for address in guarded.addresses:
        until(lambda address=address: "tool-1" not in guarded.sees(address, "bob"))  # type: ignore[misc]
    found = AclBindingFilter(
        ResourceType.TOPIC,
        "tool-1",
        ResourcePatternType.MATCH,
        ANYTHING,
        ANYTHING,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert {(acl.principal, acl.permission_type) for acl in guarded.admin.describe_acls(found).result()} == {
        ("User:alice", AclPermissionType.ALLOW),
        ("User:bob", AclPermissionType.ALLOW),
        ("User:bob", AclPermissionType.DENY),
    }
    # We write over its znode in the version that it left, and it over ours.
    more = allow("tool-1", AclOperation.READ)
    guarded.admin.create_acls([more])[more].result()
    guarded.kafka_acls("--remove", "--force", "--topic", "tool-1")
    for address in guarded.addresses:
        until(lambda address=address: "tool-1" not in guarded.sees(address, "alice"))  # type: ignore[misc]
    until(lambda: guarded.admin.describe_acls(found).result(), right=lambda left: left == [ours])


@pytest.mark.slow
@time_to_download
@needs_maven
@pytest.mark.parametrize("version", VERSIONS)
def test_the_java_admin_client(guarded: Guarded, version: str) -> None:
    """It changes ACLs as a super user, and reads Kafka's errors as somebody else."""
    java_tests_hold(
        f"-Dkafka.version={version}",
        f"-Dbootstrap.servers={guarded.not_the_controller}",
        f"-Dnodes={','.join(guarded.addresses)}",
        "-Duser=admin",
        "-Dpassword=admin-secret",
        "-Dtest=AclsTest",
    )


AUTHORIZER = """
from minicontroller import policies


class Owners(policies.Authorizer):
    follows_acls = True

    def authorize(self, requester, actions):
        if requester.client_id == "unlucky" and requester.api == "CreateTopics":
            raise policies.UndecidedError("the directory of owners cannot be reached")
        if requester.client_id == "broken" and requester.api == "CreateTopics":
            raise KeyError("broken")
        return [True if action.resource_name.startswith("mine-") else None for action in actions]
"""


def test_an_authorizer_in_python_decides_beside_the_acls(tmp_path: Path) -> None:
    """Its True is enough, what it leaves open is up to the ACLs, its own exception refuses the
    request with Kafka's code (K4-L4a), and any other one denies.
    """
    file = tmp_path / "access.py"
    file.write_text(AUTHORIZER)
    name = f"{file}:Owners"
    with running_cluster(settings={"authorizer.class.name": name, "super.users": "User:admin"}) as cluster:
        assert outcome(cluster, "mine-1") == KafkaError.NO_ERROR
        assert outcome(cluster, "theirs-1") == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert outcome(cluster, "mine-2", client_id="unlucky") == KafkaError.REQUEST_TIMED_OUT
        assert outcome(cluster, "mine-3", client_id="broken") == KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert set(AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=60).topics) == {"mine-1"}


def outcome(cluster: MiniCluster, topic: str, client_id: str = "tests") -> int:
    """The code of the creation of a topic."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "client.id": client_id, "log_level": 0})
    try:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    except KafkaException as error:
        code: int = error.args[0].code()
        return code
    return int(KafkaError.NO_ERROR)

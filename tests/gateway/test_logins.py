"""A gateway whose clients come over TLS and log in at the broker, which has TLS, too."""

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.certificates import Authority
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.waiting import until

PASSWORD = "planted-secret"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = f'{PLAIN} user_gateway="{PASSWORD}" user_alice="{PASSWORD}";'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def cluster(authority: Authority) -> Iterator[MiniCluster]:
    """One node that lets in who logs in over TLS, and alice alone make topics."""
    settings = {
        "listeners": "LOGIN://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "LOGIN:SASL_SSL,INTERNAL:SASL_PLAINTEXT",
        "listener.name.login.plain.sasl.jaas.config": USERS,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("node", "127.0.0.1")),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:alice;User:node",
    }
    with running_cluster(brokers=1, settings=settings) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def gateway(cluster: MiniCluster, authority: Authority) -> Iterator[GatewayProcess]:
    settings = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("gateway", "127.0.0.1")),
        "upstream.security.protocol": "SASL_SSL",
        "upstream.ssl.truststore.type": "PEM",
        "upstream.ssl.truststore.location": str(authority.file),
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.jaas.config": f'{PLAIN} username="gateway" password="{PASSWORD}";',
    }
    with running_gateway(cluster.bootstrap, settings=settings) as gateway:
        yield gateway
        assert PASSWORD not in gateway.output


def admin(gateway: GatewayProcess, authority: Authority, user: str, password: str = PASSWORD) -> AdminClient:
    settings: dict[str, Any] = {
        "bootstrap.servers": gateway.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority.file),
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }
    return AdminClient(settings)


def test_the_cluster_knows_who_asks(gateway: GatewayProcess, authority: Authority) -> None:
    """The login of each client reaches the broker, whose ACLs decide on alice and not on the
    gateway (U-3e).
    """
    for user, allowed in (("alice", True), ("gateway", False)):
        client = admin(gateway, authority, user)  # which ends what it began when it is forgotten
        future = client.create_topics([NewTopic(f"of-{user}", 1, 1)])[f"of-{user}"]
        if allowed:
            assert future.result(30) is None
        else:
            with pytest.raises(KafkaException) as refused:
                future.result(30)
            assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_a_wrong_password(gateway: GatewayProcess, authority: Authority) -> None:
    """The broker refuses a login, and the client gets nothing else (U-3e)."""
    with pytest.raises(KafkaException):
        admin(gateway, authority, "alice", "wrong").list_topics(timeout=3)


def test_a_client_without_tls(gateway: GatewayProcess) -> None:
    """A client that speaks no TLS gets nothing."""
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": gateway.bootstrap, "log_level": 0}).list_topics(timeout=3)


def test_a_certificate_that_names_nobody(authority: Authority) -> None:
    """A client whose certificate the rules name nobody for is turned away, as at a node."""
    settings = {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("strict", "127.0.0.1")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=known$/known/",
    }
    pem = str(authority.issue("stranger", "stranger.example"))
    with running_cluster(brokers=1) as plain, running_gateway(plain.bootstrap, settings=settings) as strict:
        client = AdminClient(
            {
                "bootstrap.servers": strict.bootstrap,
                "security.protocol": "SSL",
                "ssl.ca.location": str(authority.file),
                "ssl.certificate.location": pem,
                "ssl.key.location": pem,
                "log_level": 0,
            }
        )
        with pytest.raises(KafkaException):
            client.list_topics(timeout=3)
        until(lambda: "mapping.rules" in strict.output)


@pytest.mark.parametrize("keystore", ["", "missing.pem"])
def test_no_certificate_to_show(cluster: MiniCluster, keystore: str) -> None:
    """A gateway that cannot speak TLS as it is configured says why, and ends."""
    settings = {"security.protocol": "SSL"}
    if keystore:
        settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": keystore}
    gateway = GatewayProcess(cluster.bootstrap, settings=settings)
    assert gateway.wait() == 1
    gateway.kill()
    assert "Traceback" not in gateway.output
    assert (keystore or "ssl.keystore.location") in gateway.output

"""Real clients that log in by SCRAM and by signed tokens, at nodes on a real ZooKeeper which log in
to each other by SCRAM, and Kafka's own tool for users.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from joserfc import jwt
from joserfc.jwk import RSAKey
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonNewTopic
from kafka.errors import KafkaTimeoutError
from kafka.net.sasl.oauth import AbstractTokenProvider

from minicontroller.security.scram_credentials import credential_text, derived_credential
from tests.faults.tree import Tree
from tests.support.cluster import unlike_kafka
from tests.support.java import java
from tests.support.kafka import kafka_libs
from tests.support.maven import needs_maven, time_to_download
from tests.support.nodes import JAAS, WITH_A_LISTENER_FOR_NODES, running_nodes
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

pytestmark = [pytest.mark.slow, unlike_kafka("the real Kafka of these tests authenticates nobody")]

CHROOT = "/mechanisms"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = ("PLAIN", *SCRAM, "OAUTHBEARER")
USER, PASSWORD = "al=ice,b", "planted,sécret="
"""With all that SCRAM escapes. kafka-python escapes nothing, so it has a user of its own."""
PYTHON_USER = "erin"
LOGIN = "org.apache.kafka.common.security"
TOOL_SECONDS = 150
LET_IN_MS, REFUSED_MS = 30_000, 700
"""How long kafka-python tries: where it is to be let in, however busy the machine is, and where it
is not.
"""


def token(key: Any, **changed: Any) -> str:
    now = int(time.time())
    claims = {"sub": USER, "iss": "issuer", "aud": "kafka", "iat": now, "exp": now + 600, **changed}
    return jwt.encode({"alg": "RS256", "kid": "k1"}, claims, key, algorithms=["RS256"])


class Provider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives kafka-python the same token each time."""

    def __init__(self, value: str) -> None:
        super().__init__()
        self._value = value

    def token(self) -> str:
        return self._value


class Secured:
    """A cluster whose clients can log in by every mechanism."""

    def __init__(self, zookeeper: str, key: Any) -> None:
        self.zookeeper = zookeeper
        self.key = key
        with Tree(zookeeper, CHROOT) as tree:
            endpoints = [tree.json(f"/brokers/ids/{number}")["endpoints"] for number in (1, 2, 3)]
        self.open, self.secure = (
            [each.removeprefix(f"{name}://") for row in endpoints for each in row if each.startswith(name)]
            for name in ("CLIENT", "SECURE")
        )

    def confluent(self, address: str, mechanism: str, *, right: bool = True, **more: Any) -> AdminClient:
        login: dict[str, Any] = {
            "bootstrap.servers": address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "log_level": 0,
            **more,
        }
        if mechanism == "OAUTHBEARER":
            shown = token(self.key if right else RSAKey.generate_key(2048, {"kid": "k1"}))
            login["oauth_cb"] = lambda _config: (shown, time.time() + 600)
        else:
            login |= {"sasl.username": USER, "sasl.password": PASSWORD if right else "guess"}
        return AdminClient(login)

    def python(self, address: str, mechanism: str, *, right: bool = True, **more: Any) -> KafkaAdminClient:
        if mechanism == "OAUTHBEARER":
            shown = token(self.key if right else RSAKey.generate_key(2048, {"kid": "k1"}))
            login: dict[str, Any] = {"sasl_oauth_token_provider": Provider(shown)}
        else:
            user = USER if mechanism == "PLAIN" else PYTHON_USER
            login = {"sasl_plain_username": user, "sasl_plain_password": PASSWORD if right else "guess"}
        return KafkaAdminClient(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            **login,
            **more,
        )

    def is_let_in(self, address: str, user: str, password: str, *, patience_ms: int = LET_IN_MS) -> bool:
        """Whether a user can log in by SCRAM at this node now. The client asks until its patience
        ends, since it does not tell a refusal from a slow answer.
        """
        client = KafkaAdminClient
        try:
            client(
                bootstrap_servers=address,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism=SCRAM[0],
                sasl_plain_username=user,
                sasl_plain_password=password,
                bootstrap_timeout_ms=patience_ms,
            ).close()
        except KafkaTimeoutError:
            return False
        return True


def settings(folder: Path, key: Any) -> dict[str, str]:
    jwks = folder / "jwks.json"
    jwks.write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    prefix = "listener.name.secure"
    return WITH_A_LISTENER_FOR_NODES | {
        "listeners": "CLIENT://127.0.0.1:0,SECURE://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,SECURE:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
        "metadata.completion": "cluster",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.internal.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.internal.scram-sha-512.sasl.jaas.config": (
            f'{LOGIN}.scram.ScramLoginModule required username="node" password="node-secret";'
        ),
        f"{prefix}.sasl.enabled.mechanisms": ",".join(MECHANISMS),
        f"{prefix}.plain.sasl.jaas.config": f'{JAAS} "user_{USER}"="{PASSWORD}";',
        f"{prefix}.oauthbearer.sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        f"{prefix}.oauthbearer.sasl.server.callback.handler.class": (
            f"{LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": jwks.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "issuer",
    }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Secured]:
    """Three nodes, and the users that ZooKeeper had before they started."""
    folder = tmp_path_factory.mktemp("mechanisms")
    key = RSAKey.generate_key(2048, {"kid": "k1"})
    users = {
        "node": {"SCRAM-SHA-512": derived_credential("SCRAM-SHA-512", "node-secret")},
        **{
            user: {name: derived_credential(name, PASSWORD, 8192) for name in SCRAM}
            for user in ("al%3Dice%2Cb", PYTHON_USER)
        },
    }
    with Tree(zookeeper.connect, "") as tree:
        for user, credentials in users.items():
            configs = {name: credential_text(credential) for name, credential in credentials.items()}
            data = json.dumps({"version": 1, "config": configs}).encode()
            tree.client.create(f"{CHROOT}/config/users/{user}", data, makepath=True)
    with running_nodes(folder, [zookeeper.connect + CHROOT] * 3, settings(folder, key)):
        yield Secured(zookeeper.connect, key)


# ------------------------------------------------------------------ who is let in


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka_does_its_work(secured: Secured, topic: str, mechanism: str) -> None:
    """A client of librdkafka is let in by each mechanism at each node, and its topic is made."""
    admin = secured.confluent(secured.secure[0], mechanism)
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result()
    for address in secured.secure:
        assert topic in secured.confluent(address, mechanism).list_topics(timeout=60).topics


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_does_its_work(secured: Secured, topic: str, mechanism: str) -> None:
    """So does kafka-python, which has its own SCRAM."""
    admin = secured.python(secured.secure[1], mechanism)
    admin.create_topics([PythonNewTopic(topic, 1, 3)])
    assert topic in admin.list_topics()
    admin.close()


@pytest.mark.parametrize("mechanism", [*SCRAM, "OAUTHBEARER"])
def test_who_proves_nothing_is_told_so(secured: Secured, mechanism: str) -> None:
    """A wrong password, or a token that another key signed, is an error of authentication in both
    clients, and nothing of the cluster is shown.
    """
    errors: list[KafkaError] = []
    client = secured.confluent(secured.secure[0], mechanism, right=False, error_cb=errors.append)

    def refusals() -> list[str]:
        client.poll(0.05)
        return [error.str() for error in errors if error.code() == KafkaError._AUTHENTICATION]

    assert any("invalid credentials with SASL mechanism" in text or "invalid_token" in text for text in until(refusals))
    with pytest.raises(KafkaException):
        client.list_topics(timeout=0.5)
    with pytest.raises(KafkaTimeoutError):
        secured.python(secured.secure[0], mechanism, right=False, bootstrap_timeout_ms=700)


# ------------------------------------------------------------------ users who come and go


def test_a_user_is_known_to_every_node_with_the_answer(secured: Secured) -> None:
    """Made, changed and removed by confluent-kafka at one node, in force at once at every node, as
    metadata.completion=cluster promises.
    """
    admin = AdminClient({"bootstrap.servers": secured.open[0], "log_level": 0})

    def alter(alteration: Any) -> None:
        for future in admin.alter_user_scram_credentials([alteration]).values():
            future.result()

    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    for password in (b"first", b"second"):
        alter(UserScramCredentialUpsertion("carol", info, password))
        assert [secured.is_let_in(each, "carol", password.decode()) for each in secured.secure] == [True] * 3
    assert not secured.is_let_in(secured.secure[2], "carol", "first", patience_ms=REFUSED_MS)
    alter(UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_256))
    assert not secured.is_let_in(secured.secure[1], "carol", "second", patience_ms=REFUSED_MS)


def kafka_configs(*arguments: str) -> str:
    """Kafka's own tool for users, as kafka-configs.sh runs it."""
    command = [*java(kafka_libs()), "kafka.admin.ConfigCommand", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TOOL_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(params=["a node", "a login by SCRAM", "ZooKeeper"])
def tool(request: pytest.FixtureRequest, secured: Secured, tmp_path: Path) -> Callable[..., str]:
    """The tool at a node, as Java's client that logs in by SCRAM, and beside us in ZooKeeper."""
    places: Mapping[str, tuple[str, ...]] = {
        "a node": ("--bootstrap-server", secured.open[1]),
        "a login by SCRAM": ("--bootstrap-server", secured.secure[1], "--command-config", str(tmp_path / "client")),
        "ZooKeeper": ("--zookeeper", secured.zookeeper + CHROOT),
    }
    (tmp_path / "client").write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={LOGIN}.scram.ScramLoginModule required username="{USER}" password="{PASSWORD}";\n'.replace(
            "é", "\\u00e9"
        ),
        encoding="ascii",
    )
    return lambda *arguments: kafka_configs(*places[request.param], "--entity-type", "users", *arguments)


@time_to_download
@needs_maven
def test_kafka_s_own_tool_reads_and_writes_our_users(secured: Secured, tool: Callable[..., str]) -> None:
    """A user that it makes is let in, it describes the users that are there, and a user that it
    removes is let in no more.
    """
    dave = ("--entity-name", "dave")
    tool("--alter", *dave, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=dave-secret]")
    until(lambda: secured.is_let_in(secured.secure[2], "dave", "dave-secret"))
    assert "SCRAM-SHA-256" in tool("--describe", *dave)
    assert "iterations=8192" in tool("--describe", "--entity-name", USER)
    tool("--alter", *dave, "--delete-config", "SCRAM-SHA-256")
    until(lambda: not secured.is_let_in(secured.secure[2], "dave", "dave-secret", patience_ms=REFUSED_MS))

"""A gateway through which clients log in to a real Kafka knows whom the brokers have accepted."""

import json
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
)

from minicontroller.audit.event import Decision
from minicontroller.audit.reading import read_all
from minicontroller.gateway.apis import WITHOUT_DELEGATION_TOKENS
from minicontroller.security.credentials import Credentials, PlainCredentials, ScramCredentials
from tests.support.certificates import Authority
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.kafka_kraft import KraftCluster
from tests.support.login_kafka import BOB, MODULES, PASSWORD, PLAIN, SESSION_MS, login_kafka, trust
from tests.support.sasl import UnsignedCredentials, log_in
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Wire, read_answer, request_frame

VIOLATION, CLUSTER_DENIED, INVALID_REQUEST = 44, 31, 42
FAILED, TOPIC_DENIED, EXISTS = 58, 29, 36
OWN_PASSWORD = "planted-at-the-gateway"
ALICE = PlainCredentials("alice", PASSWORD)
RULES = """
[[name_pattern]]
name = "lower case"
pattern = '[a-z0-9_.-]+'
message = "Names are in lower case."
"""
UNKNOWN_API = struct.pack(">ihhih", 10, 999, 0, 1, -1)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def is_let_in(address: str, credentials: Credentials) -> bool:
    with Wire(address) as wire:
        return log_in(wire, credentials) == 0


@pytest.fixture(scope="module")
def kafka(authority: Authority) -> Iterator[KraftCluster]:
    with login_kafka(authority) as cluster:
        yield cluster


def settings_of(kafka: KraftCluster, authority: Authority, identity: str) -> dict[str, str]:
    """The keys that are common to gateways before this Kafka."""
    return {
        "identity": identity,
        "log.format": "json",
        "upstream.security.protocol": "SASL_SSL",
        **{f"upstream.{key}": value for key, value in trust(authority).items()},
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.jaas.config": f'{PLAIN} username="gateway" password="{PASSWORD}";',
        **({"upstream.controllers": kafka.controllers[1]} if identity == "envelope" else {}),
    }


@contextmanager
def running(kafka: KraftCluster, settings: Mapping[str, str]) -> Iterator[GatewayProcess]:
    with running_gateway(kafka.bootstrap, settings=settings) as gateway:
        yield gateway
        assert PASSWORD not in gateway.output


@pytest.fixture(scope="module")
def gateway(kafka: KraftCluster, authority: Authority) -> Iterator[GatewayProcess]:
    """A gateway through which logins pass."""
    with running(kafka, settings_of(kafka, authority, "pass")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The users whom gateways serve that authenticate them themselves."""
    file = tmp_path_factory.mktemp("users") / "users.properties"
    module = f'{PLAIN} username="shared" password="{PASSWORD}";'
    brief = f'{MODULES}.scram.ScramLoginModule required username="{BOB.username}" password="{PASSWORD}";'
    file.write_text(f"alice={module}\nerin={module}\nfay={brief}\nANONYMOUS={module}\n")
    return file


def own_logins(users: Path) -> dict[str, str]:
    """The keys of a gateway that authenticates clients itself."""
    passwords = " ".join(f'user_{name}="{OWN_PASSWORD}"' for name in ("ANONYMOUS", "alice", "fay", "mallory", "shared"))
    scram = users.parent / "scram.properties"
    scram.write_text(f"erin={OWN_PASSWORD}\n")
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN} {passwords};",
        "identity.scram.file": str(scram),
        "identity.credentials.file": str(users),
    }


def judging(folder: Path) -> dict[str, str]:
    """The keys of a gateway that judges."""
    rules = folder / "rules.toml"
    rules.write_text(RULES)
    return {"policy.rules.files": str(rules), "audit.dir": str(folder / "audit")}


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("judging") / "audit"


@pytest.fixture(scope="module")
def by_envelope(kafka: KraftCluster, authority: Authority, users: Path, audit: Path) -> Iterator[GatewayProcess]:
    """A gateway that judges what clients change, and sends it under their names."""
    settings = {**settings_of(kafka, authority, "envelope"), **own_logins(users), **judging(audit.parent)}
    with running(kafka, settings) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def by_map(kafka: KraftCluster, authority: Authority, users: Path) -> Iterator[GatewayProcess]:
    """A gateway that maps users."""
    with running(kafka, {**settings_of(kafka, authority, "map"), **own_logins(users)}) as gateway:
        yield gateway


def admin_of(gateway: GatewayProcess, user: str, mechanism: str = "PLAIN") -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": gateway.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": OWN_PASSWORD,
            "log_level": 0,
        }
    )


def created(admin: AdminClient, topic: str) -> int:
    """Create a topic, and return the code of the answer."""
    future = admin.create_topics([NewTopic(topic, 1, 1)])[topic]
    try:
        future.result(30)
    except KafkaException as error:
        return int(error.args[0].code())
    return 0


def warnings_of(gateway: GatewayProcess) -> list[dict[str, Any]]:
    lines = [line for line in gateway.output.splitlines() if line.startswith("{")]
    return [each for each in map(json.loads, lines) if "unknown API" in each["message"]]


def principal_after(gateway: GatewayProcess, *logins: Credentials) -> str | None:
    """Return the name that the gateway takes a client for who has logged in so: its log says it of
    the next mistake.
    """
    before = len(warnings_of(gateway))
    with Wire(gateway.bootstrap) as wire:
        for login in logins:
            assert log_in(wire, login) == 0
        wire.send(UNKNOWN_API)
        with pytest.raises(ConnectionEndedError):
            wire.receive()
    until(lambda: len(warnings_of(gateway)) > before)
    principal: str | None = warnings_of(gateway)[-1].get("principal")
    return principal


def test_the_name_is_learned(gateway: GatewayProcess) -> None:
    """Each mechanism that tells a name tells it to the gateway, a re-authentication too."""
    until(lambda: is_let_in(gateway.bootstrap, BOB))  # the broker follows its controller
    assert principal_after(gateway) is None
    assert principal_after(gateway, ALICE) == "User:alice"
    assert principal_after(gateway, BOB) == "User:b=o,b"
    assert principal_after(gateway, UnsignedCredentials("carol")) == "User:carol"
    assert principal_after(gateway, ALICE, ALICE) == "User:alice"


def test_a_name_counts_once_it_is_proved(gateway: GatewayProcess) -> None:
    """A login that the broker refuses makes nobody of the client, whatever it said."""
    for wrong in (PlainCredentials("alice", "wrong"), ScramCredentials(BOB.username, "wrong", "SCRAM-SHA-512")):
        with Wire(gateway.bootstrap) as wire:
            assert log_in(wire, wrong) == FAILED
    with Wire(gateway.bootstrap) as wire:
        assert wire.ask("SaslHandshake", 1, {"mechanism": "SCRAM-SHA-512"})["error_code"] == 0
        first = next(BOB.exchange())
        assert wire.ask("SaslAuthenticate", 2, {"auth_bytes": first})["error_code"] == 0
        before = len(warnings_of(gateway))
        wire.send(UNKNOWN_API)
        until(lambda: len(warnings_of(gateway)) > before)
    assert warnings_of(gateway)[-1]["principal"] is None


def test_a_login_is_small(gateway: GatewayProcess) -> None:
    """A login that is announced to be large ends the connection before it is read."""
    with Wire(gateway.bootstrap) as wire:
        wire.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
        wire.send(struct.pack(">ihhih", 1 << 20, 36, 2, 1, -1))
        with pytest.raises(ConnectionEndedError):
            wire.receive()
    until(lambda: "a login of" in gateway.output)


def judged(kafka: KraftCluster, user: str, topic: str) -> list[str]:
    """The lines of the authorizer's audit log about a user and a topic."""
    return [line for line in kafka.log(1).splitlines() if f"User:{user} is" in line and f":{topic} " in line]


def test_the_cluster_judges_the_client_itself(kafka: KraftCluster, by_envelope: GatewayProcess) -> None:
    """With an Envelope, the authorizer of the cluster and its audit log see the client's own
    principal and address, whatever user its reads go under.
    """
    alice, erin = admin_of(by_envelope, "alice"), admin_of(by_envelope, "erin", "SCRAM-SHA-512")
    assert created(alice, "of-alice-1") == 0
    assert created(erin, "of-alice-2") == TOPIC_DENIED
    assert created(alice, "of-shared-1") == TOPIC_DENIED
    with Wire(by_envelope.bootstrap, login=("alice", OWN_PASSWORD), source="127.0.0.2") as wire:
        wanted = {"name": "of-shared-1", "num_partitions": 1, "replication_factor": 1}
        assert wire.ask("CreateTopics", 4, {"topics": [wanted], "timeout_ms": 1000})["topics"]
    assert any("from host = 127.0.0.2" in line for line in judged(kafka, "alice", "of-shared-1"))
    until(lambda: "of-alice-1" in erin.list_topics(timeout=30).topics)
    assert any("is Allowed operation = CREATE" in line for line in judged(kafka, "alice", "of-alice-1"))
    assert any("is Denied operation = CREATE" in line for line in judged(kafka, "erin", "of-alice-2"))
    assert not any("CREATE" in line for line in judged(kafka, "shared", "of-alice-1"))


def test_the_gateway_and_the_cluster_judge(by_envelope: GatewayProcess, audit: Path) -> None:
    """Of one request the policy refuses a topic, the cluster's authorizer another one, and the rest
    is made; the client gets all answers in its order, and the audit log has its name.
    """
    names = ("of-alice-LOUD", "of-shared-3", "of-alice-5")
    with Wire(by_envelope.bootstrap, login=("alice", OWN_PASSWORD)) as wire:
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]
        answer = wire.ask("CreateTopics", 7, {"topics": topics, "timeout_ms": 30_000})
    assert [(row["name"], row["error_code"]) for row in answer["topics"]] == [
        (names[0], VIOLATION),
        (names[1], TOPIC_DENIED),
        (names[2], 0),
    ]
    assert until(lambda: recorded(audit, names), right=lambda found: found.keys() >= set(names)) == dict.fromkeys(
        names, "User:alice"
    )


def recorded(audit: Path, names: Sequence[str]) -> dict[str, str | None]:
    """Return who asked for these topics, as the audit log has it."""
    events = (each.event for each in read_all([audit]))
    return {each.name: each.principal for each in events if isinstance(each, Decision) and each.name in names}


def test_nobody_is_nobody(by_envelope: GatewayProcess) -> None:
    """A user whose name the cluster gives to whoever has not authenticated is not let in."""
    with Wire(by_envelope.bootstrap) as wire:
        assert log_in(wire, PlainCredentials("ANONYMOUS", OWN_PASSWORD)) == FAILED


def test_configs_of_brokers(by_envelope: GatewayProcess) -> None:
    """A controller would take any config of a broker: these go to the broker under the user of the
    file, who lacks the right, which Kafka 4.1.1 looks at before the value; and not together with
    others.
    """
    broker = {"resource_type": 4, "resource_name": "1"}
    topic = {"resource_type": 2, "resource_name": "of-alice-1"}
    codes = []
    with Wire(by_envelope.bootstrap, login=("alice", OWN_PASSWORD)) as wire:
        for value, resources in (("2", [broker]), ("abc", [broker]), ("2", [broker, topic])):
            configs = [{"name": "log.cleaner.threads", "config_operation": 0, "value": value}]
            rows = [{**each, "configs": configs} for each in resources]
            answer = wire.ask("IncrementalAlterConfigs", 1, {"resources": rows})
            codes.append([each["error_code"] for each in answer["responses"]])
    assert codes == [[CLUSTER_DENIED], [CLUSTER_DENIED], [INVALID_REQUEST, INVALID_REQUEST]]


def test_nobody_is_judged_who_has_not_logged_in(kafka: KraftCluster, authority: Authority, tmp_path: Path) -> None:
    """Where logins pass, a stranger does not learn the policy of the gateway, also not behind a
    login that fails.
    """
    body = {"topics": [{"name": "of-alice-LOUD", "num_partitions": 1, "replication_factor": 1}], "timeout_ms": 30_000}
    with running(kafka, {**settings_of(kafka, authority, "pass"), **judging(tmp_path)}) as gateway:
        for login in (b"", b"\0alice\0wrong", f"\0alice\0{PASSWORD}".encode()):
            with Wire(gateway.bootstrap) as wire:
                if login:
                    wire.send(request_frame("SaslHandshake", 1, {"mechanism": "PLAIN"}))
                    wire.send(request_frame("SaslAuthenticate", 1, {"auth_bytes": login}))
                wire.send(request_frame("CreateTopics", 4, body))
                answers = [wire.receive() for _ in range(2 if login else 0)]
                if login.endswith(PASSWORD.encode()):
                    (row,) = read_answer("CreateTopics", 4, wire.receive())["topics"]
                    assert row["error_code"] == VIOLATION
                else:
                    with pytest.raises((ConnectionEndedError, OSError)):
                        wire.receive()
                assert len(answers) == (2 if login else 0)


def test_the_connection_to_the_broker_logs_in_again(by_map: GatewayProcess) -> None:
    """A client is served for longer than a session of its user at the broker lasts."""
    until(lambda: is_served(by_map, "fay"))  # the broker follows its controller
    with Wire(by_map.bootstrap, login=("fay", OWN_PASSWORD)) as wire:
        end = time.monotonic() + 1.2 * SESSION_MS / 1000
        while time.monotonic() < end:
            assert wire.ask("Metadata", 1, {"topics": []})["brokers"]


def is_served(gateway: GatewayProcess, user: str) -> bool:
    with Wire(gateway.bootstrap, login=(user, OWN_PASSWORD)) as wire, suppress(ConnectionEndedError):
        return bool(wire.ask("Metadata", 1, {"topics": []})["brokers"])
    return False


def test_what_makes_no_sense_is_hidden(by_map: GatewayProcess) -> None:
    """Delegation tokens, with which nobody could log in at the gateway, are hidden and refused."""
    with Wire(by_map.bootstrap, login=("alice", OWN_PASSWORD)) as wire:
        keys = {row["api_key"] for row in wire.ask("ApiVersions", 0, {})["api_keys"]}
        assert keys <= WITHOUT_DELEGATION_TOKENS.keys()
        assert {17, 36} <= keys
        with pytest.raises(ConnectionEndedError):
            wire.ask("DescribeDelegationToken", 1, {"owners": None})


def test_users_are_mapped(kafka: KraftCluster, by_map: GatewayProcess, users: Path) -> None:
    """The cluster sees the user to whom a client is mapped, and a client without one is refused as
    for a wrong password; the file is followed.
    """
    assert created(admin_of(by_map, "alice"), "of-shared-2") == 0
    assert created(admin_of(by_map, "alice"), "of-alice-3") == TOPIC_DENIED
    assert judged(kafka, "shared", "of-shared-2")
    assert not judged(kafka, "alice", "of-shared-2")
    mallory = PlainCredentials("mallory", OWN_PASSWORD)
    with Wire(by_map.bootstrap) as wire:
        assert wire.ask("ApiVersions", 0, {})["error_code"] == 0
        assert log_in(wire, mallory) == FAILED
    until(lambda: "no credentials are configured for the user 'mallory'" in by_map.output)
    good = users.read_text()
    users.write_text(f'alice={PLAIN} username="alice" password="{PASSWORD}";\nmallory={PLAIN}')
    until(lambda: "users.properties, line 2" in by_map.output)
    users.write_text(f'alice={PLAIN} username="alice" password="{PASSWORD}";\n')
    until(lambda: created(admin_of(by_map, "alice"), "of-alice-4") in (0, EXISTS))
    users.write_text(good)

"""A gateway through which clients log in to a real Kafka knows whom the brokers have accepted."""

import json
import struct
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from minicontroller.controller.security.credentials import Credentials, PlainCredentials, ScramCredentials, Tokens
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.kafka_kraft import KraftCluster, started
from tests.support.sasl import log_in, unsigned_token
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Wire

PASSWORD = "planted-secret"
MODULES = "org.apache.kafka.common.security"
PLAIN = f"{MODULES}.plain.PlainLoginModule required"
PREFIX = "listener.name.clients"
FAILED = 58
ALICE = PlainCredentials("alice", PASSWORD)
BOB = ScramCredentials("b=o,b", PASSWORD, "SCRAM-SHA-512")
UNKNOWN_API = struct.pack(">ihhih", 10, 999, 0, 1, -1)


class BearerCredentials(msgspec.Struct, frozen=True):
    """A token that nobody signed."""

    username: str
    mechanism: str = "OAUTHBEARER"
    basis: object = None

    def exchange(self) -> Tokens:
        now = int(time.time())
        yield unsigned_token({"sub": self.username, "iat": now, "exp": now + 600})


def is_let_in(address: str, credentials: Credentials) -> bool:
    with Wire(address) as wire:
        return log_in(wire, credentials) == 0


@pytest.fixture(scope="module")
def kafka() -> Iterator[KraftCluster]:
    """One node whose clients log in, by passwords and by tokens that nobody signed."""
    settings = {
        f"{PREFIX}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        f"{PREFIX}.plain.sasl.jaas.config": f'{PLAIN} user_alice="{PASSWORD}";',
        f"{PREFIX}.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        f"{PREFIX}.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        f"{PREFIX}.oauthbearer.sasl.jaas.config": f"{MODULES}.oauthbearer.OAuthBearerLoginModule required;",
        f"{PREFIX}.plain.connections.max.reauth.ms": "600000",
    }
    folder = Path(tempfile.mkdtemp(prefix="kafka-"))
    cluster = KraftCluster(folder, "4.1.0", settings=settings, protocol="SASL_PLAINTEXT")
    with started(cluster):
        admin = AdminClient({"bootstrap.servers": cluster.internal[1]})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(BOB.username, info, PASSWORD.encode())
        admin.alter_user_scram_credentials([change])[BOB.username].result(30)
        until(lambda: is_let_in(cluster.bootstrap, BOB))  # the broker follows its controller
        yield cluster


@pytest.fixture(scope="module")
def gateway(kafka: KraftCluster) -> Iterator[GatewayProcess]:
    settings = {
        "log.format": "json",
        "upstream.security.protocol": "SASL_PLAINTEXT",
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.jaas.config": f'{PLAIN} username="alice" password="{PASSWORD}";',
    }
    with running_gateway(kafka.bootstrap, settings=settings) as gateway:
        yield gateway
        assert PASSWORD not in gateway.output


def warnings_of(gateway: GatewayProcess) -> list[dict[str, Any]]:
    lines = [line for line in gateway.output.splitlines() if line.startswith("{")]
    return [each for each in map(json.loads, lines) if "unknown API" in each["message"]]


def principal_after(gateway: GatewayProcess, *logins: Credentials) -> str | None:
    """Whom the gateway takes a client for that has logged in so: its log says it of the next
    mistake.
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
    assert principal_after(gateway) is None
    assert principal_after(gateway, ALICE) == "User:alice"
    assert principal_after(gateway, BOB) == "User:b=o,b"
    assert principal_after(gateway, BearerCredentials("carol")) == "User:carol"
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

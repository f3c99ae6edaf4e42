"""A gateway that authenticates clients itself, by passwords or certificates, and whatever strangers
do instead of logging in.
"""

import json
import socket
import ssl
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey

from minicontroller.security.credentials import PlainCredentials, ScramCredentials, Tokens
from tests.support.certificates import Authority
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess, running_gateway
from tests.support.sasl import log_in
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Wire, read_answer, request_frame

PASSWORD, UPSTREAM_PASSWORD = "planted-at-the-gateway", "planted-at-the-brokers"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ALICE = PlainCredentials("alice", PASSWORD)
BEARER = "org.apache.kafka.common.security.oauthbearer"
OF_TOKENS = "listener.name.clients.oauthbearer"
KEY = RSAKey.generate_key(2048, {"kid": "k1"})
UNSUPPORTED_MECHANISM, ILLEGAL_STATE, FAILED, DENIED = 33, 34, 58, 29
SESSION_MS = 4000
UNKNOWN_API = struct.pack(">ihhih", 10, 999, 0, 1, -1)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    """One node that lets two users in, of whom the one called `maker` alone may make topics."""
    users = " ".join(f'user_{name}="{UPSTREAM_PASSWORD}"' for name in ("gateway", "maker", "reader"))
    settings = {
        "listeners": "LOGIN://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "LOGIN:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
        "listener.name.login.plain.sasl.jaas.config": f"{PLAIN} {users};",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:maker;User:node",
    }
    with running_cluster(brokers=1, settings=settings) as cluster:
        yield cluster


@contextmanager
def running(cluster: MiniCluster, folder: Path, settings: Mapping[str, str]) -> Iterator[GatewayProcess]:
    """A gateway whose users are known to the cluster under other names."""
    rows = {"alice": "maker", "bob": "reader", r"OU\=alice,O\=tests": "maker"}
    module = f'{PLAIN} username="{{}}" password="{UPSTREAM_PASSWORD}";'
    file = folder / "users.properties"
    file.write_text("".join(f"{name}={module.format(user)}\n" for name, user in rows.items()))
    common = {
        "identity": "map",
        "identity.credentials.file": str(file),
        "log.format": "json",
        "upstream.security.protocol": "SASL_PLAINTEXT",
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.jaas.config": module.format("gateway"),
    }
    with running_gateway(cluster.bootstrap, settings={**common, **settings}) as gateway:
        yield gateway
        assert PASSWORD not in gateway.output
        assert UPSTREAM_PASSWORD not in gateway.output


@pytest.fixture(scope="module")
def gateway(cluster: MiniCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "scram.properties").write_text(f"bob={PASSWORD}\n")
    (folder / "jwks.json").write_text(json.dumps({"keys": [KEY.as_dict(private=False)]}))
    users = f'user_alice="{PASSWORD}" user_bob="{PASSWORD}" user_mallory="{PASSWORD}"'
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN} {users};",
        "identity.scram.file": str(folder / "scram.properties"),
        f"{OF_TOKENS}.sasl.jaas.config": f"{BEARER}.OAuthBearerLoginModule required;",
        f"{OF_TOKENS}.sasl.server.callback.handler.class": f"{BEARER}.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "jwks.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "connections.max.reauth.ms": str(SESSION_MS),
        "connection.failed.authentication.delay.ms": "0",
    }
    with running(cluster, folder, settings) as gateway:
        yield gateway


class SignedCredentials(msgspec.Struct, frozen=True):
    """A signed token."""

    username: str
    mechanism: str = "OAUTHBEARER"
    basis: object = None

    def exchange(self) -> Tokens:
        now = int(time.time())
        claims = {"sub": self.username, "aud": "kafka", "iat": now, "exp": now + 600}
        token = jwt.encode({"alg": "RS256", "kid": "k1"}, claims, KEY, algorithms=["RS256"])
        yield f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def creation(topic: str) -> dict[str, Any]:
    topics = [{"name": topic, "num_partitions": 1, "replication_factor": 1}]
    return {"topics": topics, "timeout_ms": 30_000, "validate_only": True}


def test_each_user_is_another_one_at_the_brokers(gateway: GatewayProcess) -> None:
    """The cluster's ACLs decide on the user of the file, whatever mechanism the client has used."""
    logins = (
        (ALICE, 0),
        (ScramCredentials("bob", PASSWORD, "SCRAM-SHA-256"), DENIED),
        (SignedCredentials("alice"), 0),
        (SignedCredentials("bob"), DENIED),
    )
    for login, code in logins:
        with Wire(gateway.bootstrap) as wire:
            assert log_in(wire, login) == 0
            answer = wire.ask("CreateTopics", 4, creation("t"))
            assert answer["topics"][0]["error_code"] == code


def test_a_client_authenticates_again(gateway: GatewayProcess) -> None:
    """A client may authenticate again while its session lasts, and as nobody else; when it has
    ended, nothing else is answered.
    """
    with Wire(gateway.bootstrap) as wire:
        assert log_in(wire, ALICE) == log_in(wire, ALICE) == 0
        assert wire.ask("Metadata", 1, {"topics": []})["brokers"]
        with pytest.raises(ConnectionEndedError):
            ask_for_ever(wire)
    until(lambda: "the session has expired" in gateway.output)
    with Wire(gateway.bootstrap) as wire:
        assert log_in(wire, ALICE) == 0
        assert log_in(wire, PlainCredentials("bob", PASSWORD)) == FAILED


def test_the_wrong_order(gateway: GatewayProcess) -> None:
    """Tokens without a handshake, unknown mechanisms, requests before and amid a login, and
    refused users get an error or the end of the connection, and never the cluster.
    """
    with Wire(gateway.bootstrap) as wire:
        assert wire.ask("SaslAuthenticate", 1, {"auth_bytes": b"\0alice\0x"})["error_code"] == ILLEGAL_STATE
        answer = wire.ask("SaslHandshake", 1, {"mechanism": "GSSAPI"})
        assert (answer["error_code"], sorted(answer["mechanisms"])) == (
            UNSUPPORTED_MECHANISM,
            ["OAUTHBEARER", "PLAIN", "SCRAM-SHA-256"],
        )
        ends(wire)
    for login in (
        PlainCredentials("alice", "x"),
        PlainCredentials("nobody", "x"),
        PlainCredentials("mallory", PASSWORD),
    ):
        with Wire(gateway.bootstrap) as wire:
            assert log_in(wire, login) == FAILED
            ends(wire)
    for before in ("", "PLAIN"):
        with Wire(gateway.bootstrap) as wire:
            if before:
                assert wire.ask("SaslHandshake", 1, {"mechanism": before})["error_code"] == 0
            ends(wire)
    with Wire(gateway.bootstrap) as wire:
        wire.send(struct.pack(">ihhih", 1 << 20, 18, 0, 1, -1))
        with pytest.raises(ConnectionEndedError):
            wire.receive()


def ask_for_ever(wire: Wire) -> None:
    while True:
        wire.ask("Metadata", 1, {"topics": []})


def ends(wire: Wire) -> None:
    with pytest.raises((ConnectionEndedError, OSError)):
        wire.ask("Metadata", 1, {"topics": []})


def test_whatever_strangers_send(gateway: GatewayProcess) -> None:
    """Requests of a login with random bytes in them, one behind the other, harm nobody else; the
    gateway's log has no traceback when it stops.
    """
    random = Random(7)
    login = [
        request_frame("SaslHandshake", 1, {"mechanism": "PLAIN"}),
        request_frame("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0wrong"}),
        request_frame("SaslHandshake", 1, {"mechanism": "SCRAM-SHA-256"}),
        request_frame("SaslAuthenticate", 2, {"auth_bytes": b"n,,n=bob,r=nonce"}),
        request_frame("ApiVersions", 0, {}),
        request_frame("Metadata", 1, {"topics": []}),
    ]
    for _ in range(60):
        frames = bytearray(b"".join(random.choices(login, k=random.randint(1, 5))))
        for _ in range(random.randint(0, 4)):
            frames[random.randrange(4, len(frames))] = random.randrange(256)
        with Wire(gateway.bootstrap) as stranger:
            stranger.send(bytes(frames))
    with Wire(gateway.bootstrap) as wire:
        assert log_in(wire, ALICE) == 0
        assert wire.ask("Metadata", 1, {"topics": []})["brokers"]


class TlsWire:
    """A connection over TLS that shows a certificate."""

    def __init__(self, address: str, authority: Authority, certificate: Path) -> None:
        host, _, port = address.rpartition(":")
        context = ssl.create_default_context(cafile=str(authority.file))
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(socket.create_connection((host, int(port)), 30), server_hostname=host)

    def ask(self, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        self.socket.sendall(request_frame(api, version, body))
        with self.socket.makefile("rb") as stream:
            size = stream.read(4)
            if len(size) < 4:
                raise ConnectionEndedError
            return read_answer(api, version, stream.read(int.from_bytes(size)))


def tls(authority: Authority) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("gateway", "127.0.0.1")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
    }


def test_certificates(cluster: MiniCluster, authority: Authority, tmp_path: Path) -> None:
    """A certificate names the user by itself; one whom the file does not name is not served."""
    alice = authority.issue("alice", "alice.example")
    mallory = authority.issue("mallory", "mallory.example")
    with running(cluster, tmp_path, tls(authority)) as gateway:
        wire = TlsWire(gateway.bootstrap, authority, alice)
        assert wire.ask("CreateTopics", 4, creation("t"))["topics"][0]["error_code"] == 0
        stranger = TlsWire(gateway.bootstrap, authority, mallory)
        with pytest.raises((ConnectionEndedError, OSError)):
            stranger.ask("Metadata", 1, {"topics": []})
        until(lambda: "no credentials are configured for the user 'OU=mallory,O=tests'" in gateway.output)
        wire.socket.close()
        stranger.socket.close()


def test_a_certificate_where_logins_pass(authority: Authority) -> None:
    """The gateway takes a client for whom its certificate names, by the rules for names."""
    rules = {"ssl.principal.mapping.rules": "RULE:^OU=([a-z]+),.*$/$1/", "log.format": "json"}
    with (
        running_cluster(brokers=1) as plain,
        running_gateway(plain.bootstrap, settings={**tls(authority), **rules}) as gateway,
    ):
        wire = TlsWire(gateway.bootstrap, authority, authority.issue("carol", "carol.example"))
        assert wire.ask("Metadata", 1, {"topics": []})["brokers"]
        wire.socket.sendall(UNKNOWN_API)
        until(lambda: "unknown API" in gateway.output)
        wire.socket.close()
        lines = [json.loads(line) for line in gateway.output.splitlines() if "unknown API" in line]
        assert lines[-1]["principal"] == "User:carol"

"""Secrets planted wherever a gateway can be given one, by its configuration, by clients and by its
policy, and looked for in everything that it gives out.
"""

import os
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from minicontroller.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from minicontroller.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minicontroller.protocol.registry import KAFKA
from tests.browser.test_secrets import NEWER, SECRET, ask, change, forms
from tests.cli.command import call
from tests.handlers.altering import BROKER, TOPIC
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.gateway import GatewayProcess
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Wire

pytestmark = pytest.mark.slow

PLACES = (
    "of-the-client", "of-the-gateway", "of-the-users", "that-is-wrong", "in-a-cut-request", "of-a-broker", "of-a-listener",
    "of-a-plugin", "in-a-trace", "of-a-topic", "of-a-new-topic", "in-a-salted-password", "in-an-hmac", "in-a-token-login",
    "of-the-page", "in-a-url", "of-the-tokens",
)  # fmt: skip
SECRETS: Mapping[str, str] = {place: f"S3cret-{number:02}-{place}" for number, place in enumerate(PLACES)}
CLIENT, OWN, USERS, PAGE = (
    SECRETS[place] for place in ("of-the-client", "of-the-gateway", "of-the-users", "of-the-page")
)
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ROUTES = (
    "/", "/metrics", "/health/ready", "/api/state", "/api/topics", "/api/topic?name=kept", "/api/decisions", "/api/history",
    "/api/history?name=kept", "/api/history?name=new", "/api/history?refused=1", "/api/deleted?search=k",
)  # fmt: skip


class World:
    """A gateway, and how to get at what it gives out."""

    def __init__(self, gateway: GatewayProcess, folder: Path, password: str) -> None:
        self.gateway = gateway
        self.folder = folder
        self.login = ("alice", password)

    def audit(self, *arguments: str) -> bytes:
        outcome = call("audit", *arguments, str(self.folder / "audit"), folder=self.folder)
        return (outcome.stdout + outcome.stderr).encode()

    def get(self, path: str) -> bytes:
        url = f"http://{self.gateway.http}{path}"
        asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {PAGE}"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            data: bytes = answer.read()
        return data


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    users = f'user_gateway="{OWN}" user_alice="{USERS}"'
    settings = {
        "listeners": "LOGIN://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "LOGIN:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
        "listener.name.login.plain.sasl.jaas.config": f"{PLAIN} {users};",
        "delegation.token.secret.key": SECRETS["of-the-tokens"],
    }
    with running_cluster(brokers=1, settings=settings) as cluster:
        yield cluster


def of_map(folder: Path) -> Mapping[str, str]:
    """The keys of a gateway that authenticates clients itself."""
    users = folder / "users.properties"
    users.write_text(f'alice={PLAIN} username="alice" password="{USERS}";\n')
    return {
        "identity": "map",
        "identity.credentials.file": str(users),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN} user_alice="{CLIENT}";',
        "connection.failed.authentication.delay.ms": "1",
    }


@contextmanager
def planted(
    cluster: MiniCluster, folder: Path, settings: Mapping[str, str], password: str, form: str
) -> Iterator[World]:
    (folder / "quoting.py").write_text(NEWER + QUOTING)
    common = {
        "upstream.security.protocol": "SASL_PLAINTEXT",
        "upstream.sasl.mechanism": "PLAIN",
        "upstream.sasl.jaas.config": f'{PLAIN} username="gateway" password="{OWN}";',
        "topic.management.policy.class.name": f"{folder}/quoting.py:Quoting",
        "http.listen": "127.0.0.1:0",
        "http.bearer.token": PAGE,
        "audit.dir": f"{folder}/audit",
        "audit.flush": "always",
        "log.format": form,
    }
    gateway = GatewayProcess(cluster.bootstrap, settings={**common, **settings}, options=["--verbose"])
    try:
        world = World(gateway, folder, password)
        plant(world)
        yield world
        os.kill(gateway.pid, signal.SIGTERM)
        assert gateway.wait() == 0
    finally:
        gateway.kill()
    assert SECRET not in gateway.output


QUOTING = """
    def validate_create_topic(self, request, cluster):
        if "my.topic.token" in request.requested_state.configs:
            raise ValueError(f"cannot judge {request}")

    def validate_alter_broker_configs(self, request, cluster):
        if "my.brokers.other" in request.config_operations:
            raise ValueError(f"cannot judge {request}")
        raise PolicyViolation(f"not {request}")

    def validate_admin(self, request, cluster):
        raise PolicyViolation(f"not {request}")
"""


@pytest.fixture(name="world", scope="module", params=["map", "pass"])
def world_fixture(
    request: pytest.FixtureRequest, cluster: MiniCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A gateway with -v whose policy repeats what it is asked, after all secrets have been given to
    it.
    """
    folder = tmp_path_factory.mktemp("secrets")
    settings, password, form = (of_map(folder), CLIENT, "human") if request.param == "map" else ({}, USERS, "json")
    with planted(cluster, folder, settings, password, form) as world:
        yield world


def plant(world: World) -> None:
    """Everything that a client can do with a secret."""
    counts: dict[str, Any] = {"num_partitions": 1, "replication_factor": 1}
    config = {"name": "my.topic.token", "value": SECRETS["of-a-new-topic"]}
    with Wire(world.gateway.bootstrap, login=world.login) as wire:
        wire.ask("CreateTopics", 5, {"topics": [{"name": "kept", **counts}], "timeout_ms": 30_000})
        wire.ask("CreateTopics", 5, {"topics": [{"name": "new", "configs": [config], **counts}], "timeout_ms": 30_000})
        for name, place in (
            ("ssl.keystore.password", "of-a-broker"),
            ("listener.name.login.plain.sasl.jaas.config", "of-a-listener"),
            ("my.brokers.token", "of-a-plugin"),
            ("my.brokers.other", "in-a-trace"),
        ):
            for value in (SECRETS[place], f'{PLAIN} username="x" password="{SECRETS[place]}";'):
                change(wire, BROKER, "1", name, value)
        change(wire, TOPIC, "kept", "my.topic.token", SECRETS["of-a-topic"])
        salted = SECRETS["in-a-salted-password"].encode()
        upserts = [
            {"name": name, "mechanism": mechanism, "iterations": 4096, "salt": b"salt", "salted_password": salted}
            for name, mechanism in (("carol", 1), ("", 1), ("dave", 9))
        ]
        wire.ask("AlterUserScramCredentials", 0, {"deletions": [], "upsertions": upserts})
    with suppress(ConnectionEndedError), Wire(world.gateway.bootstrap, login=world.login) as wire:
        ask(wire, 3, CreateDelegationTokenRequest(max_lifetime_ms=-1))
        for hmac in (SECRETS["in-an-hmac"].encode(), SECRETS["in-an-hmac"].encode() * 500):
            ask(wire, 2, RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=1))
            ask(wire, 2, ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=1))
    logins(world)
    for path in (f"/api/topic?name={PAGE}-{SECRETS['in-a-url']}", f"/?token={PAGE}"):
        try:
            urllib.request.urlopen(f"http://{world.gateway.http}{path}", timeout=30).close()
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection


def logins(world: World) -> None:
    """Logins that fail: by a wrong password, by a token, and by a request that is cut."""
    token = f"n,,n={SECRETS['in-a-token-login']},r=nonce,tokenauth=true"
    for mechanism, text, cut in (
        ("PLAIN", f"\0alice\0{SECRETS['that-is-wrong']}", 0),
        ("PLAIN", f"\0alice\0{SECRETS['in-a-cut-request']}", 9),
        ("SCRAM-SHA-256", token, 0),
    ):
        with suppress(ConnectionEndedError), Wire(world.gateway.bootstrap) as wire:
            ask(wire, 1, SaslHandshakeRequest(mechanism=mechanism))
            header = RequestHeader(int(ApiKey.SASL_AUTHENTICATE), 2, 1, "c")
            frame = KAFKA.encode_request(header, SaslAuthenticateRequest(auth_bytes=text.encode()))[4:]
            frame = frame[: len(frame) - cut]
            wire.exchange(len(frame).to_bytes(4) + frame)


OUTPUTS: Mapping[str, tuple[Callable[[World], bytes], str]] = {
    "the log": (lambda world: world.gateway.output.encode(), "[hidden]"),
    "audit files": (lambda world: b"".join(map(Path.read_bytes, (world.folder / "audit").iterdir())), "[hidden]"),
    "audit show": (lambda world: world.audit("show"), "[hidden]"),
    "audit show --json": (lambda world: world.audit("show", "--json"), "[hidden]"),
    "audit verify": (lambda world: world.audit("verify"), "events"),
    **{f"GET {path}": (lambda world, path=path: world.get(path), "") for path in ROUTES},  # type: ignore[misc]
}
"""Everything that comes out of a gateway, with something that must be in it."""


def test_no_gateway_gives_a_secret_away(world: World) -> None:
    """No output of a gateway holds a secret, nor a part of one, that somebody has given to it."""
    until(lambda: "failed" in world.gateway.output)
    leaks = []
    for name, (output, sign_of_life) in OUTPUTS.items():
        told = output(world)
        assert sign_of_life.encode() in told, name
        leaks += [(name, place) for place, secret in SECRETS.items() if any(each in told for each in forms(secret))]
        leaks += [(name, "some secret")] * (SECRET.encode() in told)
    assert leaks == []

"""Secrets planted wherever a node can be given one, and looked for in everything that
it gives out.
"""

import base64
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient  # type: ignore[import-untyped]
from playwright.sync_api import Browser, expect

from minicontroller.cluster.znodes.membership import MEMBERSHIP
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from minicontroller.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from minicontroller.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minicontroller.protocol.registry import KAFKA
from tests.cli.command import call
from tests.handlers.altering import BROKER, TOPIC
from tests.support.forked import COMMAND
from tests.support.nodes import JAAS, WITH_A_LISTENER_FOR_NODES, NodeProcess
from tests.support.waiting import until
from tests.support.wire import ConnectionEndedError, Wire
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

PLACES = (
    "of-the-client", "that-is-wrong", "in-a-cut-request", "of-the-nodes", "of-the-keystore", "of-the-encoder", "of-the-key",
    "of-a-broker", "of-a-listener", "of-a-brokers-plugin", "by-another-tool", "of-a-topic", "of-a-new-topic", "in-a-trace",
    "in-a-return", "of-a-broker-in-the-store", "of-another-key-in-the-store", "of-the-cluster", "that-is-spoilt",
    "of-the-tokens", "of-a-scram-user", "in-a-salted-password", "in-an-hmac", "in-a-token-login", "of-the-page", "in-a-url",
)  # fmt: skip
SECRETS: Mapping[str, str] = {place: f"S3cret-{number:02}-{place}'\\q" for number, place in enumerate(PLACES)}
"""Each tells where it leaked from; quotes and backslashes have more than one form."""
CLIENT = SECRETS["of-the-client"].replace("'\\q", "")  # passwords stand in a JAAS line
NODES = SECRETS["of-the-nodes"].replace("'\\q", "")
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
PAGE = SECRETS["of-the-page"].replace("'\\q", "")  # it stands in an HTTP header
SECRET = "S3cret-"

OLDER = """
from minicontroller.policies import PolicyViolation


class Quoting:
    def configure(self, configs):
        print("configured with", dict(configs), flush=True)

    def validate(self, metadata):
        self.judge(dict(metadata.configs))

    def judge(self, configs):
        text = str(configs)
        if "in-a-trace" in text:
            raise ValueError(f"cannot judge {configs}")
        if "in-a-return" not in text and "retention.ms" not in text:
            raise PolicyViolation(f"not {configs}")
        return None

    def close(self):
        pass
"""
NEWER = """
from minicontroller.policies import PolicyViolation, TopicManagementPolicy


class Quoting(TopicManagementPolicy):
    def validate_alter_topic(self, request, cluster):
        configs = dict(request.requested_state.configs), dict(cluster.topic_state(request.topic).configs)
        match request.requested_state.num_partitions:
            case 2:
                raise ValueError(f"cannot judge {configs}")
            case 3:
                raise PolicyViolation(f"not {configs}")
            case 4:
                return str(configs) * 9
"""


class World:
    """A node, and how to get at what it gives out."""

    def __init__(self, node: NodeProcess, zookeeper: str, folder: Path) -> None:
        self.node = node
        self.zookeeper = zookeeper
        self.folder = folder

    @property
    def address(self) -> str:
        return self.node.address

    @property
    def http(self) -> str:
        return f"http://{self.node.http}"

    @contextmanager
    def logged_in(self, user: str, password: str) -> Iterator[Wire]:
        with Wire(self.address) as wire:
            token = f"\0{user}\0{password}".encode()
            for key, version, message in (
                (ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN")),
                (ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=token)),
            ):
                wire.exchange(KAFKA.encode_request(RequestHeader(int(key), version, 1, "c"), message))
            yield wire

    def command(self, *arguments: str) -> bytes:
        config = self.folder / "client.properties"
        login = f'{JAAS} username="bob" password="bobs-own";'
        config.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\n")
        options = ("--command-config", str(config), "--bootstrap-server", self.address)
        outcome = call(*arguments, *options, folder=self.folder)
        assert outcome.code == 0, outcome
        return (outcome.stdout + outcome.stderr).encode()

    def audit(self, *arguments: str) -> bytes:
        outcome = call("audit", *arguments, str(self.folder / "audit"), folder=self.folder)
        return (outcome.stdout + outcome.stderr).encode()

    def get(self, path: str, *, most: int = -1) -> bytes:
        asked = urllib.request.Request(self.http + path, headers={"Authorization": f"Bearer {PAGE}"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            data: bytes = answer.read() if most < 0 else answer.read1(most)
        return data


@pytest.fixture(name="world", scope="module", params=["human-older", "json-newer"])
def planted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer
) -> Iterator[World]:
    """A node with -v whose policy repeats what it is asked, after all secrets have been given to
    it.
    """
    form, kind = request.param.split("-")
    folder, connect = tmp_path_factory.mktemp("secrets"), f"{zookeeper.connect}/secrets-{request.param}"
    (folder / "quoting.py").write_text(OLDER if kind == "older" else NEWER)
    key = "alter.config.policy.class.name" if kind == "older" else "topic.management.policy.class.name"
    settings = {
        **WITH_A_LISTENER_FOR_NODES,
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
        "listener.name.client.plain.sasl.jaas.config": f'{JAAS} user_alice="{CLIENT}" user_bob="bobs-own";',
        "listener.name.internal.plain.sasl.jaas.config": f'{JAAS} username="n" password="{NODES}" user_n="{NODES}";',
        "ssl.keystore.password": SECRETS["of-the-keystore"].replace("\\", "\\\\"),
        "delegation.token.secret.key": SECRETS["of-the-tokens"].replace("\\", "\\\\"),
        "listener.name.client.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.client.scram-sha-256.sasl.jaas.config": f"{SCRAM} required;",
        "http.bearer.token": PAGE,
        "password.encoder.secret": SECRETS["of-the-encoder"].replace("\\", "\\\\"),
        "ssl.key.password": SECRETS["of-the-key"].replace("\\", "\\\\"),
        "log.format": form,
        "http.listen": "127.0.0.1:0",
        "audit.dir": str(folder / "audit"),
        "audit.flush": "always",
        key: f"{folder}/quoting.py:Quoting",
        "connection.failed.authentication.delay.ms": "1",
    }
    secret = base64.b64encode(SECRETS["of-the-cluster"].encode()).decode()
    write(connect, {MEMBERSHIP: {"version": 1, "secret": secret}})
    node = NodeProcess(folder, 1, connect, settings, "--verbose")
    node.start()
    node.wait_ready()
    world = World(node, connect, folder)
    plant(world)
    yield world
    node.stop()
    assert SECRET not in node.output


def plant(world: World) -> None:
    """Everything that a client, another tool and a policy can do with a secret."""
    with world.logged_in("alice", CLIENT) as wire:
        topic = {"num_partitions": 1, "replication_factor": 1}
        wire.ask("CreateTopics", 5, {"topics": [{"name": "kept", **topic}], "timeout_ms": 30_000})
        config = {"name": "my.topic.token", "value": SECRETS["of-a-new-topic"]}
        wire.ask("CreateTopics", 5, {"topics": [{"name": "new", "configs": [config], **topic}], "timeout_ms": 30_000})
        for name, place in (
            ("ssl.keystore.password", "of-a-broker"),
            ("listener.name.client.plain.sasl.jaas.config", "of-a-listener"),
            ("my.brokers.token", "of-a-brokers-plugin"),
            ("my.brokers.other", "in-a-trace"),
            ("my.brokers.third", "in-a-return"),
        ):
            for value in (SECRETS[place], f'{JAAS} username="x" password="{SECRETS[place]}";'):
                change(wire, BROKER, "1", name, value)
        change(wire, TOPIC, "kept", "my.topic.token", SECRETS["of-a-topic"])
        by_another_tool(world)
        until(lambda: b"my.topic.token" in world.get("/api/topic?name=kept"))
        change(wire, TOPIC, "kept", "retention.ms", "1")
        for count in (2, 3, 4, 5):
            more = {"name": "kept", "count": count, "assignments": None}
            wire.ask("CreatePartitions", 1, {"topics": [more], "timeout_ms": 30_000, "validate_only": False})
        refused = {"name": "kept", **topic}
        wire.ask("CreateTopics", 5, {"topics": [refused], "timeout_ms": 30_000})
        users_and_tokens(wire)
    with suppress(ConnectionEndedError), Wire(world.address) as wire:
        ask(wire, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-256"))
        first = f"n,,n={SECRETS['in-a-token-login']},r=nonce,tokenauth=true"
        ask(wire, 2, SaslAuthenticateRequest(auth_bytes=first.encode()))
    for request in (f"/api/topic?name={PAGE}-{SECRETS['in-a-url'][:16]}", f"/?token={PAGE}"):
        try:
            urllib.request.urlopen(world.http + request, timeout=30).close()
        except urllib.error.HTTPError as error:
            error.close()  # it holds the connection
    with suppress(ConnectionEndedError), world.logged_in("alice", SECRETS["that-is-wrong"]) as wire:
        wire.ask("Metadata", 9, {"topics": []})
    with suppress(ConnectionEndedError), Wire(world.address) as wire:
        header = RequestHeader(int(ApiKey.SASL_AUTHENTICATE), 2, 1, "c")
        token = f"\0alice\0{SECRETS['in-a-cut-request']}".encode()
        frame = KAFKA.encode_request(header, SaslAuthenticateRequest(auth_bytes=token))[4:-9]
        wire.exchange(len(frame).to_bytes(4) + frame)


def users_and_tokens(wire: Wire) -> None:
    """SCRAM users whose salted passwords are given, refused ones too, and tokens by their HMACs."""
    salted = SECRETS["in-a-salted-password"].encode()
    upserts = [
        {"name": name, "mechanism": mechanism, "iterations": 4096, "salt": b"salt", "salted_password": salted}
        for name, mechanism in (("carol", 1), ("", 1), ("dave", 9))
    ]
    wire.ask("AlterUserScramCredentials", 0, {"deletions": [], "upsertions": upserts})
    wire.ask("DescribeUserScramCredentials", 0, {"users": [{"name": "carol"}]})
    ask(wire, 3, CreateDelegationTokenRequest(max_lifetime_ms=-1))
    for hmac in (SECRETS["in-an-hmac"].encode(), SECRETS["in-an-hmac"].encode() * 500):
        ask(wire, 2, RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=1))
        ask(wire, 2, ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=1))


def ask(wire: Wire, version: int, message: Any) -> None:
    key = next(api.key for api in KAFKA.values() if api.request is type(message))
    wire.exchange(KAFKA.encode_request(RequestHeader(int(key), version, 1, "c"), message))


def change(wire: Wire, resource_type: int, name: str, key: str, value: str) -> None:
    """In every way that there is, one of which would add to what is there."""
    resource = {"resource_type": resource_type, "resource_name": name}
    for operation in (0, 2):
        configs = [{"name": key, "config_operation": operation, "value": value}]
        wire.ask("IncrementalAlterConfigs", 1, {"resources": [{**resource, "configs": configs}]})
    if key != "retention.ms":
        wire.ask("AlterConfigs", 1, {"resources": [{**resource, "configs": [{"name": key, "value": value}]}]})


def by_another_tool(world: World) -> None:
    """Into ZooKeeper, past all checks."""
    in_the_store = {
        "ssl.truststore.password": SECRETS["of-a-broker-in-the-store"],
        "my.store.token": SECRETS["of-another-key-in-the-store"],
    }
    write(
        world.zookeeper,
        {
            "/config/topics/kept": {"version": 1, "config": {"my.topic.token": SECRETS["by-another-tool"]}},
            "/config/brokers/1": {"version": 1, "config": in_the_store},
            "/config/users/erin": {"version": 1, "config": {"SCRAM-SHA-256": SECRETS["of-a-scram-user"]}},
            MEMBERSHIP: {"version": 1, "secret": SECRETS["that-is-spoilt"]},
        },
        changed=("topics/kept", "brokers/1", "users/erin"),
    )


def write(zookeeper: str, znodes: Mapping[str, object], changed: Sequence[str] = ()) -> None:
    """Znodes, and then the news that these entities have changed."""
    host, _, chroot = zookeeper.partition("/")
    client = KazooClient(host)
    client.start()
    try:
        client.ensure_path(f"/{chroot}")
        client.chroot = f"/{chroot}"
        for path, value in znodes.items():
            client.ensure_path(path)
            client.set(path, json.dumps(value).encode())
        for entity in changed:
            told = json.dumps({"version": 2, "entity_path": entity}).encode()
            client.create("/config/changes/config_change_", told, sequence=True)
    finally:
        client.stop()
        client.close()


def answers_to_another(world: World) -> bytes:
    """What bob is answered who asks for what alice did, refusals included."""
    told = b""
    with world.logged_in("bob", "bobs-own") as wire:
        described = [
            {"resource_type": kind, "resource_name": name, "configuration_keys": None}
            for kind, name in ((TOPIC, "kept"), (BROKER, "1"), (BROKER, ""))
        ]
        body = {"resources": described, "include_synonyms": True, "include_documentation": True}
        topic = {"name": "kept", "num_partitions": 1, "replication_factor": 1}
        delete = [{"name": "my.topic.token", "config_operation": 1, "value": None}]
        for api, version, asked in (
            ("DescribeConfigs", 4, body),
            ("DescribeConfigs", 0, {"resources": described}),
            ("Metadata", 9, {"topics": None}),
            ("DescribeCluster", 0, {}),
            ("CreateTopics", 5, {"topics": [topic], "timeout_ms": 30_000}),
            (
                "IncrementalAlterConfigs",
                1,
                {"resources": [{"resource_type": TOPIC, "resource_name": "kept", "configs": delete}]},
            ),
        ):
            told += wire.exchange(wire.frame(api, version, asked))
    return told


def a_crash(world: World) -> bytes:
    """A node that cannot start, and says why: another one has its id; its file is wrong."""
    said = b""
    wrong = world.folder / "wrong.properties"
    for line in (
        f'listener.name.client.plain.sasl.jaas.config={JAAS} user_alice="{CLIENT}',
        f"listener.name.client.plain.sasl.jaas.config={CLIENT}",
        f"ssl.keystore.password={CLIENT}\nbroker.id=one",
        f"topic.management.policy.class.name=nowhere.py:No\nssl.key.password={CLIENT}",
        f"authorizer.class.name=nowhere.py:No\ndelegation.token.secret.key={CLIENT}",
        f"http.bearer.token={CLIENT}\nhttp.bearer.token.file=/nowhere/{PAGE[:0]}token",
    ):
        wrong.write_text(world.node.config.read_text() + line + "\n")
        done = subprocess.run([COMMAND, "serve", "-v", "--config", wrong], capture_output=True, timeout=60, check=False)
        assert done.returncode == 1, line
        said += done.stdout + done.stderr
    return said


def the_page(world: World, browser: Browser) -> bytes:
    """All that a browser shows and was sent, after the topic, its history and older decisions were
    opened.
    """
    page, sent = browser.new_page(extra_http_headers={"Authorization": f"Bearer {PAGE}"}), list[bytes]()
    page.on("response", lambda answer: sent.append(answer.body()) if "/api/" in answer.url else None)
    page.goto(world.http)
    page.wait_for_selector("#decisions li")
    shown = page.content()
    while not page.locator("#decision-source", has_text="from the audit log").count():
        page.click("#older")
        expect(page.locator("#decision-source")).not_to_have_text("searching…", timeout=30_000)
        shown += page.content()
    page.click("#topics button")
    page.wait_for_selector("#topic-history li")
    shown += page.content()
    page.close()
    return shown.encode() + b"".join(sent)


Output = Callable[[World, Browser], bytes]
ROUTES = (
    "/", "/metrics", "/health/live", "/health/ready", "/api/state", "/api/topics", "/api/topic?name=kept", "/api/decisions",
    "/api/history", "/api/history?name=kept", "/api/history?name=new", "/api/history?refused=1", "/api/deleted?search=k",
)  # fmt: skip
OUTPUTS: Mapping[str, tuple[Output, str]] = {
    "the log": (lambda world, _: world.node.log.read_bytes(), "[hidden]"),
    "audit files": (lambda world, _: b"".join(map(Path.read_bytes, (world.folder / "audit").iterdir())), "[hidden]"),
    "audit show": (lambda world, _: world.audit("show"), "[hidden]"),
    "audit show --json": (lambda world, _: world.audit("show", "--json"), "[hidden]"),
    "audit tail": (lambda world, _: world.audit("tail", "-n", "1000"), "alter_configs"),
    "audit verify": (lambda world, _: world.audit("verify"), "events"),
    "the news": (lambda world, _: world.get("/events", most=1_000_000), "event: "),
    "answers to another client": (lambda world, _: answers_to_another(world), "ssl.keystore.password"),
    "configs get --broker": (lambda world, _: world.command("configs", "get", "--broker", "1", "--all"), "password"),
    "configs get --topic": (
        lambda world, _: world.command("configs", "get", "--topic", "kept", "--all", "--json"),
        "retention",
    ),
    "configs get --cluster": (lambda world, _: world.command("configs", "get", "--cluster", "--json"), "{"),
    "nodes that cannot start": (lambda world, _: a_crash(world), "Error: "),
    "the page": (the_page, "[hidden]"),
    **{f"GET {path}": (lambda world, _, path=path: world.get(path), "") for path in ROUTES},  # type: ignore[misc]
}
"""Everything that comes out of a node, with something that must be in it: what is empty proves
nothing.
"""


def forms(secret: str) -> list[bytes]:
    """As it is, as JSON and Python write it, and as what is no text is written."""
    plain = secret.encode()
    escaped = [json.dumps(secret)[1:-1].encode(), repr(secret)[1:-1].encode()]
    return [plain, *escaped, plain[:20], base64.b64encode(plain)[:20], plain.hex().encode()]


@pytest.mark.parametrize("name", OUTPUTS)
def test_nothing_gives_a_secret_away(world: World, browser: Browser, name: str) -> None:
    """P-1c: no output of a node holds a secret, nor a part of one, that somebody else has given to
    it.
    """
    output, sign_of_life = OUTPUTS[name]
    told = output(world, browser)
    assert sign_of_life.encode() in told
    assert [place for place, secret in SECRETS.items() if any(form in told for form in forms(secret))] == []
    assert SECRET.encode() not in told


def test_every_route_is_looked_at(world: World) -> None:
    """What the site serves is what is looked at above."""
    from minicontroller.network.http import serving

    text = Path(serving.__file__).read_text()
    served = {line.strip().split('"')[1] for line in text.splitlines() if line.strip().startswith('"/')}
    assert served == {route.partition("?")[0] for route in ROUTES} | {"/events"}  # which is "the news"

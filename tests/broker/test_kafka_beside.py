"""A real Kafka 3.9.1 on the same ZooKeeper reads what we write of ACLs, users, quotas and tokens,
and hears of it; we read what it writes.
"""

import subprocess
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO

import pytest
import trio

from minicontroller.cluster.entities import TokenInformation
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes.entity_names import client_entity_path
from minicontroller.controller.active.active_controller import ActiveController
from minicontroller.controller.active.entity_writing import stage_acls, stage_client_configs, stage_token
from minicontroller.controller.active.jobs import Draft, StagedElement
from minicontroller.controller.node.app import RunningNode, run_node
from minicontroller.controller.node.node import Node
from minicontroller.controller.node.process import open_zookeeper
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.security.scram_credentials import credential_text, derived_credential
from tests.support.java import java
from tests.support.kafka import KafkaCluster, kafka_libs
from tests.support.maven import needs_maven
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer

pytestmark = [needs_maven, pytest.mark.slow]

KAFKA_ID = 100
PATIENCE_SECONDS = 90.0
PAUSE_SECONDS = 0.2
NAMES = ("orders", "*", "a:b", "ü é", "%2A", "User:x", "-._~")
PATTERNS = [
    *(ResourcePattern(AclResourceType.TOPIC, name) for name in NAMES),
    *(ResourcePattern(AclResourceType.TRANSACTIONAL_ID, name, PatternType.PREFIXED) for name in NAMES),
    ResourcePattern(AclResourceType.CLUSTER, "kafka-cluster"),
    ResourcePattern(AclResourceType.DELEGATION_TOKEN, "t"),
    ResourcePattern(AclResourceType.USER, "User:bob"),
]
ENTRIES = [
    AccessControlEntry("User:alice", "*", AclOperation.DESCRIBE_CONFIGS, PermissionType.ALLOW),
    AccessControlEntry('User:CN=ü, O="x"', "10.0.0.1", AclOperation.IDEMPOTENT_WRITE, PermissionType.DENY),
]
USERS = ("alice", "a b/*+~=,", "ü", "<default>")
LOGGED_IN = tuple(name for name in USERS if name.isascii())
"""Kafka's SCRAM server reads no other names."""
TOKEN = TokenInformation("id", "User:ü/*", "User:bob", ("User:a b", "User:c"), 1, 2**45, 2**45)


class KafkaBeside(KafkaCluster):
    """A broker with an authorizer and tokens, on a ZooKeeper of others, where `admin` logs in."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        self.secured = f"127.0.0.1:{free_port()}"
        login = "org.apache.kafka.common.security"
        plain, secured = f"PLAINTEXT://127.0.0.1:{free_port()}", f"SASL_PLAINTEXT://{self.secured}"
        settings = {
            "broker.id": str(KAFKA_ID),
            "zookeeper.connect": zookeeper,
            "listeners": f"{plain},{secured}",
            "advertised.listeners": f"{plain},{secured}",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login}.plain.PlainLoginModule required user_admin="admin";',
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            "delegation.token.secret.key": "key",
        }
        super().__init__(folder, brokers=1, settings=settings)

    def begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
        self.start_broker(1)


class Asked:
    """Asks the Kafka through Java's AdminClient."""

    def __init__(self, process: "subprocess.Popen[str]", errors: Path) -> None:
        self._process = process
        self._errors = errors

    def ask(self, *words: str) -> list[str]:
        question, answer = self._process.stdin, self._process.stdout
        assert question is not None and answer is not None
        print(*words, sep="\t", file=question, flush=True)
        return list(iter(partial(self._line, answer), "END"))

    def _line(self, answer: IO[str]) -> str:
        line = answer.readline()
        assert line, self._errors.read_text()
        return line.removesuffix("\n")

    async def until_login(self, user: str, expected: str) -> None:
        """Until the Kafka has heard of a user's password, which it does after others see it."""
        with trio.fail_after(PATIENCE_SECONDS):
            while await trio.to_thread.run_sync(self.ask, "login", "SCRAM-SHA-256", user, "sécret") != [expected]:  # noqa: ASYNC110
                await trio.sleep(PAUSE_SECONDS)

    async def until(self, holds: Callable[[set[str]], bool]) -> None:
        described: set[str] = set()
        with trio.move_on_after(PATIENCE_SECONDS):
            while True:
                described = set(await trio.to_thread.run_sync(self.ask, "describe"))
                if holds(described):
                    return
                await trio.sleep(PAUSE_SECONDS)
        pytest.fail(f"Kafka says otherwise: {sorted(described)}")


@pytest.fixture(scope="module", name="kafka")
def kafka_beside(zookeeper: ZooKeeperServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBeside]:
    kafka = KafkaBeside(tmp_path_factory.mktemp("kafka"), f"{zookeeper.connect}/kafka-beside")
    try:
        yield kafka
    finally:
        kafka.stop()


@pytest.fixture(name="node")
async def our_node(zookeeper: ZooKeeperServer, kafka: KafkaBeside, nursery: trio.Nursery) -> AsyncIterator[Node]:
    """The controller, with the Kafka as the other broker of the cluster."""
    settings = {
        "broker.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.connect": f"{zookeeper.connect}/kafka-beside",
    }
    running: RunningNode = await nursery.start(run_node, config_from_mapping(settings), open_zookeeper)
    await trio.to_thread.run_sync(kafka.begin)
    with trio.fail_after(PATIENCE_SECONDS):
        await running.wait_ready(frozenset({1, KAFKA_ID}))
    yield running.node
    running.stop(hand_over=False)


@pytest.fixture(name="asked")
def java_client(kafka: KafkaBeside, node: Node, tmp_path: Path) -> Iterator[Asked]:
    errors = tmp_path / "errors"
    command = java(kafka_libs(), "-Dfile.encoding=UTF-8")
    command += [str(Path(__file__).parent / "Beside.java"), kafka.secured]
    pipe = subprocess.PIPE
    with (
        errors.open("w") as log,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, encoding="utf-8") as process,
    ):
        yield Asked(process, errors)
        process.kill()


def described_acls(patterns: list[ResourcePattern], entries: list[AccessControlEntry]) -> set[str]:
    return {
        "\t".join(
            (
                *("acl", pattern.resource_type.name, pattern.name, pattern.pattern_type.name),
                *(each.principal, each.host, each.operation.name, each.permission_type.name),
            )
        )
        for pattern in patterns
        for each in entries
    }


async def write(controller: ActiveController | None, *stage: Callable[[Draft], StagedElement]) -> None:
    async def plan(draft: Draft) -> None:
        for each in stage:
            each(draft)

    assert controller is not None
    await controller.writer.write(plan)


def known_tokens(controller: ActiveController | None) -> Collection[str]:
    """Return the ids of the tokens in the controller's image; none while it reads its state."""
    return () if controller is None else controller.image.tokens.keys()


def configs_of(entity: Mapping[str, str | None], configs: Mapping[str, str]) -> Callable[[Draft], StagedElement]:
    return lambda draft: stage_client_configs(draft, client_entity_path(entity), configs)


async def test_kafka_and_we_read_each_other(node: Node, asked: Asked) -> None:
    """ACLs with any names, credentials and quotas of any users, and tokens are the same for a real
    Kafka as for us, whoever has written them, and gone for both when they are removed.
    """
    credential = credential_text(derived_credential("SCRAM-SHA-256", "sécret"))
    quotas = [{"user": name, "client-id": other} for name in (*USERS, None) for other in (*USERS, None)]
    with_acls = [partial(stage_acls, pattern=each, entries=ENTRIES) for each in PATTERNS]
    with_users = [configs_of({"user": name}, {"SCRAM-SHA-256": credential}) for name in USERS]
    with_quotas = [configs_of(each, {"request_percentage": "5.5"}) for each in quotas]
    await write(
        node.controller, *with_acls, *with_users, *with_quotas, partial(stage_token, token_id="id", token=TOKEN)
    )
    expected = described_acls(PATTERNS, ENTRIES) | {f"user\t{name}\tSCRAM-SHA-256=4096" for name in USERS}
    expected.add("token\tid\tUser:ü/*\tUser:bob\t[User:a b, User:c]")
    await asked.until(lambda said: {each for each in said if not each.startswith("quota")} == expected)
    described = {each for each in await trio.to_thread.run_sync(asked.ask, "describe") if each.startswith("quota")}
    assert len(described) == len(quotas)
    assert "quota\t{client-id=ü, user=<default>}\trequest_percentage=5.5" in described
    for name in LOGGED_IN:
        await asked.until_login(name, "true")

    # The Kafka writes.
    carol = AccessControlEntry("User:carol", "*", AclOperation.READ, PermissionType.ALLOW)
    for pattern in PATTERNS:
        words = (pattern.resource_type.name, pattern.name, pattern.pattern_type.name)
        operation = "DESCRIBE" if pattern.resource_type is not AclResourceType.TOPIC else "READ"
        await trio.to_thread.run_sync(asked.ask, "acl", *words, "User:carol", "*", operation, "ALLOW")
        await trio.to_thread.run_sync(
            asked.ask, "no-acl", *words, ENTRIES[0].principal, "*", ENTRIES[0].operation.name, "ALLOW"
        )
    (token_id,) = await trio.to_thread.run_sync(asked.ask, "token", "ü*")
    orders = PATTERNS[0]

    def seen() -> Image:
        return node.cache.image

    with trio.fail_after(PATIENCE_SECONDS):
        # The Kafka tells of tokens and of ACLs apart, and writes when it likes. The controller
        # hears of them after its node, and removes nothing that it does not know.
        while token_id not in known_tokens(node.controller) or seen().acls[orders].entries != {ENTRIES[1], carol}:  # noqa: ASYNC110
            await trio.sleep(PAUSE_SECONDS)
    token = seen().tokens[token_id]
    assert (token.owner, token.renewers) == ("User:admin", ("User:ü*",))
    assert set(seen().acls) == set(PATTERNS)

    # We change what the Kafka has written, and remove what we have.
    assert node.controller is not None
    without_acls = [partial(stage_acls, pattern=each, entries=[]) for each in PATTERNS[1:]]
    without_tokens = [partial(stage_token, token_id=each, token=None) for each in ("id", token_id)]
    without_users = [configs_of({"user": name}, {}) for name in USERS]
    without_quotas = [configs_of(each, {}) for each in quotas]
    await write(node.controller, *without_acls, *without_tokens, *without_quotas, *without_users)
    await asked.until(lambda said: said == described_acls([orders], [ENTRIES[1], carol]))
    for name in LOGGED_IN:
        await asked.until_login(name, "false")
    assert await node.store.children("/config/users") == []

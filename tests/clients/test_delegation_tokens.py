"""Kafka's own Java client creates, renews and expires delegation tokens and logs in by them, at our
nodes and at a real Kafka 3.9.1 on the same ZooKeeper, which accept each other's tokens.
"""

import logging
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from minicontroller.controller.node.app import RunningNode, run_node
from minicontroller.controller.node.process import open_zookeeper
from minicontroller.process.settings.loading import config_from_mapping
from tests.broker.test_kafka_beside import KAFKA_ID, KafkaBeside
from tests.support.java import java
from tests.support.kafka import kafka_libs
from tests.support.maven import needs_maven
from tests.support.nodes import JAAS
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer

pytestmark = [needs_maven, pytest.mark.slow]

PROGRAM = Path(__file__).parents[1] / "java" / "tokens" / "Tokens.java"
PATIENCE_SECONDS = 90.0
PAUSE_SECONDS = 0.2
CHROOT = "/tokens-beside"
SHA256, SHA512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
REFUSED = "SaslAuthenticationException"
USERS = f'{JAAS} user_admin="admin" user_bob="bob" user_carol="carol";'
DAY_MS = 24 * 60 * 60 * 1000


class JavaClient:
    """Kafka's client, in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]", errors: Path) -> None:
        self._process = process
        self._errors = errors

    def _ask(self, words: tuple[str, ...]) -> str:
        question, answer = self._process.stdin, self._process.stdout
        assert question is not None and answer is not None
        print(*words, sep="\t", file=question, flush=True)
        line = answer.readline()
        assert line, self._errors.read_text()
        return line.removesuffix("\n")

    async def ask(self, *words: str) -> str:
        return await trio.to_thread.run_sync(self._ask, words)

    async def by(self, what: str, address: str, user: str, *words: str) -> str:
        """Ask as a user who logs in by PLAIN."""
        return await self.ask(what, address, "PLAIN", user, user, *words)

    async def until_login(self, address: str, token: tuple[str, str], expected: str) -> None:
        """Wait until a login by a token has this answer: a Kafka hears of changes when it likes."""
        with trio.fail_after(PATIENCE_SECONDS):
            while await self.ask("login", address, SHA256, *token) != expected:  # noqa: ASYNC110
                await trio.sleep(PAUSE_SECONDS)


class Both:
    """The addresses at which clients log in."""

    def __init__(self, kafka: KafkaBeside, nodes: list[RunningNode], ports: list[int]) -> None:
        self.kafka = kafka.secured
        self.nodes = nodes
        self.controller, self.other = (f"127.0.0.1:{port}" for port in ports)


@pytest.fixture(name="java")
def java_client(tmp_path: Path) -> Iterator[JavaClient]:
    errors, pipe = tmp_path / "errors", subprocess.PIPE
    command = [*java(kafka_libs(), "-Dfile.encoding=UTF-8"), str(PROGRAM)]
    with (
        errors.open("w") as log,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, encoding="utf-8") as process,
    ):
        yield JavaClient(process, errors)
        process.kill()


@pytest.fixture(name="both")
async def kafka_and_we(zookeeper: ZooKeeperServer, tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Both]:
    """Two nodes of ours, of which the first is the controller, and a Kafka, with the same key.
    Each has a listener of its own, so that a client stays where it is sent.
    """
    connect = f"{zookeeper.connect}{CHROOT}"
    kafka = KafkaBeside(tmp_path / "kafka", connect)
    kafka.settings["listener.name.sasl_plaintext.plain.sasl.jaas.config"] = USERS
    ports = [free_port(), free_port()]
    nodes: list[RunningNode] = []
    for number, (name, port) in enumerate(zip(("FIRST", "SECOND"), ports, strict=True), 1):
        settings = {
            "broker.id": str(number),
            "listeners": f"PLAINTEXT://127.0.0.1:0,{name}://127.0.0.1:{port}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{name}:SASL_PLAINTEXT",
            "zookeeper.connect": connect,
            "sasl.enabled.mechanisms": f"PLAIN,{SHA256},{SHA512}",
            f"listener.name.{name.lower()}.plain.sasl.jaas.config": USERS,
            "delegation.token.secret.key": "key",
            "metadata.completion": "cluster",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
        }
        running: RunningNode = await nursery.start(run_node, config_from_mapping(settings), open_zookeeper)
        nodes.append(running)
    try:
        await trio.to_thread.run_sync(kafka.begin)
        with trio.fail_after(PATIENCE_SECONDS):
            for each in nodes:
                await each.wait_ready(frozenset({1, 2, KAFKA_ID}))
        yield Both(kafka, nodes, ports)
    finally:
        for each in nodes:
            each.stop(hand_over=False)
        kafka.stop()


async def test_the_java_client_and_a_kafka_beside_us(
    both: Both, java: JavaClient, caplog: pytest.LogCaptureFixture
) -> None:
    """A token is created at one node, renewed at the other by its renewer, logged in with at both
    and at the Kafka, and removed for all; tokens of the Kafka's serve us, too (K590-1). No HMAC is
    logged.
    """
    caplog.set_level(logging.DEBUG)
    token_id, hmac, *people = (await java.by("create", both.other, "admin", "bob")).split("\t")
    ours = (token_id, hmac)
    assert people == ["User:admin", "User:admin", "[User:bob]"]
    for address in (both.controller, both.other):
        for mechanism in (SHA256, SHA512):
            assert await java.ask("login", address, mechanism, *ours) == "in"
        assert await java.ask("login", address, SHA256, token_id, f"A{hmac}") == REFUSED
        assert await java.ask("login", address, SHA256, f"A{token_id}", hmac) == REFUSED
        assert await java.by("describe", address, "bob") == token_id
        assert await java.by("describe", address, "carol") == ""
    await java.until_login(both.kafka, ours, "in")

    # Who may change it.
    renewed = await java.by("renew", both.controller, "bob", hmac, str(3 * DAY_MS))
    assert renewed.isdigit()
    assert await java.by("renew", both.other, "carol", hmac, "1") == "DelegationTokenOwnerMismatchException"
    assert await java.ask("create", both.other, SHA256, *ours, "x") == "UnsupportedByAuthenticationException"
    assert await java.by("create", both.other, "bob", "x", "carol") == "DelegationTokenAuthorizationException"
    for_carol = await java.by("create", both.other, "admin", "bob", "carol")
    assert for_carol.split("\t")[2:] == ["User:carol", "User:admin", "[User:bob]"]

    # The Kafka's token, and the end of both.
    token_id, hmac, *_ = (await java.by("create", both.kafka, "admin", "bob")).split("\t")
    theirs = (token_id, hmac)
    await java.until_login(both.other, theirs, "in")
    await java.until_login(both.controller, theirs, "in")
    for token in (ours, theirs):
        assert (await java.by("expire", both.other, "bob", token[1], "-1")).isdigit()
        for address in (both.controller, both.other):
            assert await java.ask("login", address, SHA512, *token) == REFUSED
        await java.until_login(both.kafka, token, REFUSED)
    assert await java.by("expire", both.other, "bob", ours[1], "-1") == "DelegationTokenNotFoundException"
    assert both.nodes[0].node.controller is not None
    assert not any(token[1] in caplog.text for token in (ours, theirs))

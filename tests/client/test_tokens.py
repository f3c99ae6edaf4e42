"""`minicontroller tokens`, and a login of the Python client by a token."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minicontroller.client import DelegationToken
from tests.cli.command import Outcome, call
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.nodes import JAAS

pytestmark = pytest.mark.slow

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
    "listener.name.plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.plaintext.plain.sasl.jaas.config": f'{JAAS} user_alice="alice-secret" user_bob="bob-secret";',
    "delegation.token.secret.key": "planted-key",
}


@pytest.fixture(scope="module", name="cluster")
def cluster_with_tokens() -> Iterator[MiniCluster]:
    with running_cluster(settings=SETTINGS) as cluster:
        yield cluster


class Tool:
    """The command, as a user who logs in by PLAIN or by a token."""

    def __init__(self, cluster: MiniCluster, folder: Path, user: str, login: str, mechanism: str = "PLAIN") -> None:
        self._file = folder / f"{user}.properties"
        self._file.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={login}\n"
        )
        self._folder = folder
        self._variables = {"MINICONTROLLER_BOOTSTRAP": cluster.bootstrap}

    def __call__(self, *arguments: str) -> Outcome:
        options = ("--command-config", str(self._file), "--timeout", "60")
        return call(*arguments, *options, folder=self._folder, variables=self._variables)

    def json(self, *arguments: str, code: int = 0) -> Any:
        outcome = self(*arguments, "--json")
        assert outcome.code == code, outcome
        return json.loads(outcome.stdout)


def user(cluster: MiniCluster, folder: Path, name: str) -> Tool:
    return Tool(cluster, folder, name, f'{JAAS} username="{name}" password="{name}-secret";')


def test_a_token_from_its_making_to_its_end(cluster: MiniCluster, tmp_path: Path) -> None:
    """Created, listed without its HMAC, renewed by its renewer, logged in with, and removed."""
    alice, bob = (user(cluster, tmp_path, name) for name in ("alice", "bob"))
    made = alice.json("tokens", "create", "--renewer", "User:bob", "--max-lifetime-ms", "3600000")["token"]
    assert (made["owner"], made["requester"], made["renewers"]) == ("User:alice", "User:alice", ["User:bob"])
    assert made["max_ms"] - made["issued_ms"] == 3_600_000
    listed = bob("tokens", "list")
    assert made["id"] in listed.stdout
    assert made["hmac"] not in listed.stdout
    assert made["hmac"] in bob("tokens", "list", "--owner", "User:alice", "--show-hmac").stdout
    (shown,) = bob.json("tokens", "list")["tokens"]
    assert shown == {name: value for name, value in made.items() if name != "hmac"}

    (renewed,) = bob.json("tokens", "renew", made["id"], "--period-ms", "60000")["results"]
    assert renewed["expires_ms"] < made["expires_ms"]
    login = f'{SCRAM} username="{made["id"]}" password="{made["hmac"]}" tokenauth="true";'
    by_token = Tool(cluster, tmp_path, "token", login, "SCRAM-SHA-512")
    assert by_token("topics", "create", "made-by-token").code == 0
    refused = by_token("tokens", "create")
    assert refused.code == 1
    assert "not by a delegation token (DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)" in refused.stderr

    assert bob("tokens", "expire", made["id"]) == (0, f"{made['id']}: removed\n", "")
    again = alice("tokens", "expire", made["id"])
    assert again.code == 1
    assert "DELEGATION_TOKEN_NOT_FOUND" in again.stderr
    assert by_token("topics", "list").code == 3


def test_what_people_read(cluster: MiniCluster, tmp_path: Path) -> None:
    """A new token is printed with its HMAC; one that nobody has is a sentence, and its neighbour is
    changed.
    """
    alice = user(cluster, tmp_path, "alice")
    lines = dict(line.split(maxsplit=1) for line in alice("tokens", "create").stdout.splitlines())
    assert len(base64.b64decode(lines["HMAC"])) == 64
    assert lines["owner"] == "User:alice"
    assert "can be renewed until" in lines["expires"]
    outcome = alice("tokens", "renew", "no-such-token", lines["id"])
    assert outcome.code == 1
    assert f"{lines['id']}: expires 2" in outcome.stdout
    assert "no-such-token: refused (DELEGATION_TOKEN_NOT_FOUND): There is no such token" in outcome.stderr


@pytest.mark.parametrize("arguments", [("create", "--owner", "alice"), ("list", "--owner", "User:"), ("renew",)])
def test_mistakes_are_found_before_a_node_is_asked(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A principal without a type or a name, and no token at all, end with code 2."""
    assert call("tokens", *arguments, folder=tmp_path).code == 2


def test_an_hmac_is_not_shown() -> None:
    """The value of a token does not show it."""
    token = DelegationToken("id", b"planted", "User:a", "User:a", (), 0, 1, 2)
    assert "planted" not in repr(token)

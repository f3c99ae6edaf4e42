"""`minicontroller users`, against our nodes and a real Kafka."""

from pathlib import Path
from uuid import uuid4

import pytest

from minicontroller.client import ScramUpsertion
from tests.cli.command import Outcome, call
from tests.client.installed import Installed

pytestmark = pytest.mark.slow

SHA256, SHA512 = "SCRAM-SHA-256", "SCRAM-SHA-512"


@pytest.fixture
def user() -> str:
    """A name that no other test has."""
    return f"u-{uuid4()}"


def set_by(command: Installed, user: str, password: str, *options: str) -> Outcome:
    """With the password in the environment."""
    variables = {"MINICONTROLLER_BOOTSTRAP": command.bootstrap, "MINICONTROLLER_NEW_PASSWORD": password}
    return call("users", "set", user, *options, folder=command.folder, variables=variables)


def test_a_user_from_its_making_to_its_end(command: Installed, user: str) -> None:
    """Set, listed, changed and removed, each with code 0 and a line that says it; by both
    mechanisms unless one is named.
    """
    file = command.folder / "password"
    file.write_text("planted-secret\nanother line\n")
    made = command("users", "set", user, "--password-file", str(file))
    assert made == (0, f"{user}: set, {SHA256} and {SHA512}\n", "")
    rows = [line.split() for line in command("users", "list", user).stdout.splitlines()[1:]]
    assert [row for row in rows if row] == [[user, SHA256, "4096"], [user, SHA512, "4096"]]
    assert set_by(command, user, "planted", "--mechanism", SHA512, "--iterations", "5000").code == 0
    shown = command.json("users", "list", user)
    credentials = [{"mechanism": SHA256, "iterations": 4096}, {"mechanism": SHA512, "iterations": 5000}]
    assert shown == {"users": [{"user": user, "credentials": credentials, "error": None}]}
    assert user in command("users", "list").stdout
    assert command("users", "remove", user, "--mechanism", SHA256) == (0, f"{user}: removed, {SHA256}\n", "")
    assert command("users", "remove", user) == (0, f"{user}: removed, {SHA512}\n", "")
    assert user not in command("users", "list").stdout


def test_what_is_refused_is_a_sentence(command: Installed, user: str) -> None:
    """A user that does not exist has Kafka's error, and its neighbour is removed."""
    set_by(command, user, "planted")
    answer = command.json("users", "remove", "nobody", user, code=1)
    assert [(row["user"], row["ok"]) for row in answer["results"]] == [("nobody", False), (user, True)]
    assert answer["results"][0]["error"]["name"] == "RESOURCE_NOT_FOUND"
    listed = command("users", "list", "nobody")
    assert listed.code == 1
    assert "nobody: refused (RESOURCE_NOT_FOUND): Attempt to describe a user credential" in listed.stderr


@pytest.mark.parametrize("password", [None, ""])
def test_a_password_is_needed(password: str | None, tmp_path: Path) -> None:
    """Without a terminal nobody is asked, and an empty password is none; no node is reached."""
    variables = {} if password is None else {"MINICONTROLLER_NEW_PASSWORD": password}
    outcome = call("users", "set", "alice", folder=tmp_path, variables=variables)
    assert outcome.code == 2
    assert "password" in outcome.stderr


def test_a_password_is_no_argument(tmp_path: Path) -> None:
    """Everybody on the machine could read it."""
    assert call("users", "set", "alice", "--password", "planted", folder=tmp_path).code == 2


def test_a_password_is_not_shown() -> None:
    """Not by the value that carries it."""
    assert "planted" not in repr(ScramUpsertion(SHA256, "planted"))

"""`minicontroller quotas`, against our nodes and a real Kafka."""

from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.command import call
from tests.client.installed import Installed

pytestmark = pytest.mark.slow

MUTATION, PRODUCED = "controller_mutation_rate", "producer_byte_rate"


@pytest.fixture
def user() -> str:
    """A name that no other test has."""
    return f"u-{uuid4()}"


def test_quotas_from_their_setting_to_their_end(command: Installed, user: str) -> None:
    """Set, listed, changed and removed, each with code 0 and a line that says it."""
    done = command("quotas", "set", "--user", user, f"{MUTATION}=2.5", f"{PRODUCED}=1000")
    assert done == (0, f"user {user}: set {MUTATION}, {PRODUCED}\n", "")
    pair = ("--user", user, "--default-client-id")
    assert command("quotas", "set", *pair, "request_percentage=50").code == 0
    listed = command("quotas", "list", "--user", user)
    assert [line.split("  ") for line in listed.stdout.splitlines()[1:] if line.strip()]
    assert {(" ".join(line.split()[:-2]), *line.split()[-2:]) for line in listed.stdout.splitlines()[1:]} == {
        (f"user {user}", MUTATION, "2.5"),
        (f"user {user}", PRODUCED, "1000"),
        (f"user {user}, default client-id", "request_percentage", "50"),
    }
    shown = command.json("quotas", "list", "--user", user, "--strict")
    assert shown == {"quotas": [{"entity": {"user": user}, "quotas": {MUTATION: 2.5, PRODUCED: 1000.0}}]}
    assert command("quotas", "remove", "--user", user, PRODUCED).stdout == f"user {user}: removed {PRODUCED}\n"
    assert command("quotas", "remove", "--user", user).stdout == f"user {user}: removed {MUTATION}\n"
    assert command("quotas", "remove", *pair).code == 0
    assert command("quotas", "list", "--user", user) == (0, "", "No quotas.\n")
    assert command("quotas", "remove", "--user", user).stdout == f"user {user}: has no quotas\n"


def test_an_address_has_a_quota_of_its_own(command: Installed) -> None:
    """connection_creation_rate, by address."""
    address = ("--ip", "10.77.0.1")
    assert command("quotas", "set", *address, "connection_creation_rate=100000").code == 0
    shown = command.json("quotas", "list", *address)
    assert shown["quotas"] == [{"entity": {"ip": "10.77.0.1"}, "quotas": {"connection_creation_rate": 100000.0}}]
    assert command("quotas", "remove", *address).code == 0


def test_what_is_refused_is_a_sentence(command: Installed, user: str) -> None:
    """Kafka's code and text, and exit code 1; neither it nor a dry run changes anything."""
    refused = command("quotas", "set", "--user", user, f"{MUTATION}=1", "no_such_rate=1")
    assert refused == (1, "", f"user {user}: refused (INVALID_REQUEST): Invalid configuration key no_such_rate.\n")
    assert command("quotas", "set", "--user", user, f"{MUTATION}=1", "--dry-run").stdout.startswith(
        f"user {user}: would be set"
    )
    assert command("quotas", "list", "--user", user).stderr == "No quotas.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("set", f"{MUTATION}=1"),
        ("set", "--user", "a", MUTATION),
        ("set", "--user", "a", f"{MUTATION}=much"),
        ("set", "--user", "a", "--default-user", f"{MUTATION}=1"),
        ("set", "--user", "a", "--ip", "1.2.3.4", f"{MUTATION}=1"),
        ("remove", MUTATION),
    ],
)
def test_a_command_that_is_called_wrongly_reaches_no_node(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Exit code 2 and a sentence, without a node."""
    outcome = call("quotas", *arguments, folder=tmp_path)
    assert outcome.code == 2
    assert "Error: " in outcome.stderr

"""`minicontroller groups`, against our nodes and a real Kafka."""

from uuid import uuid4

import pytest

from tests.client.installed import Installed

pytestmark = pytest.mark.slow


@pytest.fixture
def topic(command: Installed) -> str:
    """A topic of three partitions that no other test has."""
    name = f"t{uuid4().hex}"
    assert command("topics", "create", name, "--partitions", "3").code == 0
    return name


def test_offsets_from_their_setting_to_their_end(command: Installed, topic: str) -> None:
    """Set, shown, removed and deleted, each with code 0 and a line that says it (K117-1b)."""
    group = f"g-{uuid4()}"
    done = command("groups", "set-offsets", group, f"{topic}-0=5", f"{topic}-2=7")
    assert done == (0, f"{group}: {topic}-0: set to 5\n{group}: {topic}-2: set to 7\n", "")
    listed = command.json("groups", "list")["groups"]
    assert {"group": group, "state": "Empty", "protocol": ""} in listed
    (shown,) = command.json("groups", "describe", group)["groups"]
    assert (shown["state"], shown["members"], shown["error"]) == ("Empty", 0, None)
    assert [(each["partition"], each["offset"]) for each in shown["offsets"]] == [(0, 5), (2, 7)]
    text = command("groups", "describe", group).stdout
    assert text.startswith(f"{group}: Empty, 0 members, coordinator ") and f"{topic}-2" in text
    removed = command("groups", "delete-offsets", group, f"{topic}-0")
    assert removed == (0, f"{group}: {topic}-0: removed\n", "")
    assert command("groups", "delete", group, "--yes") == (0, f"{group}: deleted\n", "")
    (shown,) = command.json("groups", "describe", group)["groups"]
    assert (shown["state"], shown["offsets"]) == ("Dead", [])


def test_what_is_refused_is_a_sentence(command: Installed, topic: str) -> None:
    """Kafka's code, what it means, and exit code 1; the rest is done."""
    group = f"g-{uuid4()}"
    done = command("groups", "set-offsets", group, f"{topic}-0=5", f"{topic}-9=7")
    refused = f"{group}: {topic}-9: refused (UNKNOWN_TOPIC_OR_PARTITION): there is no such partition.\n"
    assert done == (1, f"{group}: {topic}-0: set to 5\n", refused)
    missing = command("groups", "delete", "no-such-group", group, "--yes")
    assert missing == (
        1,
        f"{group}: deleted\n",
        "no-such-group: refused (GROUP_ID_NOT_FOUND): there is no such group.\n",
    )
    assert command("groups", "delete-offsets", group, f"{topic}-0").stderr == (
        f"{group}: {topic}-0: refused (GROUP_ID_NOT_FOUND): there is no such group.\n"
    )


@pytest.mark.parametrize("text", ["t-0", "t=5", "t-0=x", "t-0=-1", f"t-0={2**63}", "=5"])
def test_what_is_no_offset_is_a_mistake_of_usage(command: Installed, text: str) -> None:
    """Code 2, before anything is asked."""
    assert command("groups", "set-offsets", "g", text).code == 2

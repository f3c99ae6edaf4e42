"""What a command loads: it must not wait for what only others need."""

import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from minicontroller.protocol.api_keys import ApiKey
from tests.cli.command import environment
from tests.client.fake_node import FakeNode, metadata, with_nodes
from tests.support.forked import COMMAND

LOADED = "import time:"
OURS = "minicontroller."


def loaded(*arguments: str, folder: Path, **variables: str) -> set[str]:
    """The modules that Python loads for a command."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(COMMAND), *arguments],
        cwd=folder,
        env=environment(variables),
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith(LOADED)}


async def test_a_question_loads_what_it_asks(tmp_path: Path) -> None:
    """`topics list` in a pipe loads neither rich, which draws on terminals, nor messages of other
    APIs, nor TLS keys, nor the server.
    """
    node = FakeNode({})
    node.answers[ApiKey.METADATA] = lambda _: metadata(1, {1: node})
    modules: set[str] = set()

    async def test() -> None:
        nonlocal modules
        arguments = ("topics", "list", "--bootstrap-server", str(node.address))
        modules = await trio.to_thread.run_sync(partial(loaded, *arguments, folder=tmp_path))

    await with_nodes([node], test)
    assert "trio" in modules
    messages = {name for name in modules if name.startswith(f"{OURS}protocol.messages.")}
    assert {name.rpartition(".")[2] for name in messages} == {"api_versions", "metadata"}
    unwanted = (
        "rich",
        "kazoo",
        "starlette",
        "cel",
        "re2",
        f"{OURS}controller.handlers",
        f"{OURS}client.tls",
    )
    assert [name for name in modules if name.startswith(unwanted)] == []


@pytest.mark.parametrize("arguments", [["topics", "--help"], ["configs", "set", "--help"], ["cluster", "--help"]])
def test_help_and_completion_load_no_client(tmp_path: Path, arguments: list[str]) -> None:
    """What is asked at every press of a key needs neither trio nor rich."""
    words = {"COMP_WORDS": " ".join(["minicontroller", *arguments[:-1], "--"]), "COMP_CWORD": str(len(arguments))}
    complete = {"_MINICONTROLLER_COMPLETE": "bash_complete", **words}
    for modules in (loaded(*arguments, folder=tmp_path), loaded(folder=tmp_path, **complete)):
        assert f"{OURS}cli.admin_options" in modules
        assert not modules & {"trio", "rich"}


def test_the_list_of_commands_loads_none_of_them(tmp_path: Path) -> None:
    """`--help`, and the completion of a command's name, import no more than the
    command group does.
    """
    complete = {"_MINICONTROLLER_COMPLETE": "bash_complete", "COMP_WORDS": "minicontroller ", "COMP_CWORD": "1"}
    for modules in (loaded("--help", folder=tmp_path), loaded(folder=tmp_path, **complete)):
        assert f"{OURS}cli.commands" in modules
        assert not modules & {"trio", "rich", "msgspec", "logging", "json"}

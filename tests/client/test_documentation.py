"""What docs/commands.md and docs/client.md show is what happens."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import minicontroller.client
from tests.cli.command import call
from tests.support.cluster import MiniCluster, running_cluster

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
POLICY = "minicontroller.cli.demo_policy:DemoPolicy"


@pytest.fixture(scope="module")
def fresh() -> Iterator[MiniCluster]:
    """As the document says: `minicontroller up` with the demo's policy."""
    with running_cluster(settings={"topic.management.policy.class.name": POLICY}) as cluster:
        yield cluster


def told(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a block and what is shown below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def normal(text: str) -> list[str]:
    """Without what is never the same twice, and without spaces at ends."""
    text = re.sub(r"\b[A-Za-z0-9_-]{22}\b", "ID", text)
    text = re.sub(r"127\.0\.0\.1:\d+|\b(?:9092|9093|9094|\d{5})\b", "PORT", text)
    text = re.sub(r"(PORT +-) +controller", r"\1", text)  # whoever was first
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def test_every_example_gives_what_is_shown(fresh: MiniCluster, tmp_path: Path) -> None:
    """The commands of the document, one after the other, at a fresh cluster: the outputs and the
    codes are those shown.
    """
    examples = [example for block in BLOCK.findall((DOCS / "commands.md").read_text()) for example in told(block)]
    assert len(examples) > 10
    code = 0
    for command, shown in examples:
        if command == "echo $?":
            assert shown.strip() == str(code), command
            continue
        program, *arguments = shlex.split(command)
        assert program == "minicontroller"
        outcome = call(*arguments, folder=tmp_path, variables={"MINICONTROLLER_BOOTSTRAP": fresh.bootstrap})
        assert normal(outcome.stdout + outcome.stderr) == normal(shown), command
        code = outcome.code


@pytest.fixture(scope="module")
def empty() -> Iterator[MiniCluster]:
    with running_cluster() as cluster:
        yield cluster


def printed(program: str, cluster: MiniCluster) -> str:
    program = program.replace("127.0.0.1:9092", cluster.bootstrap)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_the_client_does_in_python_what_its_page_and_its_docstring_show(empty: MiniCluster) -> None:
    """The program of docs/client.md prints what is shown below it; the five lines of the package's
    docstring run, too.
    """
    page = (DOCS / "client.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    [shown] = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert printed(program, empty) == shown
    docstring = minicontroller.client.__doc__ or ""
    lines = [line for line in docstring.splitlines() if line.startswith("    ")]
    assert len(lines) == 4
    body = "\n".join(["import trio", "async def main():", *lines, "trio.run(main)"])
    assert "orders-too" in printed(body.replace("orders", "orders-too"), empty)


def test_what_the_client_exports_is_there() -> None:
    """Each name that the package promises can be imported from it."""
    assert [name for name in minicontroller.client.__all__ if not hasattr(minicontroller.client, name)] == []

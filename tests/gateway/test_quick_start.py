"""The quick start of docs/gateway.md happens as it is shown, in an empty folder, with ports of this
machine; the jars are those that the tests have.
"""

import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from tests.cli.command import call, end, running
from tests.support.cluster import READY
from tests.support.java import SHORT_LIVED
from tests.support.kafka import kafka_libs
from tests.support.kafka_kraft import NEWEST_VERSION
from tests.support.maven import needs_maven
from tests.support.ports import free_port

pytestmark = [needs_maven, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "gateway.md").read_text()
QUICK_START = PAGE.partition("## Quick start\n")[2].partition("\n## ")[0]
UPSTREAM, CONTROLLER, BOOTSTRAP = "127.0.0.1:9092", "127.0.0.1:9093", "127.0.0.1:19092"


def shown(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", QUICK_START, re.DOTALL)


def commands() -> list[str]:
    """The lines that the reader types, in their order."""
    return [line.removeprefix("$ ") for text in shown("console") for line in text.splitlines() if line[:2] == "$ "]


@pytest.fixture(name="here")
def here_fixture(tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """A Kafka that was started by the lines of the page, at a free port; returns a text of the page
    with this machine's addresses.
    """
    kafka, controller = free_port(), free_port()

    def here(text: str) -> str:
        return text.replace(UPSTREAM, f"127.0.0.1:{kafka}").replace(CONTROLLER, f"127.0.0.1:{controller}")

    (tmp_path / "server.properties").write_text(here(shown("properties")[0]))
    (tmp_path / "libs").symlink_to(kafka_libs(NEWEST_VERSION))
    format_it, start_it = (shlex.split(line) for line in commands()[1:3])
    subprocess.run(format_it, cwd=tmp_path, check=True, capture_output=True)
    with (tmp_path / "kafka.log").open("wb") as log:
        process = subprocess.Popen([start_it[0], *SHORT_LIVED, *start_it[1:]], cwd=tmp_path, stdout=log, stderr=log)
        try:
            yield here
        finally:
            process.kill()
            process.wait()


def test_the_jars_are_those_that_are_tried() -> None:
    """The page fetches the Kafka that the tests run, by Maven."""
    assert f"<artifactId>kafka_2.13</artifactId><version>{NEWEST_VERSION}</version>" in shown("xml")[0]
    assert commands()[0].startswith("mvn ") and f"apache/kafka:{NEWEST_VERSION}" in QUICK_START


def test_the_readme_shows_the_same() -> None:
    """The rule and the command are those of the page, and so is the text of the refusal (U-3g)."""
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"```console\n(.*?)```", readme, re.DOTALL)[-1] == shown("console")[1]
    (told,) = re.findall(r'str="(.*?)"', shown("text")[0])
    assert f"gets `{told}`" in readme


def test_the_quick_start(here: Callable[[str], str], tmp_path: Path) -> None:
    """The gateway observes, and a topic is created that breaks the rule; then it enforces, and
    another one is refused with the text that is shown.
    """
    write, observe = commands()[3:5]
    subprocess.run(["sh", "-c", write], cwd=tmp_path, check=True)
    observing = shlex.split(here(observe))[1:]
    assert "--observe" in observing
    enforcing = [each for each in observing if each != "--observe"]
    through(observing, tmp_path, "orders")
    with pytest.raises(KafkaException) as refused:
        through(enforcing, tmp_path, "payments")
    assert str(refused.value.args[0]) == shown("text")[0].strip()
    told = call("audit", "show", "audit-log", "--topic", "orders", folder=tmp_path).stdout
    assert "decision=violated" in told and "enforced: false" in told


def through(arguments: list[str], folder: Path, topic: str) -> None:
    """Create a topic through a gateway on free ports, by the client of the page."""
    anywhere = [each.replace("127.0.0.1:8080", "127.0.0.1:0") for each in arguments]
    with running(*anywhere, "--listen", "127.0.0.1:0", folder=folder) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert re.sub(r"\d+", "0", line.strip()) == re.sub(r"\d+", "0", shown("console")[1].splitlines()[-1])
        client = shown("python")[0].replace(BOOTSTRAP, line.removeprefix(READY).split()[0])
        variables: dict[str, Any] = {}
        try:
            exec(client.replace("orders", topic), variables)
        finally:
            end(process, signal.SIGINT)

"""`minicontroller demo`: what a newcomer runs first."""

import signal
import socket
from pathlib import Path

import pytest

from tests.cli.command import call, end, running
from tests.support.waiting import until

pytestmark = pytest.mark.slow

WIDTH = 100


def test_the_demo_shows_both_answers_and_ends(tmp_path: Path) -> None:
    """--once plays the script: requests that are accepted, and refusals with the policy's words,
    within 100 columns.
    """
    outcome = call("demo", "--once", folder=tmp_path)
    assert (outcome.code, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert max(map(len, lines)) <= WIDTH
    said = " ".join(outcome.stdout.split())
    assert "yes sales.orders.placed created" in said
    assert "no Orders_v2: the name Orders_v2 is not team.domain.name" in said
    assert said.count("(POLICY_VIOLATION)") == 6
    assert "SERVER_ERROR" not in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_stays_up_until_it_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """After the script it says where the cluster is, which answers until the demo is ended, and not
    after.
    """
    with running("demo", folder=tmp_path) as process:
        assert process.stdout is not None
        bootstrap, invited = "", False
        for line in process.stdout:
            bootstrap = bootstrap or line.partition("bootstrap.servers=")[2].strip()
            if "Ctrl-C ends it" in line:
                invited = True
                break
        assert invited
        list_topics = ("topics", "list", "--bootstrap-server", bootstrap)
        assert "sales.orders.placed" in call(*list_topics, folder=tmp_path).stdout
        outcome = end(process, number)
        assert (outcome.code, outcome.stderr) == (0, "")
        assert call(*list_topics, folder=tmp_path).code == 3


@pytest.mark.parametrize("said", ["bootstrap.servers=", "Ctrl-C ends it"], ids=["while it plays", "while it stays"])
def test_the_cluster_does_not_outlive_a_demo_that_is_killed(tmp_path: Path, said: str) -> None:
    """After SIGKILL, at which nobody can clean up, the cluster notices that nobody wants it any
    more.
    """
    with running("demo", folder=tmp_path) as process:
        assert process.stdout is not None
        address = ""
        for line in process.stdout:
            address = address or line.partition("bootstrap.servers=")[2].strip().split(",")[0]
            if said in line:
                break
        host, _, port = address.partition(":")
        socket.create_connection((host, int(port))).close()
        process.kill()
        until(lambda: not is_open(host, int(port)))


def is_open(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port)).close()
    except OSError:
        return False
    return True

"""What the README shows happens as it is shown. Its examples are run in their order, in an empty folder."""

import re
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cli.command import end, running
from tests.support.cluster import READY
from tests.support.zookeeper import ZooKeeperServer

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LINES_OF_A_SCREEN = 80


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def arguments(number: int) -> list[str]:
    """Of the n-th command that is shown."""
    command = shlex.split(examples("console")[number].splitlines()[0])
    assert command[:2] == ["$", "minicontroller"]
    return command[2:]


def test_it_fits_a_screen_and_begins_with_the_two_commands() -> None:
    """The two commands come first, and all of it is seen without much scrolling."""
    lines = README.splitlines()
    assert [line.split("#")[0].strip() for line in lines[2:4]] == ["make up", "make test"]
    assert len(lines) <= LINES_OF_A_SCREEN


def test_the_targets_of_make_are_there() -> None:
    """The Makefile has both commands."""
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in ("up", "test"))


@pytest.mark.parametrize("document", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    """Each link to a file of the repository has its file."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


def test_a_cluster_for_tests(tmp_path: Path) -> None:
    """The first example: a ready line of the shape shown, and a client that finds what it made."""
    shown = examples("console")[0].splitlines()[1]
    with running(*arguments(0), folder=tmp_path) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert re.sub(r"\d+", "0", line) == re.sub(r"\d+", "0", shown)
        exec(examples("python")[0], {"bootstrap_servers": line.removeprefix(READY).split()[0]})


def test_a_rule_for_topics(tmp_path: Path) -> None:
    """The second example: the client reads the message that is shown, and what keeps the rule is made."""
    (tmp_path / "rules.py").write_text(examples("python")[1])
    with running(*arguments(1), folder=tmp_path) as process:
        assert process.stdout is not None
        admin = AdminClient({"bootstrap.servers": process.stdout.readline().removeprefix(READY).split()[0]})
        with pytest.raises(KafkaException) as refused:
            create(admin, "orders")
        create(admin, "team-orders")
    [error] = refused.value.args
    assert str(error) == examples("text")[0].strip()


def test_a_node_on_zookeeper(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """The third example, with this machine's ZooKeeper and ports in place of the usual ones."""
    (tmp_path / "config").symlink_to(ROOT / "config")
    here = [each.replace("127.0.0.1:2181", zookeeper.connect) for each in arguments(2)]
    assert here != arguments(2)
    for key in ("listeners", "advertised.listeners"):
        here += ["--set", f"{key}=PLAINTEXT://127.0.0.1:0"]
    with running(*here, folder=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(READY)
        assert end(process, signal.SIGINT).code == 0


def create(admin: AdminClient, name: str) -> Any:
    return admin.create_topics([NewTopic(name, num_partitions=6, replication_factor=3)])[name].result()

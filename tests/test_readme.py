"""What the README shows happens as it is shown. Its examples are run in their order, in an empty
folder.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cli.command import call, end, running
from tests.support.cluster import READY
from tests.support.ports import free_port
from tests.support.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "benchmarks" / "README.md"])
LINES_OF_A_SCREEN = 115
WIDTH_OF_PROSE = 100
SHOWN = "127.0.0.1:9092"
ANYWHERE = ("--port", "0")


def examples(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def arguments(number: int) -> list[str]:
    """Return the arguments of the n-th command that is shown."""
    command = shlex.split(examples("console")[number].splitlines()[0])
    assert command[:2] == ["$", "minicontroller"]
    return command[2:]


def test_it_fits_a_screen_and_begins_with_the_two_commands() -> None:
    """The two commands come first, and all of it is seen without much scrolling."""
    lines = README.splitlines()
    assert [line.split("#")[0].strip() for line in lines[2:4]] == ["make up", "make test"]
    assert len(lines) <= LINES_OF_A_SCREEN


def test_what_is_not_here_yet_stands_in_the_third_line_of_prose() -> None:
    """Whoever looks for records finds within three lines that there are none."""
    first = README.split("\n\n")[2].splitlines()
    assert "Not here yet: records" in " ".join(first[:3])


def test_options_of_make_are_in_args() -> None:
    """Make takes no options of ours but by ARGS."""
    for document in DOCUMENTS:
        assert not re.search(r"make [a-z-]+ --", document.read_text()), document


def test_the_targets_of_make_are_there() -> None:
    """The Makefile has all that are named."""
    makefile = (ROOT / "Makefile").read_text()
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in ("up", "zookeeper", "test"))


def prose(document: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a document outside of code and tables."""
    is_code = False
    for number, line in enumerate(document.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith(("|", "    ")):
            yield number, line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_is_as_wide_as_in_the_program(document: Path) -> None:
    """Prose has at most 100 columns, as docstrings do."""
    wide = [number for number, line in prose(document) if len(line) > WIDTH_OF_PROSE]
    assert wide == [], f"{document.name}: wrap these lines"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    """Each link to a file has its file, and each link to a chapter its heading."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", document.read_text())
    missing = [target for target, _ in links if not (document.parent / target).exists()]
    assert missing == []
    chapters = [(document.parent / target if target else document, chapter) for target, chapter in links if chapter]
    assert [chapter for page, chapter in chapters if chapter not in headings(page)] == []


def headings(document: Path) -> set[str]:
    """The names by which links call the headings of a document."""
    titles = [line.lstrip("# ") for _, line in prose(document) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_a_cluster_for_tests(tmp_path: Path) -> None:
    """The first example: a ready line of the shape shown, and a client that finds what it made."""
    shown = examples("console")[0].splitlines()[1]
    with running(*arguments(0), *ANYWHERE, folder=tmp_path) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert re.sub(r"\d+", "0", line) == re.sub(r"\d+", "0", shown)
        exec(examples("python")[0].replace(SHOWN, line.removeprefix(READY).split()[0]), {})


def test_the_fixtures_for_pytest(tmp_path: Path) -> None:
    """The page about tests: its fixture and its test pass as they are shown."""
    page = (ROOT / "docs" / "testing.md").read_text()
    for shown in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        (tmp_path / shown.partition("\n")[0].removeprefix("# ")).write_text(shown)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    ran = subprocess.run(
        tests, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout


def test_a_rule_for_topics(tmp_path: Path) -> None:
    """The second example: the client reads the message that is shown, and what keeps the rule is
    made.
    """
    (tmp_path / "rules.py").write_text(examples("python")[1])
    with running(*arguments(1), *ANYWHERE, folder=tmp_path) as process:
        assert process.stdout is not None
        admin = AdminClient({"bootstrap.servers": process.stdout.readline().removeprefix(READY).split()[0]})
        with pytest.raises(KafkaException) as refused:
            create(admin, "orders")
        create(admin, "team-orders")
    [error] = refused.value.args
    assert str(error) == examples("text")[0].strip()


def test_a_node_on_zookeeper(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """The third example works with this machine's ZooKeeper and ports in place of
    the usual ones.
    """
    here = [each.replace("127.0.0.1:2181", zookeeper.connect) for each in arguments(2)]
    assert here != arguments(2)
    here = [each.replace(SHOWN, "127.0.0.1:0") for each in here]
    with running(*here, folder=tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(READY)
        assert end(process, signal.SIGINT).code == 0


def test_clients_that_log_in(tmp_path: Path) -> None:
    """The page that tells who is asking: the client that it shows is let in under its name, and one
    without a password is not.
    """
    page = (ROOT / "docs" / "who-is-asking.md").read_text()
    command = shlex.split(re.findall(r"```console\n\$ minicontroller (.*)\n", page)[0])
    record = ("--port", "0", "--set", f"audit.dir={tmp_path / 'audit'}")
    with running(*command, *record, folder=tmp_path) as process:
        assert process.stdout is not None
        servers = process.stdout.readline().removeprefix(READY).split()[0]
        shown: dict[str, Any] = {}
        exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0].replace("127.0.0.1:9092", servers), shown)
        create(shown["admin"], "orders")
        stranger = AdminClient({"bootstrap.servers": servers})
        with pytest.raises(KafkaException):
            stranger.list_topics(timeout=2)
        end(process, signal.SIGINT)
    recorded = call("audit", "show", "audit", "--principal", "User:alice", folder=tmp_path).stdout
    assert "User:alice create_topic orders ok" in recorded


def test_nodes_and_clients_that_log_in(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """The configuration of the same page makes nodes that know each other and let in the user that
    it names.
    """
    page = (ROOT / "docs" / "who-is-asking.md").read_text()
    text = properties(page)[0]
    here = text.replace("127.0.0.1:2181/", f"{zookeeper.connect}/who-").replace("127.0.0.1:9092", "127.0.0.1:0")
    (tmp_path / "node.properties").write_text(here)
    arguments = ("serve", "--config", "node.properties")
    with (
        running(*arguments, folder=tmp_path) as one,
        running(*arguments, "--set", "broker.id=2", folder=tmp_path) as two,
    ):
        for process in (one, two):
            assert process.stdout is not None
            servers = process.stdout.readline().removeprefix(READY).split()[0]
            login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
            user = {"sasl.username": "alice", "sasl.password": "alice-secret"}
            admin = AdminClient({"bootstrap.servers": servers, **login, **user})
            create(admin, f"by-{process.pid}", replicas=1)


def properties(page: str) -> list[str]:
    """The configurations that a page shows."""
    return re.findall(r"```properties\n(.*?)```", page, re.DOTALL)


def test_the_first_user_whose_password_is_written_nowhere(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """The administrator of docs/who-is-asking.md makes a user, who logs in by SCRAM."""
    page = (ROOT / "docs" / "who-is-asking.md").read_text()
    here = properties(page)[1].replace("127.0.0.1:2181/", f"{zookeeper.connect}/scram-")
    clients, nodes = (str(free_port()) for _ in range(2))
    (tmp_path / "node.properties").write_text(here.replace(":9092", f":{clients}").replace(":9192", f":{nodes}"))
    (tmp_path / "admin.properties").write_text(properties(page)[2])
    command = shlex.split(re.findall(r"\$ minicontroller (users set .*)\n", page)[0].replace(":9192", f":{nodes}"))
    with running("serve", "--config", "node.properties", folder=tmp_path) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(READY), line or process.communicate()
        password = {"MINICONTROLLER_NEW_PASSWORD": "alice-secret"}
        assert call(*command, folder=tmp_path, variables=password).code == 0
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512"}
        user = {"sasl.username": "alice", "sasl.password": "alice-secret"}
        create(AdminClient({"bootstrap.servers": f"127.0.0.1:{clients}", **login, **user}), "orders", replicas=1)


def test_the_stricter_policy_is_one(tmp_path: Path) -> None:
    """The rule file that the back-test is shown with has no mistake."""
    [line] = [each for each in examples("console")[3].splitlines() if "printf" in each]
    subprocess.run(["sh", "-c", line.removeprefix("$ ")], cwd=tmp_path, check=True)
    assert call("policy", "check", "stricter.toml", folder=tmp_path).code == 0


def create(admin: AdminClient, name: str, replicas: int = 3) -> Any:
    return admin.create_topics([NewTopic(name, num_partitions=6, replication_factor=replicas)])[name].result()

"""The output of commands on terminals of any width, closed pipes and full disks."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import call, environment
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.forked import COMMAND
from tests.support.terminal import on_terminal

QUESTION = "with all records? [y/N]:"


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with running_cluster(brokers=1) as running:
        yield running


@pytest.fixture(scope="module")
def asked(cluster: MiniCluster) -> dict[str, str]:
    """The variable that names the cluster."""
    return {"MINICONTROLLER_BOOTSTRAP": cluster.bootstrap}


@pytest.fixture(scope="module")
def lasting(asked: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A topic for all tests that leave it there."""
    name = "a-topic-that-stays"
    folder = tmp_path_factory.mktemp("lasting")
    assert call("topics", "create", name, "--partitions", "2", folder=folder, variables=asked).code == 0
    return name


@pytest.fixture
def topic(asked: dict[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A topic for this test alone."""
    name = f"t-{abs(hash(request.node.name))}"
    assert call("topics", "create", name, "--partitions", "2", folder=tmp_path, variables=asked).code == 0
    return name


def shell(line: str, folder: Path, variables: dict[str, str]) -> tuple[str, str]:
    """`$0` is the command. Returns both outputs."""
    done = subprocess.run(
        ["bash", "-c", line, COMMAND],
        cwd=folder,
        env=environment(variables),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "topics list",
        "topics describe",
        "topics list --json",
        "configs get --all --broker 1",
        "cluster",
        "protocol apis",
        "--help",
        "topics --help",
    ],
)
@pytest.mark.parametrize("reader", ["head -c 1 >/dev/null", "true"])
def test_a_reader_who_leaves_is_no_failure(
    asked: dict[str, str], lasting: str, tmp_path: Path, arguments: str, reader: str
) -> None:
    """A closed pipe ends the command with code 0 and without a message."""
    assert shell(f'"$0" {arguments} | {reader}; echo "${{PIPESTATUS[0]}}"', tmp_path, asked) == ("0\n", "")


def test_a_refusal_is_told_although_nobody_reads(asked: dict[str, str], lasting: str, tmp_path: Path) -> None:
    """The exit code reports a refusal even if the pipe is closed."""
    line = f'"$0" topics create {lasting} new-{lasting} | true; echo "${{PIPESTATUS[0]}}"'
    code, said = shell(line, tmp_path, asked)
    assert code == "1\n"
    assert f"{lasting}: refused (TOPIC_ALREADY_EXISTS)" in said


@pytest.mark.parametrize("arguments", ["topics list", "topics list --json", "--help", "protocol apis"])
def test_a_full_disk_is_a_sentence(asked: dict[str, str], lasting: str, tmp_path: Path, arguments: str) -> None:
    """A full disk ends the command with code 1 and without a trace."""
    assert shell(f'"$0" {arguments} >/dev/full; echo $?', tmp_path, asked) == (
        "1\n",
        "Error: No space left on device.\n",
    )


@pytest.mark.parametrize("closed", [">&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_outputs_and_inputs(asked: dict[str, str], topic: str, tmp_path: Path, closed: str) -> None:
    """A command without stdin, stdout or stderr does its work all the same."""
    for arguments in ("topics list", f"topics delete {topic}"):
        _, said = shell(f'"$0" {arguments} {closed}; exit $?', tmp_path, asked)
        assert said == ""
    assert call("topics", "describe", topic, folder=tmp_path, variables=asked).code == 1


@pytest.mark.parametrize("columns", [1, 20, 40, 80, 300])
def test_every_width_of_a_terminal_shows_the_names(
    asked: dict[str, str], lasting: str, tmp_path: Path, columns: int
) -> None:
    """Where a table has no room its rows are lines, which the terminal breaks."""
    seen = on_terminal("topics", "list", folder=tmp_path, columns=columns, variables=asked)
    assert seen.code == 0
    assert lasting in seen.screen if columns < 40 else lasting[:12] in seen.screen
    assert ("─" in seen.screen) is (columns >= 40)


def test_no_color_has_no_color(asked: dict[str, str], topic: str, tmp_path: Path) -> None:
    """NO_COLOR takes the colours away; a dumb terminal gets no sequence at all."""
    plain = on_terminal("cluster", folder=tmp_path, variables={**asked, "NO_COLOR": "1"}).screen
    assert "\x1b[3" not in plain
    assert "\x1b" not in on_terminal("cluster", folder=tmp_path, variables={**asked, "TERM": "dumb"}).screen


@pytest.mark.parametrize(
    ("keys", "code", "said", "remains"),
    [
        ("y\n", 0, "deleted", False),
        ("n\n", 1, "Nothing was deleted.", True),
        ("\n", 1, "Nothing was deleted.", True),
        ("what\ny\n", 0, "invalid input", False),
        ("\x04", 1, "Aborted.", True),
        ("\x03", -signal.SIGINT, QUESTION, True),
    ],
    ids=["yes", "no", "nothing", "nonsense first", "Ctrl-D", "Ctrl-C"],
)
def test_a_deletion_is_asked_back(
    asked: dict[str, str], topic: str, tmp_path: Path, *, keys: str, code: int, said: str, remains: bool
) -> None:
    """On a terminal only a yes deletes, and whatever else is typed does not look like one."""
    seen = on_terminal("topics", "delete", topic, folder=tmp_path, keys=keys, prompt=QUESTION, variables=asked)
    assert (seen.code, said in seen.screen) == (code, True), seen
    described = call("topics", "describe", topic, folder=tmp_path, variables=asked)
    assert (described.code == 0) is remains


def test_nobody_is_asked_in_a_pipe(asked: dict[str, str], topic: str, tmp_path: Path) -> None:
    """In a pipe a deletion asks for no confirmation; on a terminal `--yes` skips it."""
    assert call("topics", "delete", topic, folder=tmp_path, variables=asked) == (0, f"{topic}: deleted\n", "")
    call("topics", "create", topic, folder=tmp_path, variables=asked)
    assert QUESTION not in on_terminal("topics", "delete", "--yes", topic, folder=tmp_path, variables=asked).screen

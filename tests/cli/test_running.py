"""From the start to the end of `up` and `serve`: the ready line, signals at any moment, and a
`ping` from outside.
"""

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest

from minicontroller.cli import parent
from tests.cli.command import call, complaint, end, environment, running
from tests.support.cluster import READY
from tests.support.forked import COMMAND
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.zookeeper import ZooKeeperServer

IMPATIENT = """
import os, sys

class Impatient:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Impatient)
"""
"""Python runs it before anything else: a signal comes when a module is about to be loaded."""

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def wait_for(text: str, process: subprocess.Popen[str]) -> None:
    """Until stderr has a line with this text."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"it ended without a word of {text!r}")


def bootstrap_of(process: subprocess.Popen[str]) -> list[str]:
    return first_line(process).removeprefix(READY).split()[0].split(",")


@SIGNALS
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C or SIGTERM ends a node that serves with code 0, nothing more on stdout,
    and no trace.
    """
    with running("up", "--port", "0", folder=tmp_path) as process:
        assert first_line(process).startswith(READY)
        outcome = end(process, number)
    assert (outcome.code, outcome.stdout) == (0, "")
    assert "Traceback" not in outcome.stderr


@SIGNALS
@pytest.mark.parametrize("module", ["click", "trio", "minicontroller.controller.node.app"])
def test_a_signal_while_it_is_loaded(tmp_path: Path, number: signal.Signals, module: str) -> None:
    """Ctrl-C before there is anything to stop: code 0 and not a word."""
    (tmp_path / "sitecustomize.py").write_text(IMPATIENT.format(module=module, number=number.value))
    outcome = call("up", "--port", "0", folder=tmp_path, variables={"PYTHONPATH": str(tmp_path)})
    assert outcome == (0, "", "")


@SIGNALS
def test_a_signal_while_it_starts(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C between the loading and the ready line ends with code 0 and no trace."""
    (tmp_path / "impatient.py").write_text(
        f"import os, signal\n\nfrom minicontroller.policies import TopicManagementPolicy as Policy\n\n"
        f"os.kill(os.getppid(), {number.value})\n"
    )
    policy = "topic.management.policy.class.name=impatient.py:Policy"
    outcome = call("up", "--port", "0", "--set", policy, folder=tmp_path)
    assert (outcome.code, outcome.stdout) == (0, "")


POLICY = """
import os, threading
from pathlib import Path
from minicontroller.policies import TopicManagementPolicy

def say(what):
    with Path(__file__).with_suffix(".txt").open("a") as file:
        file.write(f"{os.getpid()} {what}\\n")

class Policy(TopicManagementPolicy):
    def configure(self, configs):
        say("configured")
        threading.Thread(target=threading.Event().wait).start()

    def validate_create_topic(self, request, cluster):
        pass

    def close(self):
        say("closed")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_policies_end_with_their_nodes(tmp_path: Path, number: signal.Signals) -> None:
    """Each node's policy has a process; none is left when the nodes end, or are killed. Policies
    are closed where there is time for it.
    """
    (tmp_path / "policy.py").write_text(POLICY)
    with running(
        "up", "--port", "0", "--set", "topic.management.policy.class.name=policy.py:Policy", folder=tmp_path
    ) as process:
        assert first_line(process).startswith(READY)
        end(process, number)
    said = [line.split() for line in (tmp_path / "policy.txt").read_text().splitlines()]
    assert [what for _, what in said] == ["configured"] * 3 + ([] if number == signal.SIGKILL else ["closed"] * 3)
    pids = {int(pid) for pid, _ in said}
    assert len(pids) == 3
    until(lambda: not any(map(is_there, pids)))


def test_the_start_tells_what_judges(tmp_path: Path) -> None:
    """The log names the policy and the rule files in force, with the number of their rules, where
    any are configured.
    """
    (tmp_path / "policy.py").write_text(POLICY)
    (tmp_path / "a.toml").write_text("[[partitions]]\nmax = 9\n")
    (tmp_path / "b.toml").write_text('[[replication]]\nmin = 1\n\n[[name_pattern]]\npattern = ".*"\n')
    settings = ("topic.management.policy.class.name=policy.py:Policy", "policy.rules.files=a.toml,b.toml")
    arguments = [argument for each in settings for argument in ("--set", each)]
    with running("up", "--port", "0", "--brokers", "1", *arguments, folder=tmp_path) as process:
        assert first_line(process).startswith(READY)
        told = end(process, signal.SIGTERM).stderr
    assert re.search(r"policy in force: Policy \(hash [0-9a-f]{12}\)", told), told
    assert re.search(r"rules in force: 3 of a\.toml, b\.toml \(hash [0-9a-f]{12}\)", told), told


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@SIGNALS
def test_a_signal_while_zookeeper_is_dead(tmp_path: Path, number: signal.Signals) -> None:
    """A node without its ZooKeeper says so in a sentence, tries on, and can be ended
    all the same.
    """
    (tmp_path / "node.properties").write_text("broker.id=1\nlisteners=PLAINTEXT://127.0.0.1:0\n")
    arguments = ("serve", "--config", "node.properties", "--set", "zookeeper.connect=127.0.0.1:1/none")
    with running(*arguments, folder=tmp_path) as process:
        wait_for("ZooKeeper at 127.0.0.1:1 cannot be reached", process)
        outcome = end(process, number)
    assert (outcome.code, outcome.stdout) == (0, "")
    assert "Traceback" not in outcome.stderr


def test_node_i_listens_on_the_ith_port(tmp_path: Path) -> None:
    """`--port 0` finds a free port for each node; each is asked and knows the controller and all
    nodes (`ping`).
    """
    with running("up", "--port", "0", "--brokers", "4", folder=tmp_path) as process:
        addresses = bootstrap_of(process)
        assert len(set(addresses)) == 4
        for address in addresses:
            pulse = call("ping", address, folder=tmp_path)
            assert (pulse.code, pulse.stdout) == (0, "ready: controller 1, brokers 1, 2, 3, 4\n")


def test_the_samples_node_on_zookeeper(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """`serve` with the sample configuration serves on the listener for clients and says so."""
    sample = Path(__file__).parents[2] / "config" / "server.properties"
    (tmp_path / "server.properties").write_text(sample.read_text())
    arguments = ["serve", "--config", "server.properties"]
    for setting in (
        f"zookeeper.connect={zookeeper.connect}/the-sample",
        "listeners=PLAINTEXT://127.0.0.1:0",
        "advertised.listeners=PLAINTEXT://127.0.0.1:0",
    ):
        arguments += ["--set", setting]
    with running(*arguments, folder=tmp_path) as process:
        [address] = bootstrap_of(process)
        assert call("ping", address, folder=tmp_path).stdout == "ready: controller 1, brokers 1\n"
        assert end(process, signal.SIGTERM).code == 0


def test_up_on_zookeeper(tmp_path: Path, zookeeper: ZooKeeperServer) -> None:
    """`--store zookeeper://host:port/chroot` keeps the cluster there: a second life has the first
    one's id.
    """
    store = f"zookeeper://{zookeeper.connect}/up-by-hand"
    for _ in range(2):
        with running("up", "--port", "0", "--brokers", "2", "--store", store, folder=tmp_path) as process:
            assert len(bootstrap_of(process)) == 2
            outcome = end(process, signal.SIGINT)
            assert outcome.code == 0, outcome


def test_a_ready_line_that_nobody_reads(tmp_path: Path) -> None:
    """Whoever closed the pipe gets no ready line, and the node serves all the same until it is
    stopped.
    """
    port = str(free_port())
    with running("up", "--port", port, "--brokers", "1", folder=tmp_path) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None  # so that nobody reads what is closed
        until(lambda: call("ping", f"127.0.0.1:{port}", folder=tmp_path).code == 0)
        outcome = end(process, signal.SIGINT)
    assert outcome.code == 0
    assert "pipe" not in outcome.stderr.lower()


ENDS_WITH_PARENT = ("up", "--port", "0", "--brokers", "1", "--with-parent")
PARENT = "import subprocess, sys; subprocess.Popen(sys.argv[2:], stdin=eval(sys.argv[1])).wait()"
"""A test, say, that starts a cluster. All processes below it share its stdout."""


def test_a_cluster_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    """A parent that is killed takes `up --with-parent` with it, also where a shell or make stands
    between them, or another program and a pipe on stdin.
    """
    (tmp_path / "Makefile").write_text(f"up:\n\t@{COMMAND} {' '.join(ENDS_WITH_PARENT)}\n")
    between = [sys.executable, "-c", PARENT, "None"]
    callers = [
        ("None", [str(COMMAND), *ENDS_WITH_PARENT]),
        ("None", ["sh", "-c", f"{COMMAND} {' '.join(ENDS_WITH_PARENT)}; exit 1"]),
        ("None", ["make", "--silent", "up"]),
        ("subprocess.PIPE", [*between, str(COMMAND), *ENDS_WITH_PARENT]),
    ]
    with ExitStack() as stack:
        parents = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PARENT, stdin, *command],
                    cwd=tmp_path,
                    env=environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            for stdin, command in callers
        ]
        assert all(first_line(each).startswith(READY) for each in parents)
        for each in parents:
            each.kill()
        for each in parents:
            assert not each.communicate(timeout=30)[0]  # it ends when the cluster has ended


ORPHANS = """
import os, sys, time
parent = os.getpid()
if not os.fork():
    while os.getppid() == parent:
        time.sleep(0.001)
    if sys.argv[1] == "leads":
        os.setsid()
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""A process that has ended before its child is the command."""


def test_a_cluster_does_not_begin_without_the_process_that_started_it(tmp_path: Path) -> None:
    """A parent that is killed right after it has started `up --with-parent` is as gone as one that
    is killed later, also where the command leads a session of its own.
    """
    with ExitStack() as stack:
        orphans = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", ORPHANS, session, str(COMMAND), *ENDS_WITH_PARENT],
                    cwd=tmp_path,
                    env=environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            )
            for session in ("inherits", "leads")
        ]
        for each in orphans:
            ready, reason = each.communicate(timeout=30)
            assert not ready
            assert reason.startswith("Error: The process that started this one has ended already")


def test_stdin_is_a_lifeline_only_where_somebody_holds_its_other_end() -> None:
    """A pipe that is closed already, and /dev/null, say nothing about the parent."""
    script = "from minicontroller.cli.parent import _is_lifeline; print(_is_lifeline())"

    def told(stdin: int) -> str:
        command = [sys.executable, "-c", script]
        return subprocess.run(command, stdin=stdin, capture_output=True, text=True, check=True).stdout.strip()

    reading, writing = os.pipe()
    assert told(reading) == "True"
    os.close(writing)
    assert told(reading) == "False"
    os.close(reading)
    assert told(subprocess.DEVNULL) == "False"


def test_where_the_system_cannot_say_that_a_process_ends_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pidfd, the chain of the starters up to the parent is compared with what it was."""
    ended = []
    with subprocess.Popen(["sleep", "1000"]) as child:
        monkeypatch.setattr(os, "getppid", lambda: child.pid)
        monkeypatch.setattr(parent, "_end", lambda: ended.append(True))
        monkeypatch.setattr(parent, "PAUSE_SECONDS", 0.01)
        watched = parent._watched()
        assert [each.name for each in watched] == ["sleep"]
        monkeypatch.setattr(parent, "_wait_for_one", lambda _pids: os.close(-1))  # an OSError
        watching = Thread(target=parent._end_after, args=(watched,))
        watching.start()
        child.kill()
        watching.join(30)
    assert ended == [True]


def test_ping_of_nobody(tmp_path: Path) -> None:
    """A node that is not there is not ready: one sentence, code 1."""
    assert "127.0.0.1:1" in complaint("ping", "127.0.0.1:1", folder=tmp_path)


def test_as_a_module(tmp_path: Path) -> None:
    """`python -m minicontroller` is the same command."""
    python = COMMAND.with_name("python")
    done = subprocess.run(
        [python, "-m", "minicontroller", "--version"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("minicontroller, version ")

"""The three commands where Spark's workers are processes of their own: some of which are killed, or
have no `minicontroller`.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from minicontroller.audit.event import AuditEvent, Requested
from tests.audit.logs import a_creation, a_state, an_empty_snapshot, write
from tests.pipeline.one_session import in_session
from tests.support.spark import HOME, as_options, bare_python, connect_server, home, soon_started
from tests.support.waiting import until

EVENTS, EPOCHS = 500, 3
POLICY = """
from minicontroller.policies import PolicyViolation, TopicManagementPolicy

import neighbour


class Strict(TopicManagementPolicy):
    def configure(self, configs):
        self.most = int(configs["topic.management.policy.config.most"])

    def validate_create_topic(self, request, cluster):
        if neighbour.too_many(request, self.most):
            raise PolicyViolation(f"{request.topic} has too many partitions.")
"""
NEIGHBOUR = """
def too_many(request, most):
    return request.requested_state.num_partitions > most
"""
RULES = "[[protected_topics]]\ntopics = ['t1.5']\noperations = ['create']\n"
CONFIGURATION = """
topic.management.policy.class.name=strict.py:Strict
topic.management.policy.config.most=3
policy.rules.files=rules.toml
"""
COMMANDS = (
    "ingest --audit audit --tables tables",
    "report --tables tables --out report.html",
    "backtest server.properties --tables tables --out page.html",
)
PROGRAM = """
import json
import sys

from minicontroller.pipeline import parallel
from minicontroller.pipeline.commands import pipeline
from minicontroller.pipeline.session import spark_session

parallel.SMALL = 0  # so that Spark does what little there is, too
with spark_session(sys.argv[1] or None, settings=json.loads(sys.argv[2])):
    for command in sys.argv[3:]:
        print(command, flush=True)
        pipeline.main(command.split(), standalone_mode=False)
"""
RESULTS = ("report.json", "page.json", "page-differences.ndjson")
WITHIN_SECONDS = 240.0
PAUSE_SECONDS = 0.1


def a_log(folder: Path) -> None:
    """Write creations of topics, every fifth of which has too many partitions."""
    (folder / "audit").mkdir(parents=True)
    (folder / "rules.toml").write_text(RULES)
    (folder / "neighbour.py").write_text(NEIGHBOUR)
    (folder / "strict.py").write_text(POLICY)
    (folder / "server.properties").write_text(CONFIGURATION)
    for epoch in range(1, EPOCHS + 1):
        write(folder / "audit" / f"{epoch}.ndjson", [*an_empty_snapshot(epoch), *_creations(epoch)])


def _creations(epoch: int) -> Iterator[AuditEvent]:
    for sequence in range(3, 3 + EVENTS):
        state = a_state(1 + sequence % 5)
        requested = Requested(
            replicas=state.replicas,
            configs={},
            marked_for_deletion=False,
            internal=False,
            generated_replica_assignments=True,
        )
        yield a_creation(sequence, f"t{epoch}.{sequence}", epoch, requested=requested, after=state, cluster_size=3)


@contextmanager
def begun(
    folder: Path, start: Sequence[str], master: str, settings: Mapping[str, str], **variables: str
) -> "Iterator[subprocess.Popen[str]]":
    """Begin all three commands, in one session, which has to end well."""
    (folder / "program.py").write_text(PROGRAM)
    with (
        (folder / "stderr").open("wb") as stderr,
        subprocess.Popen(
            [*start, "program.py", master, json.dumps(settings), *COMMANDS],
            cwd=folder,
            env={**os.environ, "SPARK_HOME": str(home(folder)), "SPARK_LOCAL_IP": "127.0.0.1", **variables},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        yield process
        process.wait(WITHIN_SECONDS)
    assert process.returncode == 0, (folder / "stderr").read_text()


def submitted(folder: Path, master: str) -> "AbstractContextManager[subprocess.Popen[str]]":
    """Begin them by spark-submit, with workers whose Python has no `minicontroller`."""
    submit = [str(HOME / "bin" / "spark-submit"), "--master", master, *as_options(soon_started())]
    pythons = {"PYSPARK_PYTHON": str(bare_python(folder)), "PYSPARK_DRIVER_PYTHON": sys.executable}
    return begun(folder, submit, "", {}, **pythons)


def results(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in RESULTS]


@pytest.fixture(name="quiet", scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The results of all three commands in this process, whose session is there."""
    folder = tmp_path_factory.mktemp("quiet")
    a_log(folder)
    for done in in_session(spark, *(command.split() for command in COMMANDS), folder=folder):
        assert done.code == 0, done
    return results(folder)


@pytest.mark.slow
@pytest.mark.timeout(5 * WITHIN_SECONDS)  # each of three executors has as long to begin its work
def test_executors_that_are_killed(quiet: list[bytes], tmp_path: Path) -> None:
    """Under spark-submit the program runs at the master that was named there, and its workers need
    its libraries but not itself: candidate, neighbour and configuration get there. Of the two
    executors one is killed during each command while its Python works: the results are those of an
    undisturbed run.
    """
    disturbed = tmp_path / "disturbed"
    a_log(disturbed)
    killed = 0
    with submitted(disturbed, "local-cluster[2,1,1024]") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.rstrip() in COMMANDS:
                at_work = partial(an_executor_at_work, ticks(process.pid), process.pid)
                os.kill(until(at_work, within=WITHIN_SECONDS, pause=PAUSE_SECONDS), signal.SIGKILL)
                killed += 1
    assert killed == len(COMMANDS)
    assert results(disturbed) == quiet
    found = json.loads((disturbed / "page.json").read_bytes())["totals"]["differences"]
    assert found["newly-denied"] == EPOCHS * EVENTS * 2 // 5 + 1


def an_executor_at_work(before: Mapping[int, int], program: int) -> int:
    """Return the process of an executor whose Python worked since then; 0 if there is none."""
    return next((executor for executor, now in ticks(program).items() if now > before.get(executor, 0)), 0)


def ticks(program: int) -> dict[int, int]:
    """Return for how long the Python of each executor of a program has worked."""
    processes = {each.number: each for each in descendants(program)}
    worked: dict[int, int] = {}
    for each in processes.values():
        above: _Process | None = each
        while above is not None and above.parent != program and "CoarseGrainedExecutor" not in above.command:
            above = processes.get(above.parent)
        if above is not None and "CoarseGrainedExecutor" in above.command and "pyspark.daemon" in each.command:
            worked[above.number] = worked.get(above.number, 0) + each.ticks
    return worked


class _Process(NamedTuple):
    number: int
    parent: int
    ticks: int
    command: str


def descendants(program: int) -> Iterator[_Process]:
    """Look at the processes below a program; all that there are would take 14 ms each time."""
    for thread in Path(f"/proc/{program}/task").glob("*/children"):
        with suppress(OSError):
            for number in thread.read_text().split():
                found = _looked_at(Path("/proc", number))
                if found is not None:
                    yield found
                    yield from descendants(found.number)


def _looked_at(entry: Path) -> _Process | None:
    """Look at a process; it may have ended."""
    try:
        fields = (entry / "stat").read_text().rpartition(")")[2].split()
        return _Process(
            int(entry.name), int(fields[1]), int(fields[11]) + int(fields[12]), (entry / "cmdline").read_text()
        )
    except OSError:
        return None


@pytest.mark.slow
def test_spark_connect(quiet: list[bytes], tmp_path: Path) -> None:
    """By a server of Spark Connect, whose workers do not have the program, the results are those of
    Spark in the same process.
    """
    there = tmp_path / "there"
    a_log(there)
    with (
        connect_server(there, bare_python(tmp_path)) as address,
        begun(there, [sys.executable], address, soon_started()) as process,
    ):
        process.communicate()
    assert results(there) == quiet

"""Commands of the pipeline one after the other, in a process of their own with one start of Spark
and its libraries for all of them, or in this one.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner
from pyspark.sql import SparkSession

from minicontroller.pipeline.commands import pipeline
from tests.cli.command import Outcome, environment

PROGRAM = """
import json, sys
from contextlib import nullcontext

from click.testing import CliRunner

from minicontroller.pipeline.commands import pipeline
from minicontroller.pipeline.session import spark_session

master, commands = sys.argv[1], json.loads(sys.argv[2])
with spark_session(master) if master else nullcontext():
    done = [CliRunner().invoke(pipeline, arguments, env=variables) for arguments, variables in commands]
print(json.dumps([(each.exit_code, each.stdout, each.stderr) for each in done]))
"""
SPARK_SECONDS = 300.0
Command = tuple[Sequence[str], Mapping[str, str]]
"""Its arguments behind `minicontroller pipeline`, and variables of its own."""


def in_session(spark: SparkSession, *commands: Sequence[str], folder: Path) -> Iterator[Outcome]:
    """Run commands in this process, with the session that is there; yield the outcome of each."""
    assert SparkSession.getActiveSession() is spark
    with chdir(folder):
        for command in commands:
            done = CliRunner().invoke(pipeline, command)
            assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
            yield Outcome(done.exit_code, done.stdout, done.stderr)


def in_one_session(*commands: Sequence[str], folder: Path) -> list[Outcome]:
    """Run commands with a session of Spark that is there; return what came of each."""
    return in_one_process([(command, {}) for command in commands], folder, "local[2]")


def in_one_process(commands: Sequence[Command], folder: Path, master: str = "") -> list[Outcome]:
    """Run commands, each of which starts Spark itself unless a master is named."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, master, json.dumps(commands)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SPARK_SECONDS,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done
    outcomes = [Outcome(*each) for each in json.loads(done.stdout)]
    assert not any("Traceback" in each.stderr for each in outcomes), outcomes
    return outcomes

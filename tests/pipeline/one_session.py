"""Commands of the pipeline in a process of their own that starts Spark once for all of them."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.cli.command import Outcome, environment

PROGRAM = """
import json, sys

from click.testing import CliRunner

from minicontroller.pipeline.commands import pipeline
from minicontroller.pipeline.session import spark_session

with spark_session("local[2]"):
    done = [CliRunner().invoke(pipeline, command) for command in json.loads(sys.argv[1])]
print(json.dumps([(each.exit_code, each.stdout, each.stderr) for each in done]))
"""
SPARK_SECONDS = 300.0


def in_one_session(*commands: Sequence[str], folder: Path) -> list[Outcome]:
    """Run commands, each without `minicontroller pipeline`, one after the other; return what came
    of each.
    """
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
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

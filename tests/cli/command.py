"""The installed `minicontroller` as people call it: a process in a folder of its own, its two
outputs and its code. A command that ends by itself runs in a fork, where that shows the same.
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from tests.support.forked import COMMAND, Forked, can_fork

TIMEOUT_SECONDS = 120.0


class Outcome(NamedTuple):
    code: int
    stdout: str
    stderr: str


def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of this process without what would configure a node."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "MINICONTROLLER_"))}
    return {**mine, "COLUMNS": "120", **(variables or {})}


def call(
    *arguments: str,
    folder: Path,
    variables: Mapping[str, str] | None = None,
    command: Path = COMMAND,
    within: float = TIMEOUT_SECONDS,
) -> Outcome:
    """A command that ends by itself."""
    env = environment(variables)
    if command == COMMAND and can_fork(arguments, env):
        outcome = _forked(arguments, folder, env, within)
    else:
        done = subprocess.run(
            [command, *arguments],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        outcome = Outcome(done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in outcome.stderr, outcome.stderr
    return outcome


def _forked(arguments: Sequence[str], folder: Path, variables: Mapping[str, str], within: float) -> Outcome:
    with TemporaryFile("w+") as stdout, TemporaryFile("w+") as stderr:
        process = Forked(arguments, cwd=folder, env=variables, stdout=stdout.fileno(), stderr=stderr.fileno())
        try:
            code = process.wait(within)
        except BaseException:
            process.kill()
            process.wait()
            raise
        stdout.seek(0)
        stderr.seek(0)
        return Outcome(code, stdout.read(), stderr.read())


def complaint(*arguments: str, folder: Path, code: int = 1, variables: Mapping[str, str] | None = None) -> str:
    """Return the text behind `Error: ` of a command that fails; on stdout it must say nothing."""
    outcome = call(*arguments, folder=folder, variables=variables)
    assert (outcome.code, outcome.stdout) == (code, ""), outcome
    return outcome.stderr.partition("Error: ")[2].strip()


@contextmanager
def running(
    *arguments: str, folder: Path, variables: Mapping[str, str] | None = None, command: Path = COMMAND
) -> Iterator[subprocess.Popen[str]]:
    """A command that does not end by itself; whoever wants to see it end waits for it within the
    block.
    """
    process = subprocess.Popen(
        [command, *arguments],
        cwd=folder,
        env=environment(variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str], number: signal.Signals) -> Outcome:
    """Send a signal and wait for what comes of it."""
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    return Outcome(process.returncode, stdout, stderr)

"""Loads a candidate with Python code in a process of its own, so that code which ends or blocks its
process only fails the load. That process runs this module, with the request on standard input:
`python -m minicontroller.pipeline.backtest.isolated_loading FILE`.

The process writes its answer to FILE and exits with DONE. Any other exit code, and a timeout, are
failures.
"""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryDirectory

import msgspec

from ...policies.loading import names_class
from .candidate import CandidateError, LoadedCandidate, limited_memory, named, read_candidate

LOAD_SECONDS = 60.0
"""How long a policy may take to be imported and configured, as at a node."""
STDERR = 2
DONE = 3
"""The exit code of a process that has answered; a policy that ends it has hardly this one."""


class LoadRequest(msgspec.Struct, frozen=True):
    """What is asked for, and the folders in which the command's own process looks for modules."""

    policy: str
    settings: tuple[str, ...]
    searched: tuple[str, ...]


def load_isolated(policy: str, settings: Sequence[str] = ()) -> LoadedCandidate:
    """Read the argument POLICY and the options `--set KEY=VALUE`. Raises CandidateError."""
    if not names_class(named(policy, settings)):
        return read_candidate(policy, settings)
    ask = LoadRequest(policy, tuple(settings), tuple(sys.path))
    with TemporaryDirectory(prefix="minicontroller-policy-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "answer"
        command = [sys.executable, "-P", "-m", __spec__.name, str(file)]
        with Popen(command, stdin=PIPE, stdout=STDERR, process_group=0) as process:  # noqa: S603 - this program
            try:
                process.communicate(msgspec.msgpack.encode(ask), LOAD_SECONDS)
            except TimeoutExpired:
                raise CandidateError(f"{policy} takes more than {LOAD_SECONDS:g} s to load.") from None
            finally:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)  # with whatever the policy started
        if process.returncode != DONE or not file.exists():
            raise CandidateError(
                f"{policy} ended the process that loads it ({_how(process.returncode)}): it must only define a policy."
            )
        answer = msgspec.msgpack.decode(file.read_bytes(), type=LoadedCandidate | str)
    if isinstance(answer, str):
        raise CandidateError(answer)
    return answer


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def main() -> None:
    """Answer, and end without the exit handlers that the policy may have left."""
    owner = os.getpid()
    ask = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=LoadRequest)
    sys.path[:] = ask.searched
    answer: LoadedCandidate | str
    try:
        with limited_memory():
            answer = read_candidate(ask.policy, ask.settings)
    except CandidateError as error:
        answer = str(error)
    sys.stderr.flush()
    if os.getpid() == owner:  # otherwise the policy forked, and this is the child
        Path(sys.argv[1]).write_bytes(msgspec.msgpack.encode(answer))
        os._exit(DONE)
    os._exit(1)


if __name__ == "__main__":
    main()

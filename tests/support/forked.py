"""The `minicontroller` command in processes that are forked from one that has imported its modules
already, which saves each of them half a second of processor time.

What runs in them is `main()`, as the installed script calls it. The script itself, and that a
command imports what it needs, is tested by what starts it with `subprocess`: the tests of `up` and
of signals in tests/cli/test_running.py, tests/client/test_loading.py, tests/test_packaging.py, and
all commands of the pipeline, whose libraries start threads.
"""

import atexit
import gc
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Self

COMMAND = Path(sys.executable).with_name("minicontroller")
IMPORTED = ("protocol", "policies", "audit", "cluster", "admin", "security", "network", "client", "controller", "records", "gateway", "cli")  # fmt: skip
NUMBER = struct.Struct("<i")
STDIO = 3
READ_BYTES = 1 << 16


class Forked:
    """A process that runs the command, with the part of `subprocess.Popen` that tests use; its
    standard input is empty.
    """

    def __init__(
        self,
        arguments: Sequence[str | Path],
        *,
        stdout: int | IO[bytes],
        stderr: int | IO[bytes] = subprocess.STDOUT,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """`stdout`: a file, or `PIPE`, whose lines are in the attribute `stdout` then."""
        self.args = [str(COMMAND), *map(str, arguments)]
        self.stdout, out = _pipe() if stdout == subprocess.PIPE else (None, _number(stdout))
        self.returncode: int | None = None
        self._waiting = Lock()
        self._told, theirs = socket.socketpair()
        with Path(os.devnull).open() as nothing, theirs:
            error = out if stderr == subprocess.STDOUT else _number(stderr)
            socket.send_fds(_forking(), [b"f"], [nothing.fileno(), out, error, theirs.fileno()])
        if stdout == subprocess.PIPE:
            os.close(out)
        wish = self.args, str(cwd or Path.cwd()), dict(os.environ if env is None else env)
        self._told.sendall(json.dumps(wish).encode())
        self._told.shutdown(socket.SHUT_WR)
        self.pid = self._number()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.stdout is not None:
            self.stdout.close()
        self.wait()

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        with self._waiting:
            if self.returncode is None:
                if not select.select([self._told], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                self.returncode = self._number()
                self._told.close()
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        data = self._told.recv(NUMBER.size)
        assert data, "the process that forks others has ended"
        number: int
        (number,) = NUMBER.unpack(data)
        return number


def can_fork(arguments: Sequence[object], env: Mapping[str, str] | None = None) -> bool:
    """Tell whether a fork shows what a process of the installed script would."""
    return list(arguments[:1]) != ["pipeline"] and _of_interpreters(os.environ if env is None else env) == AT_FIRST


def _of_interpreters(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that an interpreter looks at when it starts."""
    return {name: value for name, value in variables.items() if name.startswith(("PYTHON", "LC_", "LANG"))}


AT_FIRST = _of_interpreters(os.environ)


def begin(
    arguments: Sequence[str | Path],
    *,
    stdout: int | IO[bytes],
    command: Sequence[str | Path] = (COMMAND,),
    cwd: Path | None = None,
) -> Forked | subprocess.Popen[str]:
    """Begin the command, or another one in its place, with both outputs in one."""
    if command == (COMMAND,) and can_fork(arguments):
        return Forked(arguments, cwd=cwd, stdout=stdout)
    return subprocess.Popen(
        [*command, *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _pipe() -> tuple[IO[str] | None, int]:
    """Return what can be read from a pipe, and its other end."""
    ours, theirs = os.pipe()
    return os.fdopen(ours), theirs


def _number(file: int | IO[bytes]) -> int:
    return file if isinstance(file, int) else file.fileno()


@cache
def _forking() -> socket.socket:
    """Start the process that forks the others; it ends when this one does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()])

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# ---------------------------------------------------------------------- in the process that forks


def fork_for(asking: socket.socket) -> None:
    """Fork a process for each that is wished, and tell who wished it the process and its end."""
    children: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(asking, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in children:
                poll.unregister(ready)
                os.close(ready)
                pid, told = children.pop(ready)
                with told:
                    told.send(NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
                continue
            wish, files, _, _ = socket.recv_fds(asking, 1, STDIO + 1)
            if not wish:
                return
            told = socket.socket(fileno=files.pop())
            pid = os.fork()
            if not pid:
                for each in (asking, *(other for _, other in children.values())):
                    os.close(each.detach())
                for number in children:
                    os.close(number)
                become(told, files)
                return
            for file in files:
                os.close(file)
            told.send(NUMBER.pack(pid))
            ended = os.pidfd_open(pid)
            children[ended] = (pid, told)
            poll.register(ended, select.POLLIN)


def become(wish: socket.socket, files: Sequence[int]) -> None:
    """Run the command as it is wished."""
    from minicontroller.cli import main

    text = bytearray()
    while data := wish.recv(READ_BYTES):
        text += data
    os.close(wish.detach())
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.argv, folder, variables = json.loads(text)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    time.tzset()
    main.STARTED_BY = os.getppid()
    main.main()


def import_all() -> None:
    for name in IMPORTED:
        package = import_module(f"minicontroller.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                import_module(module.name)
    gc.freeze()


if __name__ == "__main__":
    sys.path[0] = str(COMMAND.parent)  # as that of the installed script
    import_all()
    fork_for(socket.socket(fileno=int(sys.argv[1])))

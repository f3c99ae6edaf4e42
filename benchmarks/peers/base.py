"""What every measured system has: it starts, says where it listens and which processes it is, and
stops.

A system owns all that it starts: its processes, its ZooKeeper, its folder. `start` returns when the
processes are launched, not when they answer: waiting is the driver's part, because it is what one
of the lines measures.
"""

import contextlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

Address = tuple[str, int]

HOST: Final = "127.0.0.1"
CACHE: Final = Path("~/.cache/minicontroller").expanduser()
STOP_SECONDS: Final = 20.0
READY_PREFIX: Final = "ready: bootstrap.servers="


class CannotRunError(Exception):
    """A system cannot be measured here; the text is a sentence that says why."""


class Process:
    """One child process with its output in a file, ended by its own id and nothing else."""

    def __init__(self, command: Sequence[str], *, log: Path, env: dict[str, str] | None = None) -> None:
        self.log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent, env=env
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def alive(self) -> bool:
        return self._popen.poll() is None

    def send(self, signum: signal.Signals) -> None:
        self._popen.send_signal(signum)

    def wait(self, seconds: float) -> None:
        self._popen.wait(seconds)

    def end(self, signum: signal.Signals) -> None:
        """Closes standard input, with which kfake ends, and sends the signal; does not wait."""
        with contextlib.suppress(OSError):
            assert self._popen.stdin is not None
            self._popen.stdin.close()
        if self.alive():
            self._popen.send_signal(signum)

    def reap(self) -> None:
        """Waits for the end, and makes it after a while."""
        try:
            self._popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def last_words(self, lines: int = 5) -> str:
        text = self.log.read_text(errors="replace").strip().splitlines()
        return "\n".join(text[-lines:])


class System(ABC):
    """A cluster of three nodes, or something that stands for one."""

    name: ClassVar[str]
    title: ClassVar[str]
    speaks_kafka: ClassVar[bool] = True
    forwards: ClassVar[bool] = False  # any node takes a write
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    separate_processes: ClassVar[bool] = False  # one process a node, so that one of them can be killed

    def __init__(self) -> None:
        self.addresses: list[Address] = []
        self.nodes: dict[int, Process] = {}  # by broker id, for those that are separate processes
        self.settings: dict[str, str] = {}  # keys of server.properties besides those that it has always
        self._folder: Path | None = None

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """A sentence that names what this machine lacks to run the system; None if nothing."""

    def prepare(self) -> None:  # noqa: B027 - most systems need nothing
        """Downloads, builds, starts what does not count as the system itself (its ZooKeeper).
        Untimed.
        """

    @abstractmethod
    def start(self) -> None: ...

    def stop(self) -> None:
        for process in self.nodes.values():
            process.end(self.stop_signal)
        for process in self.nodes.values():
            process.reap()
        self.nodes.clear()

    def close(self) -> None:
        """Stops everything, and forgets the folder with all data."""
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def restart_node(self, node_id: int) -> None:
        raise NotImplementedError(f"{self.name} is one process, no node of it can be restarted")

    def more_properties(self) -> str:
        """The lines of server.properties that `settings` adds."""
        return "".join(f"{key}={value}\n" for key, value in self.settings.items())

    def pids(self) -> list[int]:
        return [process.pid for process in self.nodes.values()]

    def zookeeper(self) -> "str | None":
        """The connect string, chroot included, of the ZooKeeper that this system uses."""
        return None

    def zookeeper_pid(self) -> int | None:
        return None

    def check_alive(self) -> None:
        """Raises CannotRunError with the last words of a process that ended without
        being told to.
        """
        for node_id, process in self.nodes.items():
            if not process.alive():
                raise CannotRunError(f"{self.name}: process {node_id} ended by itself:\n{process.last_words()}")

    @property
    def folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"minicontroller-bench-{self.name}-"))
        return self._folder


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago; all are held until the last is found, so that
    they differ.
    """
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for held_socket in sockets:
            held_socket.bind((HOST, 0))
        return [int(held_socket.getsockname()[1]) for held_socket in sockets]


def parse_ready_line(line: str) -> list[Address]:
    """`ready: bootstrap.servers=127.0.0.1:1,127.0.0.1:2` as addresses, whatever follows behind a
    space.
    """
    servers = line.removeprefix(READY_PREFIX).split()[0].split(",")
    return [(host, int(port)) for host, _, port in (server.rpartition(":") for server in servers)]


def wait_for_port(address: Address, process: Process, seconds: float) -> None:
    """Returns when something accepts connections there; the process's end or the time ends the
    waiting.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(address, timeout=1).close()
        except OSError:
            if not process.alive() or time.monotonic() > deadline:
                raise CannotRunError(f"nothing listens on port {address[1]}:\n{process.last_words()}") from None
            time.sleep(0.01)
        else:
            return


def wait_for_ready_line(process: Process, seconds: float) -> list[Address]:
    """The addresses of the line `ready: bootstrap.servers=...` once the process has printed it."""
    deadline = time.monotonic() + seconds
    while True:
        for line in process.log.read_text(errors="replace").splitlines(keepends=True):
            if line.startswith(READY_PREFIX) and line.endswith("\n"):
                return parse_ready_line(line)
        if not process.alive() or time.monotonic() > deadline:
            raise CannotRunError(f"no line `{READY_PREFIX}...` came:\n{process.last_words()}")
        time.sleep(0.005)

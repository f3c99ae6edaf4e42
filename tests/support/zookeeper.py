"""Real ZooKeeper servers, each a process of its own; the jars are those that pyspark carries.

The servers do not force their log to the disk: the tests kill processes, not machines.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.ports import free_port

JARS = ("zookeeper-", "slf4j-api-", "log4j-", "metrics-core-", "snappy-java-", "netty-", "commons-io-")
TICK_MS = 100
"""ZooKeeper grants sessions of 2 ticks and more, and expires them at the end of a tick."""

LOG_CONFIGURATION = """\
<Configuration status="OFF"><Appenders><Console name="out"><PatternLayout pattern="%d %p %c{1}: %m%n"/></Console></Appenders>
<Loggers><Root level="WARN"><AppenderRef ref="out"/></Root></Loggers></Configuration>
"""


def class_path() -> str:
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None, "pyspark carries the ZooKeeper server of the tests"
    jars = Path(spec.origin).parent / "jars"
    return ":".join(str(jar) for jar in sorted(jars.glob("*.jar")) if jar.name.startswith(JARS))


class ZooKeeperServer:
    """One server process; it keeps its port and its data over `stop`, `kill` and `start`."""

    def __init__(
        self,
        directory: Path,
        *,
        heap: str = "128m",
        extra: Sequence[str] = (),
        server_id: int = 0,
        options: Sequence[str] = (),
    ) -> None:
        """`extra` are lines of zoo.cfg, `options` are those of the Java runtime."""
        self.directory = directory
        self.port = free_port()
        self.log = directory / "server.log"
        self._heap = heap
        self._options = tuple(options)
        self._process: subprocess.Popen[bytes] | None = None
        self._main = "quorum.QuorumPeerMain" if server_id else "ZooKeeperServerMain"
        (directory / "data").mkdir(parents=True, exist_ok=True)
        (directory / "log4j2.xml").write_text(LOG_CONFIGURATION)
        if server_id:
            (directory / "data" / "myid").write_text(str(server_id))
        lines = [
            f"dataDir={directory / 'data'}",
            "clientPortAddress=127.0.0.1",
            f"clientPort={self.port}",
            f"tickTime={TICK_MS}",
            "maxSessionTimeout=60000",
            "maxClientCnxns=0",
            *extra,
        ]
        (directory / "zoo.cfg").write_text("\n".join(lines) + "\n")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def connect(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self, *, wait: bool = True) -> None:
        assert self._process is None, "already started"
        command = [
            *("java", f"-Xmx{self._heap}", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-XX:-UsePerfData", f"-Dlog4j2.configurationFile={self.directory / 'log4j2.xml'}"),
            *("-Dzookeeper.admin.enableServer=false", "-Dzookeeper.forceSync=no", "-Dzookeeper.jmx.log4j.disable=true"),
            *self._options,
            *("-cp", class_path(), f"org.apache.zookeeper.server.{self._main}", str(self.directory / "zoo.cfg")),
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if wait:
            self.wait_until_serving()

    def wait_until_serving(self, timeout: float = 30) -> None:
        deadline = time.monotonic() + timeout
        while "Mode:" not in self.status():
            assert self._process is not None and self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, f"no ZooKeeper after {timeout} s: {self.log.read_text()}"
            time.sleep(0.02)

    def wipe(self) -> None:
        """Lose all data; the server must not run."""
        shutil.rmtree(self.directory / "data" / "version-2")

    def status(self) -> str:
        """Return the server's description of itself; empty while it does not answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.sendall(b"srvr")
                parts = []
                while part := connection.recv(4096):
                    parts.append(part)
                return b"".join(parts).decode()
        except OSError:
            return ""

    def stop(self) -> None:
        """SIGTERM, and wait for the end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, and wait for the end; also of a frozen server."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.kill()
        self.start()

    def freeze(self) -> None:
        """SIGSTOP: connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        os.waitpid(self._process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None


class ZooKeeperEnsemble:
    """Three servers that elect a leader among themselves."""

    def __init__(self, directory: Path, *, size: int = 3, heap: str = "128m") -> None:
        members = [f"server.{i}=127.0.0.1:{free_port()}:{free_port()}" for i in range(1, size + 1)]
        # The first leader is awaited for 10 s, a follower that lags is dropped after 2 s.
        extra = ["initLimit=100", "syncLimit=20", "electionPortBindRetry=0", *members]
        self.servers = [
            ZooKeeperServer(directory / str(i), heap=heap, extra=extra, server_id=i) for i in range(1, size + 1)
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self.servers:
            server.kill()

    @property
    def connect(self) -> str:
        return ",".join(server.connect for server in self.servers)

    def start(self) -> None:
        for server in self.servers:
            server.start(wait=False)
        for server in self.servers:
            server.wait_until_serving()

    def leader(self) -> ZooKeeperServer:
        return next(server for server in self.servers if "Mode: leader" in server.status())

    def follower(self) -> ZooKeeperServer:
        return next(server for server in self.servers if "Mode: follower" in server.status())

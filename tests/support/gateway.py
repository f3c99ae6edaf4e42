"""A gateway as people run it: a process in front of a cluster."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.forked import COMMAND, begin
from tests.support.waiting import until
from tests.support.wire import Wire

READY = "ready: bootstrap.servers="
STOP_SECONDS = 90.0
ANYWHERE = "127.0.0.1:0"


class GatewayProcess:
    """One `minicontroller gateway` on free ports."""

    def __init__(
        self,
        upstream: str,
        *,
        listen: str = ANYWHERE,
        settings: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        is_alone: bool = False,
    ) -> None:
        """`is_alone`: it shares no memory with another process, so that its own can be measured."""
        arguments = ["gateway", "--upstream", upstream, "--listen", listen, *options]
        for key, value in (settings or {}).items():
            arguments += ["--set", f"{key}={value}"]
        command = (sys.executable, COMMAND) if is_alone else (COMMAND,)
        self._process = begin(arguments, command=command, stdout=subprocess.PIPE)
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return "".join(self._lines)

    @property
    def bootstrap(self) -> str:
        """Where clients begin, once the gateway serves."""
        line = until(self._ready_line)
        return line.removeprefix(READY).split()[0]

    @property
    def http(self) -> str:
        """Where the page is, once the gateway serves."""
        line = until(self._ready_line)
        return line.split("http=")[1].strip()

    @property
    def addresses(self) -> dict[int, str]:
        """The gateway's address for each broker, by id, as clients are told it."""
        with Wire(self.bootstrap) as wire:
            brokers = wire.ask("Metadata", 1, {"topics": []})["brokers"]
        return {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in brokers}

    def wait(self) -> int:
        """Return the exit code of a gateway that ends by itself."""
        return self._process.wait(STOP_SECONDS)

    def stop(self) -> None:
        """Ctrl-C, and what must be true afterwards."""
        self._process.terminate()
        try:
            code = self._process.wait(STOP_SECONDS)
        finally:
            self.kill()
        assert code == 0, f"SIGTERM ended it with code {code}; it said:\n{self.output}"
        assert "Traceback" not in self.output, self.output

    def kill(self) -> None:
        """SIGKILL, and its end."""
        self._process.kill()
        self._process.wait()
        self._reader.join(STOP_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ready_line(self) -> str:
        assert self._process.poll() is None, f"the gateway ended; it said:\n{self.output}"
        return next((line for line in self._lines if line.startswith(READY)), "")

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._lines.extend(iter(self._process.stdout.readline, ""))


def most_resident_bytes(pid: int) -> int:
    """Return how much memory a process has had at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@contextmanager
def running_gateway(
    upstream: str, *, listen: str = ANYWHERE, settings: Mapping[str, str] | None = None
) -> Iterator[GatewayProcess]:
    """A gateway for the length of the block, which ends in good order."""
    gateway = GatewayProcess(upstream, listen=listen, settings=settings)
    try:
        assert gateway.bootstrap
        yield gateway
    except BaseException:
        gateway.kill()
        raise
    gateway.stop()

"""The installed command as its users run it: `minicontroller up` in a process of its own, and what
its tests need to know of it.

Stopping it is a test too: Ctrl-C must end it with code 0 and without a traceback.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.forked import COMMAND, begin
from tests.support.kafka import KafkaCluster, running_kafka
from tests.support.waiting import until
from tests.support.wire import Login, Wire

READY = "ready: bootstrap.servers="
READY_TIMEOUT_SECONDS = 120.0
STOP_TIMEOUT_SECONDS = 90.0

SAME_AS_KAFKA = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "4"}
"""The settings of `KafkaCluster`, so that one expectation fits both."""

ON_KAFKA = os.environ.get("MINICONTROLLER_TESTS_ON") == "kafka"
"""Whether the tests of clients run on a real Kafka 3.9.1 instead: so that what they expect is
proved first.
"""


def unlike_kafka(reason: str) -> pytest.MarkDecorator:
    """For what is ours alone: left out on a real Kafka, and nowhere else."""
    return pytest.mark.skipif(ON_KAFKA, reason=reason)


class Cluster(Protocol):
    """The cluster under test, as tests of clients know it."""

    @property
    def bootstrap(self) -> str: ...

    @property
    def addresses(self) -> Mapping[int, str]: ...


class MiniCluster:
    """One `minicontroller up`."""

    def __init__(
        self,
        *,
        brokers: int = 3,
        store: str = "memory",
        settings: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        traces: bool = False,
        command: Path = COMMAND,
        folder: Path | None = None,
        login: Login | None = None,
    ) -> None:
        """`traces`: what it says may hold some, of a broken policy for instance. `folder`: where
        `command` is called.
        """
        self._command, self._folder, self.login = command, folder, login
        self.store = store
        self._arguments = ["up", "--brokers", str(brokers), "--port", "0", "--store", store, *options]
        for key, value in (SAME_AS_KAFKA | dict(settings or {})).items():
            self._arguments += ["--set", f"{key}={value}"]
        self._traces = traces
        self._lines: list[str] = []
        self._ready = threading.Event()
        self.bootstrap = ""
        self.http = ""
        """Where the page is."""

    def start(self) -> None:
        self._process = begin(self._arguments, command=(self._command,), cwd=self._folder, stdout=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ready.wait(READY_TIMEOUT_SECONDS)
        if not self.bootstrap:
            self._process.kill()
            self._process.wait()
            self._reader.join(STOP_TIMEOUT_SECONDS)
            assert self._process.stdout is not None
            self._process.stdout.close()
            raise AssertionError(f"`minicontroller {' '.join(self._arguments)}` is not ready; it said:\n{self.output}")

    @cached_property
    def addresses(self) -> dict[int, str]:
        """By node id, as the nodes themselves tell it."""
        with Wire(self.bootstrap.split(",")[0], login=self.login) as wire:
            brokers = wire.ask("Metadata", 1, {"topics": []})["brokers"]
        return {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in brokers}

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def wait_for(self, text: str) -> None:
        """Until it has said so."""
        until(lambda: text in self.output)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Ctrl-C, and what must be true afterwards."""
        self._process.send_signal(number)
        try:
            code = self._process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"Ctrl-C did not end it; it said:\n{self.output}") from None
        finally:
            self._reader.join(STOP_TIMEOUT_SECONDS)
            assert self._process.stdout is not None
            self._process.stdout.close()
        assert code == 0, f"Ctrl-C ended it with code {code}; it said:\n{self.output}"
        assert self._traces or "Traceback" not in self.output, f"It ended, but it said:\n{self.output}"

    def kill(self) -> None:
        """SIGKILL, and its end."""
        self._process.kill()
        self._process.wait()
        self._reader.join(STOP_TIMEOUT_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line)
            if line.startswith(READY):
                self.bootstrap, _, http = line.removeprefix(READY).strip().partition(" http=")
                self.http = f"http://{http}" if http else ""
                self._ready.set()
        self._ready.set()  # it ended: whoever waits for it learns so


@contextmanager
def running_cluster(
    *,
    brokers: int = 3,
    store: str = "memory",
    settings: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    traces: bool = False,
    command: Path = COMMAND,
    folder: Path | None = None,
    login: Login | None = None,
) -> Iterator[MiniCluster]:
    """A fresh cluster for the length of the block; `options` are those of `up`, the rest as
    `MiniCluster` has it.
    """
    cluster = MiniCluster(
        brokers=brokers,
        store=store,
        settings=settings,
        options=options,
        traces=traces,
        command=command,
        folder=folder,
        login=login,
    )
    cluster.start()
    try:
        yield cluster
    except BaseException:
        cluster.stop()
        raise
    cluster.stop()


@contextmanager
def running_any(
    store: str, settings: Mapping[str, str] | None = None, login: Login | None = None
) -> Iterator[MiniCluster | KafkaCluster]:
    """The program under test on that store, or the real Kafka if that is what is asked for."""
    if ON_KAFKA:
        with running_kafka(settings=settings, login=login) as kafka:
            yield kafka
    else:
        with running_cluster(store=store, settings=settings, login=login) as cluster:
            yield cluster


def controller_id(cluster: Cluster, login: Login | None = None) -> int:
    """Who the controller is, by the word of the first node."""
    with Wire(next(iter(cluster.addresses.values())), login=login) as wire:
        number: int = wire.ask("Metadata", 1, {"topics": []})["controller_id"]
    return number


def other_ids(cluster: Cluster, login: Login | None = None) -> list[int]:
    """Every node but the controller."""
    controller = controller_id(cluster, login)
    return [number for number in cluster.addresses if number != controller]


def until_everywhere(cluster: Cluster, topic: str, *, partitions: int | None = None) -> None:
    """Waits until every node shows the topic with a leader for each partition; with 0 partitions,
    until no node shows it.
    """
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            until(partial(shown, wire, topic), right=partial(is_as_wanted, partitions))


def shown(wire: Wire, topic: str) -> list[int]:
    """The leaders of its partitions, as one node tells them."""
    body = {"topics": [{"name": topic}], "allow_auto_topic_creation": False}
    (found,) = wire.ask("Metadata", 9, body)["topics"]
    return [partition["leader_id"] for partition in found["partitions"]]


def is_as_wanted(partitions: int | None, leaders: list[int]) -> bool:
    if partitions is None:
        return bool(leaders) and -1 not in leaders
    return len(leaders) == partitions and -1 not in leaders

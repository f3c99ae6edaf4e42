"""The works that need a system of their own: its start, its memory, and the death of its
controller.
"""

import itertools
import signal
import threading
import time
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Final, Self

from . import memory, messages
from .cluster import ask_nodes
from .driver import Connection, DriverError
from .kazoo_client import connected
from .peers.base import Address, CannotRunError
from .works import PARTITIONS, REPLICAS, Bench, Figures

START_SECONDS: Final = 90.0
RETRY_SECONDS: Final = 0.01
SETTLE_SECONDS: Final = 5.0  # a JVM has then done what it does after a start
STEADY_SECONDS: Final = 1.0  # creates before the controller is asked to stop, and after the next one has come
FAILOVER_SECONDS: Final = 60.0
STOP_SECONDS: Final = 30.0
SURVIVORS: Final = 2
TOPICS: Final = 1000


def start_to_first_topic(bench: Bench) -> Figures:
    """From the launch of the processes to the answer about a topic with three replicas; ZooKeeper
    runs already.
    """
    system = bench.system
    begin = perf_counter()
    system.start()
    while True:
        system.check_alive()
        try:
            _create(system.addresses, bench.names(1)[0], replicas=REPLICAS)
        except (OSError, DriverError, messages.RequestError):
            if perf_counter() - begin > START_SECONDS:
                raise CannotRunError(f"{system.name}: no topic could be created for {START_SECONDS:.0f} s") from None
            time.sleep(RETRY_SECONDS)
        else:
            return {"start": perf_counter() - begin}


def memory_of_topics(bench: Bench) -> Figures:
    """Before and after a thousand topics of 3 partitions x 3 replicas; leaves them there."""
    system, cluster = bench.system, bench.cluster
    time.sleep(SETTLE_SECONDS)
    before = memory.of(system.pids())
    cluster.create(bench.names(TOPICS), partitions=PARTITIONS, replication_factor=REPLICAS)
    bench.holds_topics = True
    time.sleep(SETTLE_SECONDS)
    after = memory.of(system.pids())
    figures = {
        "rss-start": before.resident,
        "pss-start": before.proportional,
        "rss-topics": after.resident,
        "pss-topics": after.proportional,
    }
    if (zookeeper := system.zookeeper_pid()) is not None:
        figures["rss-zookeeper"] = memory.of([zookeeper]).resident
    return figures


def failover(bench: Bench, signum: signal.Signals) -> Figures:
    """Creates topics through surviving nodes without pause while the controller's process gets the
    signal.
    """
    system, cluster = bench.system, bench.cluster
    victim, process = cluster.controller, system.nodes[cluster.controller]
    survivors = [address for node_id, address in cluster.nodes.items() if node_id != victim]
    # Who does not forward must be asked where the controller is, and before the end that is the
    # victim.
    addresses = survivors if system.forwards else [*survivors, cluster.nodes[victim]]

    def attempt() -> None:
        _create(addresses, bench.names(1)[0], replicas=SURVIVORS, forwards=system.forwards)

    with connected(system.zookeeper()) as client, _Stream(attempt) as stream:
        departure = _Departure(client)
        stream.wait_success_after(perf_counter() + STEADY_SECONDS)
        signalled = perf_counter()
        process.send(signum)
        left = departure.wait()
        stream.wait_success_after(left)
        stream.wait_success_after(perf_counter() + STEADY_SECONDS)
    pause_begin, pause_end = stream.longest_pause(signalled)
    bench.forget_cluster()
    process.wait(STOP_SECONDS)
    system.restart_node(victim)
    return {
        "next": pause_end - signalled,
        "beyond": pause_end - left,
        "pause": pause_end - pause_begin,
    }


class _Stream:
    """Topics created one after the other in a thread, with the time of every success; what fails is
    tried again.
    """

    def __init__(self, attempt: Callable[[], None]) -> None:
        self._attempt = attempt
        self._successes: list[float] = []
        self._last_failure = "none"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_success_after(self, moment: float) -> None:
        while not self._successes or self._successes[-1] <= moment:
            if perf_counter() - moment > FAILOVER_SECONDS:
                raise DriverError(f"no topic was created for {FAILOVER_SECONDS:.0f} s; last: {self._last_failure}")
            time.sleep(RETRY_SECONDS)

    def longest_pause(self, moment: float) -> tuple[float, float]:
        """The two successes that are furthest apart, of those of which the second came after the
        moment.
        """
        pairs = [pair for pair in itertools.pairwise(self._successes) if pair[1] > moment]
        return max(pairs, key=lambda pair: pair[1] - pair[0])

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._attempt()
            except (OSError, DriverError, messages.RequestError) as failure:
                self._last_failure = f"{type(failure).__name__}: {failure}"
                time.sleep(RETRY_SECONDS)
            else:
                self._successes.append(perf_counter())


class _Departure:
    """The moment in which the controller's znode went: it resigned, or its session expired."""

    def __init__(self, client: Any) -> None:
        self._gone = threading.Event()
        self._moment = 0.0
        client.get("/controller", watch=self._changed)

    def wait(self) -> float:
        if not self._gone.wait(FAILOVER_SECONDS):
            raise DriverError(f"the controller's znode was still there after {FAILOVER_SECONDS:.0f} s")
        return self._moment

    def _changed(self, _event: object) -> None:
        self._moment = perf_counter()
        self._gone.set()


def _create(addresses: Sequence[Address], name: str, *, replicas: int, forwards: bool = False) -> None:
    """Creates one topic by way of the first of these nodes that answers; raises what went wrong."""
    target = addresses[0] if forwards else _controller(addresses)
    with Connection(target, timeout=FAILOVER_SECONDS) as connection:
        messages.check_created(connection.call(messages.create_topics([name], replication_factor=replicas)))


def _controller(addresses: Sequence[Address]) -> Address:
    for view in map(ask_nodes, addresses):
        if view is not None and view[1] in view[0]:
            return view[0][view[1]]
    raise DriverError("no node knows a controller")

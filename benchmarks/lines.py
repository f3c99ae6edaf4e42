"""The table: which works there are, on whom, which figures each gives, and what minicontroller
wants to reach.
"""

import functools
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from . import lifetimes, store_floor, works
from .peers import System
from .peers.floor import BareZooKeeper, Floor
from .works import Bench, Figures

MEMORY: Final = "minicontroller-memory"
ZOOKEEPER: Final = "minicontroller-zookeeper"
PROCESSES: Final = "minicontroller-processes"
KAFKA, KRAFT, KFAKE = "kafka", "kraft", "kfake"

Unit = Literal["/s", "s", "ms", "MiB", ""]


@dataclass(frozen=True)
class Figure:
    """One row of the table. `less` says that less is better."""

    title: str
    unit: Unit
    less: bool = False


@dataclass(frozen=True)
class Goal:
    """The subject's figure is to be that many times better than the peer's; without a peer, at most
    that much.
    """

    figure: str
    subject: str
    target: float
    peer: str | None = None
    peer_figure: str | None = None  # where the peer is held to another of its figures


def _speaks_kafka(system: type[System]) -> bool:
    return system.speaks_kafka


def _bare_socket(system: type[System]) -> bool:
    return system.speaks_kafka or system is Floor


def _bare_store(system: type[System]) -> bool:
    return system is BareZooKeeper


def _forwards(system: type[System]) -> bool:
    return system.forwards


def _killable(system: type[System]) -> bool:
    return system.separate_processes


def _nothing(_bench: Bench) -> None:
    pass


@dataclass(frozen=True)
class Line:
    """One work. The lines of a stage share the systems, started anew for the stage; None: a new
    system each round.
    """

    run: Callable[[Bench], Figures]
    figures: Mapping[str, Figure]
    stage: str | None
    goals: tuple[Goal, ...] = ()
    suits: Callable[[type[System]], bool] = _speaks_kafka
    prepare: Callable[[Bench], None] = _nothing
    rounds: int | None = None  # where fewer do, because each is long
    warm: bool = False  # the first round does not count: a JVM compiles what it runs often


def _rate(title: str) -> dict[str, Figure]:
    return {"rate": Figure(title, "/s"), "p50": Figure(f"{title}: median latency", "ms", less=True)}


def _hold(bench: Bench, *, topics: int, partitions: int, replicas: int) -> None:
    """Once for each system: these topics are all that it has."""
    if bench.system.speaks_kafka and not bench.holds_topics:
        bench.cluster.create(bench.names(topics), partitions=partitions, replication_factor=replicas)
        bench.holds_topics = True


def _all_topics(
    title: str, stage: str, goals: tuple[Goal, ...], *, topics: int, partitions: int, replicas: int
) -> Line:
    return Line(
        run=functools.partial(works.metadata_of_all, topics=topics, partitions=partitions, replicas=replicas),
        prepare=functools.partial(_hold, topics=topics, partitions=partitions, replicas=replicas),
        figures=_rate(title),
        stage=stage,
        goals=goals,
        suits=_bare_socket,
        warm=True,
    )


def _failover(
    title: str,
    signum: signal.Signals,
    goal: Goal,
    *,
    stage: str = "failover",
    prepare: Callable[[Bench], None] = _nothing,
) -> Line:
    return Line(
        run=functools.partial(lifetimes.failover, signum=signum),
        figures={
            "next": Figure(f"next create after {title}", "s", less=True),
            "beyond": Figure(f"next create after {title}: beyond the end of its session", "s", less=True),
            "pause": Figure(f"longest pause of creates around {title}", "s", less=True),
        },
        stage=stage,
        prepare=prepare,
        goals=(goal,),
        suits=_killable,
        rounds=3,
    )


def _failover_among_many(title: str, signum: signal.Signals, figure: str) -> Line:
    return _failover(
        f"{title} of 10,000 partitions with 2 replicas",
        signum,
        Goal(figure, PROCESSES, 1),
        stage="failover-huge",
        prepare=functools.partial(_hold, topics=1000, partitions=10, replicas=2),
    )


LINES: Final[dict[str, Line]] = {
    "create-one": Line(
        run=works.create_one_by_one,
        figures=_rate("topics created one by one"),
        stage="steady",
        warm=True,
        goals=(Goal("rate", ZOOKEEPER, 20, KAFKA), Goal("rate", MEMORY, 0.5, KFAKE)),
    ),
    "create-elsewhere": Line(
        run=works.create_elsewhere,
        figures=_rate("topics created one by one, through a node that is not the controller"),
        stage="steady",
        warm=True,
        suits=_forwards,
    ),
    "create-16": Line(
        run=works.create_side_by_side,
        figures=_rate("topics created over 16 connections"),
        stage="steady",
        warm=True,
        goals=(Goal("rate", ZOOKEEPER, 50, KAFKA),),
    ),
    "batches": Line(
        run=works.batches_of_topics,
        figures={
            "created": Figure("topics created in batches of 100 x 3 x 3, until answered", "/s"),
            "led": Figure("topics created in batches of 100 x 3 x 3, until led on every node", "/s"),
            "led-wait": Figure("after the last answer: until led on every node", "s", less=True),
            "deleted": Figure("topics deleted in batches of 100, until answered", "/s"),
            "gone": Figure("topics deleted in batches of 100, until gone and creatable again", "/s"),
        },
        stage="steady",
        warm=True,
        goals=(
            Goal("led", ZOOKEEPER, 100, KAFKA, peer_figure="created"),
            Goal("led", ZOOKEEPER, 1, KRAFT, peer_figure="created"),
            Goal("deleted", ZOOKEEPER, 50, KAFKA),
            Goal("gone", ZOOKEEPER, 50, KAFKA),
        ),
    ),
    "config-one": Line(
        run=works.alter_configs_one_by_one,
        figures=_rate("config changes one by one"),
        stage="steady",
        warm=True,
        goals=(Goal("rate", ZOOKEEPER, 12, KAFKA),),
    ),
    "metadata-one": Line(
        run=works.metadata_one_by_one,
        figures=_rate("Metadata of 1 topic, one by one"),
        stage="steady",
        warm=True,
        goals=(Goal("rate", ZOOKEEPER, 1, KAFKA),),
        suits=_bare_socket,
    ),
    "metadata-16": Line(
        run=works.metadata_side_by_side,
        figures=_rate("Metadata of 1 topic over 16 connections"),
        stage="steady",
        warm=True,
        goals=(Goal("rate", ZOOKEEPER, 1, KAFKA),),
        suits=_bare_socket,
    ),
    "describe-configs": Line(
        run=works.describe_configs,
        figures=_rate("DescribeConfigs of 1 topic, one by one"),
        stage="steady",
        warm=True,
        goals=(Goal("rate", ZOOKEEPER, 1, KAFKA),),
        suits=_bare_socket,
    ),
    "store-floor": Line(
        run=store_floor.commits,
        figures={
            "one": Figure("a bare ZooKeeper: commits of a topic of 1 partition, one by one", "/s"),
            "flying": Figure("a bare ZooKeeper: commits of a topic of 1 partition, 16 in flight", "/s"),
            "batches": Figure("a bare ZooKeeper: topics of 3 partitions, in commits of 100", "/s"),
        },
        stage="steady",
        suits=_bare_store,
        warm=True,
    ),
    "memory": Line(
        run=lifetimes.memory_of_topics,
        figures={
            "rss-start": Figure("resident at start", "MiB", less=True),
            "rss-topics": Figure("resident with 1,000 topics x 3 x 3", "MiB", less=True),
            "pss-start": Figure("proportional at start", "MiB", less=True),
            "pss-topics": Figure("proportional with 1,000 topics x 3 x 3", "MiB", less=True),
            "rss-zookeeper": Figure("its ZooKeeper, not counted above: resident with 1,000 topics", "MiB", less=True),
        },
        stage="large",
        goals=(Goal("rss-start", ZOOKEEPER, 20, KAFKA), Goal("rss-topics", ZOOKEEPER, 20, KAFKA)),
        rounds=1,
    ),
    "metadata-1000": _all_topics(
        "Metadata of 1,000 topics x 3 x 3", "large", (), topics=1000, partitions=3, replicas=3
    ),
    "metadata-10000": _all_topics(
        "Metadata of 10,000 partitions (1,000 topics x 10)",
        "huge",
        (Goal("rate", ZOOKEEPER, 5, KAFKA),),
        topics=1000,
        partitions=10,
        replicas=1,
    ),
    "start": Line(
        run=lifetimes.start_to_first_topic,
        figures={"start": Figure("start to the first topic with 3 replicas", "s", less=True)},
        stage=None,
        goals=(Goal("start", ZOOKEEPER, 15, KAFKA),),
        rounds=3,
    ),
    "kill": _failover("SIGKILL of the controller (session 6 s)", signal.SIGKILL, Goal("beyond", PROCESSES, 0.5)),
    "term": _failover("SIGTERM of the controller", signal.SIGTERM, Goal("pause", PROCESSES, 0.2)),
    "kill-10000": _failover_among_many("SIGKILL of the controller", signal.SIGKILL, "beyond"),
    "term-10000": _failover_among_many("SIGTERM of the controller", signal.SIGTERM, "pause"),
}

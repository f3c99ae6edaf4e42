"""One soak: windows of work, crowd and trouble on one cluster, with a look at what every node holds
between them.

It is the experiment of `tests/faults/detector`, which checks every answer, with more going on in
its windows: a crowd of connections, and administrators with real clients.
"""

import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import msgspec
import trio

from tests.faults.detector.__main__ import line as line_of_window
from tests.faults.detector.__main__ import paragraph
from tests.faults.detector.arena import NODES, Arena, running_arena
from tests.faults.detector.experiment import Experiment, Plan
from tests.soak.crowd import Crowd
from tests.soak.figures import Held, Sample, quiet
from tests.soak.hands import HANDS
from tests.soak.people import Person
from tests.soak.verdict import Line, of_node, over_time, table
from tests.support.zookeeper import ZooKeeperEnsemble

NODE = (sys.executable, "-m", "tests.soak.node")
SPARED = NODES + 1
"""The node that is never killed."""
SCHEDULE = (
    (),
    ("kill",),
    ("kill_controller",),
    ("kill_server",),
    ("kill", "kill_controller"),
    ("kill_controller", "kill_server"),
)
"""The troubles of the windows, in turn. There is one ZooKeeper server: while that is dead, nothing
can be written.
"""
WINDOW_SECONDS = 10.0
SETTINGS = {"http.listen": "127.0.0.1:0", "connection.failed.authentication.delay.ms": "100"}

Say = Callable[[str], None]


class Soak(msgspec.Struct, frozen=True):
    """How long, how many, and which seed."""

    seconds: float
    seed: str
    connections: int = 500
    window_seconds: float = WINDOW_SECONDS
    kept: Path = Path("build/soak")
    """The folder of histories that show an anomaly."""


class Tally(msgspec.Struct):
    """All windows together."""

    operations: int = 0
    doubts: int = 0
    findings: list[str] = []


class Outcome(msgspec.Struct):
    """What came of it."""

    lines: list[Line]
    samples: list[Sample]

    @property
    def holds(self) -> bool:
        return all(line.holds is not False for line in self.lines)


def soaked(folder: Path, soak: Soak, say: Say) -> Outcome:
    """Run one soak in this folder, and say what happens."""
    with (
        ZooKeeperEnsemble(folder / "zookeeper", size=1) as ensemble,
        running_arena(
            folder, ensemble, "/soak", completion="local", command=NODE, spared=1, settings=SETTINGS
        ) as arena,
    ):
        outcome = trio.run(partial(_drive, arena, soak, say))
    for row in ("", *over_time(outcome.samples), "", *table(outcome.lines)):
        say(row)
    return outcome


async def _drive(arena: Arena, soak: Soak, say: Say) -> Outcome:
    crowd, people = Crowd(soak.connections, arena.logins), [Person(client) for client in HANDS]
    plan = Plan(
        seed=soak.seed,
        seconds=soak.seconds,
        window_seconds=soak.window_seconds,
        schedule=SCHEDULE,
        floods=(),
        beside=(crowd, *people),
        kept=soak.kept,
    )
    began, samples, tally = time.monotonic(), list[Sample](), Tally()
    samples += await trio.to_thread.run_sync(_look, arena, 0.0)
    async with aclosing(Experiment(arena, plan).run()) as running:
        async for told in running:
            say(line_of_window(told))
            tally.operations, tally.doubts = tally.operations + told.operations, tally.doubts + told.doubts
            found = [paragraph(anomaly, told.kept) for anomaly in told.verdict.anomalies]
            if not any(node.has_ended for node in arena.nodes):
                for person in people:
                    found += await trio.to_thread.run_sync(person.compare, arena.tree, arena.nodes.running)
                now = await trio.to_thread.run_sync(_look, arena, time.monotonic() - began)
                say(_line(now, crowd))
                samples += now
            tally.findings += found
            for each in found:
                say(f"WRONG: {each}")
    return Outcome(_judged(soak, tally, crowd, people, samples), samples)


def _look(arena: Arena, seconds: float) -> list[Sample]:
    return [Sample(seconds, node.broker_id, node.pid, quiet(node)) for node in arena.nodes]


def _line(now: list[Sample], crowd: Crowd) -> str:
    def shown(held: Held) -> str:
        return (
            f"{held.memory:.1f} of {held.resident:.1f} MiB {held.descriptors} fd {held.threads} th {held.tasks} tasks"
        )

    nodes = "; ".join(f"node {each.node}: {shown(each.held)}" for each in now)
    return (
        f"  {now[0].seconds:4.0f} s  {nodes}; crowd: {crowd.answered} answered, {crowd.misbehaved.total()} misbehaved"
    )


def _judged(soak: Soak, tally: Tally, crowd: Crowd, people: list[Person], samples: list[Sample]) -> list[Line]:
    least = int(soak.seconds / 60)  # of everything, or else this was no work
    acknowledged = sum(person.ledger.acknowledged for person in people)
    wronged = [kind for kind, count in crowd.misbehaved.items() if count]
    lines = [
        Line(
            "what was answered is what happened",
            f"{tally.operations} operations ({tally.doubts} in doubt) with an order that explains them and what ZooKeeper and "
            f"every node hold; {len(tally.findings) or 'no'} findings",
            not tally.findings and tally.operations >= least,
        ),
        Line(
            "nothing acknowledged to real clients was lost",
            f"{acknowledged} changes acknowledged ("
            + ", ".join(f"{person.client} {person.ledger.acknowledged}" for person in people)
            + f"), {sum(person.ledger.in_doubt for person in people)} refused or in doubt, "
            f"{sum(person.reads for person in people)} readings",
            acknowledged >= least and not any(person.ledger.findings for person in people),
        ),
        Line(
            "those that behave are served beside those that do not",
            f"{crowd.answered} answers, the longest wait {crowd.longest_seconds:.1f} s, {crowd.lost} connections lost "
            "(to deaths, too)",
            crowd.answered >= least,
        ),
        Line(
            "misbehaving connections",
            ", ".join(f"{crowd.misbehaved[kind]} {kind}" for kind in sorted(wronged)),
            holds=None,
        ),
    ]
    for node in range(1, SPARED + 1):
        lines += of_node(samples, node, spared=node == SPARED)
    return lines

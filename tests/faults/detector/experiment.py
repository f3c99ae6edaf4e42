"""An experiment: windows of work and trouble, each checked when the dust has settled, and then
forgotten.
"""

import random
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import TimeoutExpired

import msgspec
import trio

from tests.faults.detector import floods
from tests.faults.detector.arena import Arena
from tests.faults.detector.checks import Verdict, judge
from tests.faults.detector.clients import HABITS, Client, Habits, Journal
from tests.faults.detector.floods import Flood
from tests.faults.detector.history import READS, UNKNOWN, Operation, Topic, Window, save, waited
from tests.faults.detector.settling import disagreements, look, settle, stumbles
from tests.faults.detector.troubles import BREAKING, TROUBLES, Stage, play, strange_configs
from tests.faults.tree import patiently

ASYNCHRONOUS = {trouble.__name__ for trouble in (*BREAKING, strange_configs)}
"""Troubles with which a node may rightly be behind what was acknowledged."""


class Plan(msgspec.Struct):
    """The time for which a cluster is driven, with its troubles and floods."""

    seed: str
    seconds: float
    window_seconds: float = 5.0
    troubles: Sequence[str] = ()
    schedule: Sequence[Sequence[str]] = ()
    """The troubles of one window after the other, over and over, if they are not to be drawn."""
    floods: Sequence[str] = tuple(floods.FLOODS)
    beside: Sequence[Flood] = ()
    """The floods that go on in every window, besides those that are drawn."""
    habits: Sequence[Habits] = HABITS
    """The habits of each client."""
    calm: float = 0.3
    """The share of windows without any trouble that breaks something."""
    most_troubles: int = 3
    keeps_all: bool = False
    """Histories without an anomaly, too."""
    kept: Path = Path("build/faults")
    """The folder of histories that show an anomaly."""


class Told(msgspec.Struct):
    """The figures of one window, for whoever watches."""

    window: Window
    verdict: Verdict
    operations: int
    doubts: int
    slowest: Operation | None
    """The slowest operation that was answered."""
    checking_seconds: float
    kept: Path | None = None


class Experiment:
    """Drives one arena."""

    def __init__(self, arena: Arena, plan: Plan) -> None:
        self._arena = arena
        self._plan = plan
        self._journal = Journal()
        self._known = patiently(self._look)
        self._is_broken = False
        """Whether the experiment cannot go on."""
        self._logs_read: dict[int, int] = {}

    async def run(self) -> AsyncGenerator[Told, None]:
        """Window by window, until the time is over, or it cannot go on."""
        end = time.monotonic() + self._plan.seconds
        number = 0
        while ((left := end - time.monotonic()) > 0.5 or number == 0) and not self._is_broken:
            number += 1
            yield await self._window(number, max(1.0, min(left, self._plan.window_seconds)))

    async def _window(self, number: int, seconds: float) -> Told:
        plan, dice = self._plan, random.Random(f"{self._plan.seed}/{number}")
        schedule = plan.schedule
        chosen = list(schedule[(number - 1) % len(schedule)]) if schedule else self._chosen(dice)
        poured = dice.sample(plan.floods, min(len(plan.floods), dice.choice((0, 0, 1, 2))))
        self._journal.begin_window()
        window = Window(seed=plan.seed, number=number, troubles=[*chosen, *poured], before=self._known)
        stage = Stage(self._arena, self._journal, random.Random(dice.random()))
        ruled = await trio.to_thread.run_sync(patiently, self._ruling)
        window.began = time.monotonic()
        clients = [
            Client(f"client-{at}", self._journal, partial(self._addresses, stage), random.Random(dice.random()), habits)
            for at, habits in enumerate(plan.habits, 1)
        ]
        failures = await self._drive(stage, clients, chosen, poured, seconds)
        window.operations = self._journal.operations
        unsettled = failures + await trio.to_thread.run_sync(settle, self._arena)
        self._is_broken = bool(unsettled)
        window.findings = unsettled + stumbles(self._arena, self._logs_read)
        window.ended = time.monotonic()
        window.after = await trio.to_thread.run_sync(patiently, self._look)
        self._complete(
            window, ruled if ruled == await trio.to_thread.run_sync(patiently, self._ruling) else None, chosen
        )
        if not unsettled:
            window.findings += await trio.to_thread.run_sync(disagreements, self._arena, window.after)
        self._known = window.after
        return self._told(window)

    def _told(self, window: Window) -> Told:
        began = time.monotonic()
        verdict = judge(window)
        answered = [each for each in window.operations if each.node and each.ended is not None]
        told = Told(
            window,
            verdict,
            operations=len(window.operations),
            doubts=sum(each.outcome == UNKNOWN for each in window.operations),
            slowest=max(answered, key=waited, default=None),
            checking_seconds=time.monotonic() - began,
        )
        if verdict.anomalies or self._plan.keeps_all:
            self._plan.kept.mkdir(parents=True, exist_ok=True)
            told.kept = self._plan.kept / f"history-{self._plan.seed}-{window.number}.ndjson"
            save(window, told.kept)
        return told

    def _chosen(self, dice: random.Random) -> list[str]:
        breaking = {trouble.__name__ for trouble in BREAKING}
        names = list(self._plan.troubles)
        if dice.random() < self._plan.calm:
            names = [name for name in names if name not in breaking]
        return dice.sample(names, min(len(names), dice.randint(1, self._plan.most_troubles)))

    # ------------------ driving

    async def _drive(
        self, stage: Stage, clients: Sequence[Client], troubles: Sequence[str], poured: Sequence[str], seconds: float
    ) -> list[str]:
        """Returns what went wrong with the troubles."""
        over, failures, addresses = trio.Event(), list[str](), partial(self._addresses, stage)
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(client.run, over)
            for name in poured:
                nursery.start_soon(floods.FLOODS[name], addresses, random.Random(stage.dice.random()), over)
            for each in self._plan.beside:
                nursery.start_soon(each, addresses, random.Random(stage.dice.random()), over)
            async with trio.open_nursery() as breaking:
                for name in troubles:
                    breaking.start_soon(self._play, stage, TROUBLES[name], failures)
                await trio.sleep(seconds)
                stage.over.set()
            over.set()
        return failures

    async def _play(self, stage: Stage, trouble: Callable[[Stage], None], failures: list[str]) -> None:
        try:
            await trio.to_thread.run_sync(play, stage, trouble)
        except (AssertionError, TimeoutExpired) as error:  # a node does not come back, or ends in disorder
            failures.append(f"{trouble.__name__}: {error}")
            stage.over.set()
        except Exception:
            stage.over.set()  # the other troubles would never end
            raise

    def _addresses(self, stage: Stage) -> list[tuple[int, str]]:
        up = [node for node in self._arena.nodes if node.broker_id not in stage.down]
        return [(node.broker_id, node.address) for node in up if node.address]

    # ------------------ what is known only afterwards

    def _look(self) -> dict[str, Topic]:
        return look(self._arena.tree, [node.broker_id for node in self._arena.nodes])

    def _ruling(self) -> tuple[int, int]:
        """Return the id of the controller, and its epoch."""
        return self._arena.tree.controller_id or 0, self._arena.tree.controller_epoch

    def _complete(self, window: Window, ruled: tuple[int, int] | None, troubles: Sequence[str]) -> None:
        """Which reads must show what was acknowledged before them. A stranger's changes nobody
        acknowledges.
        """
        if ruled is None or ASYNCHRONOUS.intersection(troubles):
            return
        everywhere = self._arena.completion == "cluster"
        for each in window.operations:
            if each.kind in READS:
                each.is_fresh = everywhere or (each.entity.startswith("topics/") and each.node == ruled[0])
                each.is_fresh_of_node = True

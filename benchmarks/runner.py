"""Runs lines: rounds interleaved between the systems, so that what else the machine does meets all
of them alike.

The systems of a stage are up side by side and are measured one at a time. What fails in one system
(it does not start, an answer carries an error) costs that system this line and is told in the
result, never counted.
"""

import contextlib
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

from .driver import DriverError
from .lines import LINES
from .messages import RequestError
from .peers import SYSTEMS, System
from .peers.base import CannotRunError
from .result import Report
from .works import Bench, Budget

FAILURES: Final = (CannotRunError, DriverError, RequestError, OSError)

T = TypeVar("T")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The lines, systems and rounds to run."""

    lines: Sequence[str]
    systems: Sequence[str]
    rounds: int
    budget: Budget
    quick: bool


def run(plan: Plan, tell: Tell) -> Report:
    """Measures everything that is planned and can be measured here; what is done is written after
    each line.
    """
    return _Runner(plan, tell).run()


def describe_machine() -> str:
    """Processor, number of cores, memory, Python: what a reader needs to place the figures."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    models = [line.partition(":")[2] for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")]
    model = models[0].strip() if models else platform.machine()
    return f"{os.cpu_count()} cores of {model}, {pages / 2**30:.0f} GiB, Python {platform.python_version()}"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


class _Runner:
    """Fills a report, line by line."""

    def __init__(self, plan: Plan, tell: Tell) -> None:
        self._plan = plan
        self._tell = tell
        self._report = Report(
            started=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            machine=describe_machine(),
            quick=plan.quick,
            rounds=plan.rounds,
        )

    def run(self) -> Report:
        systems = self._present()
        chosen = [name for name in LINES if name in self._plan.lines]
        for stage, names in groupby(chosen, key=lambda name: LINES[name].stage):
            if stage is None:
                for name in names:
                    self._run_fresh(name, systems)
            else:
                self._run_stage(stage, list(names), systems)
        return self._report

    def _present(self) -> list[type[System]]:
        """The systems that this machine can run; the report has a sentence about each of the
        others.
        """
        present = []
        for name in self._plan.systems:
            system = SYSTEMS[name]
            missing = system.missing()
            if missing is None:
                self._report.titles[name] = system.title
                present.append(system)
            else:
                self._report.left_out[name] = missing
                self._tell(f"{name} is left out: {missing}")
        return present

    def _run_stage(self, stage: str, names: Sequence[str], systems: Sequence[type[System]]) -> None:
        """Starts the systems that a line of the stage wants, and runs the lines on them."""
        with contextlib.ExitStack() as stack:
            benches = []
            for cls in systems:
                wanted = [name for name in names if LINES[name].suits(cls)]
                if not wanted:
                    continue
                self._tell(f"stage {stage}: {cls.name} starts")
                system = stack.enter_context(contextlib.closing(cls()))
                with self._failing_softly(wanted, cls.name):
                    system.prepare()
                    system.start()
                    benches.append(Bench(system, self._plan.budget))
                    stack.callback(benches[-1].forget_cluster)
            for name in names:
                self._run_line(name, benches)
                self._report.write()

    def _run_line(self, name: str, benches: Sequence[Bench]) -> None:
        suited = [bench for bench in benches if LINES[name].suits(type(bench.system))]
        for number in range(0 if self._warms(name) else 1, self._rounds(name) + 1):
            for bench in _rotated(suited, number):
                if self._report.outcome(name, bench.system.name).failure is None:
                    with self._failing_softly([name], bench.system.name):
                        LINES[name].prepare(bench)
                        self._measure(name, bench, number)

    def _run_fresh(self, name: str, systems: Sequence[type[System]]) -> None:
        """A new system each round, one at a time; the line starts it by itself."""
        suited = [cls for cls in systems if LINES[name].suits(cls)]
        for number in range(1, self._rounds(name) + 1):
            for cls in _rotated(suited, number):
                if self._report.outcome(name, cls.name).failure is None:
                    with self._failing_softly([name], cls.name), contextlib.closing(cls()) as system:
                        system.prepare()
                        self._measure(name, Bench(system, self._plan.budget), number)
            self._report.write()

    def _rounds(self, name: str) -> int:
        own = LINES[name].rounds
        return self._plan.rounds if own is None else min(own, self._plan.rounds)

    def _warms(self, name: str) -> bool:
        return LINES[name].warm and not self._plan.quick

    def _measure(self, name: str, bench: Bench, number: int) -> None:
        """Runs the line once; round 0 is for warming up and leaves no trace in the report."""
        line = LINES[name]
        figures = line.run(bench)
        if number > 0:
            self._report.outcome(name, bench.system.name).add(figures)
        shown = [f"{key} {figures[key]:,.4g} {figure.unit}" for key, figure in line.figures.items() if key in figures]
        self._tell(f"{name}, round {number}: {bench.system.name}: {', '.join(shown)}")

    @contextlib.contextmanager
    def _failing_softly(self, names: Sequence[str], system: str) -> Iterator[None]:
        try:
            yield
        except FAILURES as failure:
            text = f"{type(failure).__name__}: {failure}"
            self._tell(f"{', '.join(names)}: {system}: {text}")
            for name in names:
                self._report.outcome(name, system).failure = text


def _rotated(items: Sequence[T], by: int) -> Iterator[T]:
    """Another one goes first in each round."""
    return (items[(index + by) % len(items)] for index in range(len(items)))

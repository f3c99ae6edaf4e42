"""Where the time goes: a line run once on `minicontroller up` under cProfile, and its most expensive functions.

cProfile makes Python calls dearer than they are and leaves the threads of kazoo out: read it as a map, not as a scale.
"""

import contextlib
import io
import pstats
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from .lines import LINES
from .peers import SYSTEMS
from .peers.minicontroller import OnMemory
from .works import Bench, Budget

DEFAULT: Final = OnMemory.name
TOP: Final = 30


def profile(line: str, systems: Sequence[str], budget: Budget, console: Console) -> None:
    for name in systems:
        cls = SYSTEMS[name]
        if not issubclass(cls, OnMemory):
            raise click.UsageError(f"--profile runs `minicontroller up`, which {name} is not")
        console.print(f"{line} on {name}, profiled")
        _profile_one(line, cls, budget, console)


def _profile_one(line: str, cls: type[OnMemory], budget: Budget, console: Console) -> None:
    with contextlib.closing(_profiled(cls)()) as system:
        output = system.folder / "profile.out"
        system.prepare()
        bench = Bench(system, budget)
        if LINES[line].stage is not None:
            system.start()
            assert bench.cluster.nodes, "it is ready"
        LINES[line].prepare(bench)
        figures = LINES[line].run(bench)
        bench.forget_cluster()
        system.stop()  # which is when the profile is written
        console.print(", ".join(f"{key} {value:,.4g}" for key, value in figures.items()))
        print(_top(output))


def _profiled(cls: type[OnMemory]) -> type[OnMemory]:
    class Profiled(cls):  # type: ignore[valid-type,misc]
        def interpreter(self) -> list[str]:
            return [sys.executable, "-m", "cProfile", "-o", str(self.folder / "profile.out")]

    return Profiled


def _top(path: Path) -> str:
    out = io.StringIO()
    stats = pstats.Stats(str(path), stream=out).strip_dirs()
    for order in ("tottime", "cumulative"):
        stats.sort_stats(order).print_stats(TOP)
    return out.getvalue()

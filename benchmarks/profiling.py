"""Where the time goes: a line run once on `minicontroller up`, and its most expensive functions.

With cProfile every call is counted, but Python calls look dearer than they are and other threads
are left out: read it as a map. With the sampler the shares are right, and a function that is rarely
at work may be missing.
"""

import contextlib
import io
import pstats
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from rich.console import Console

from . import sampler
from .lines import LINES
from .peers import SYSTEMS
from .peers.minicontroller import OnMemory
from .works import Bench, Budget

DEFAULT: Final = OnMemory.name
TOP: Final = 30


@dataclass(frozen=True)
class Tool:
    """The interpreter's arguments that come before `-m minicontroller`, and the reading of what it
    wrote.
    """

    arguments: Callable[[Path], list[str]]
    report: Callable[[Path], str]
    begin: signal.Signals | None = None


def profile(line: str, systems: Sequence[str], budget: Budget, *, tool: Tool, console: Console) -> None:
    for name in systems:
        cls = SYSTEMS[name]
        if not issubclass(cls, OnMemory):
            raise click.UsageError(f"profiles are taken of `minicontroller up`, which {name} is not")
        console.print(f"{line} on {name}")
        with contextlib.closing(cls()) as system:
            console.print(_profile_one(line, system, budget, tool), markup=False, highlight=False)


def _profile_one(line: str, system: OnMemory, budget: Budget, tool: Tool) -> str:
    output = system.folder / "profile.out"
    if LINES[line].stage is None:
        raise click.UsageError(f"{line} starts its system by itself: profiles are taken of one that runs")
    system.interpreter = [sys.executable, *tool.arguments(output)]
    system.prepare()
    bench = Bench(system, budget)
    system.start()
    LINES[line].prepare(bench)
    if tool.begin is not None and bench.cluster.nodes:  # it is ready
        system.nodes[0].send(tool.begin)
    figures = LINES[line].run(bench)
    bench.forget_cluster()
    system.stop()  # which is when the tool writes
    return "\n".join([", ".join(f"{key} {value:,.4g}" for key, value in figures.items()), "", tool.report(output)])


def _top_calls(path: Path) -> str:
    out = io.StringIO()
    stats = pstats.Stats(str(path), stream=out).strip_dirs()
    for order in ("tottime", "cumulative"):
        stats.sort_stats(order).print_stats(TOP)
    return out.getvalue()


CALLS: Final = Tool(arguments=lambda output: ["-m", "cProfile", "-o", str(output)], report=_top_calls)
SAMPLES: Final = Tool(
    arguments=lambda output: [sampler.__file__, str(output)],
    report=lambda output: sampler.report(output, TOP),
    begin=sampler.BEGIN,
)

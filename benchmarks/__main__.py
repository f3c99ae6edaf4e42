"""`python -m benchmarks`: measures minicontroller beside its peers and shows what came out."""

import signal
import sys
from pathlib import Path

import click
from rich.console import Console

from . import profiling, result, runner, tables
from .lines import LINES
from .peers import SYSTEMS
from .works import FULL, QUICK

ROUNDS = 5
HELP = f"""Measures minicontroller beside its peers on this machine, in one run.

Lines: {", ".join(LINES)}.

Systems: {", ".join(SYSTEMS)}.
"""


@click.command(help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--only", "lines", multiple=True, type=click.Choice(list(LINES)), metavar="LINE", help="This line; may be repeated."
)
@click.option(
    "--systems", multiple=True, type=click.Choice(list(SYSTEMS)), metavar="SYSTEM", help="This system; may be repeated."
)
@click.option("--rounds", type=click.IntRange(min=1), help=f"Rounds of a line, {ROUNDS} unless said.")
@click.option("--quick", is_flag=True, help="One short round: does everything work?")
@click.option("--markdown", is_flag=True, help="Measure nothing: print the newest result as Markdown.")
@click.option(
    "--from", "files", multiple=True, type=click.Path(exists=True, path_type=Path), help="Results for --markdown."
)
@click.option(
    "--profile", "profiled", type=click.Choice(list(LINES)), metavar="LINE", help="`up` under this line in cProfile."
)
@click.option(
    "--sample", "sampled", type=click.Choice(list(LINES)), metavar="LINE", help="`up` under this line, sampled."
)
def main(
    *,
    lines: tuple[str, ...],
    systems: tuple[str, ...],
    rounds: int | None,
    quick: bool,
    markdown: bool,
    files: tuple[Path, ...],
    profiled: str | None,
    sampled: str | None,
) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    console = Console()
    if not console.is_terminal:
        console.width = tables.WIDTH
    budget = QUICK if quick else FULL
    if markdown:
        print_markdown(files)
    elif line := profiled or sampled:
        tool = profiling.CALLS if profiled else profiling.SAMPLES
        profiling.profile(line, systems or (profiling.DEFAULT,), budget, tool=tool, console=console)
    else:
        plan = runner.Plan(
            lines=lines or tuple(LINES),
            systems=systems or tuple(SYSTEMS),
            rounds=rounds or (1 if quick else ROUNDS),
            budget=budget,
            quick=quick,
        )
        report = runner.run(plan, lambda text: console.print(text, style="dim", markup=False, highlight=False))
        tables.show(report, console)
        console.print(f"written to {report.path}")


def print_markdown(files: tuple[Path, ...]) -> None:
    chosen = list(files) or [path for path in [result.newest()] if path is not None]
    if not chosen:
        raise click.ClickException(f"no results in {result.RESULTS}: run `python -m benchmarks` first")
    click.echo(tables.markdown(result.merged([result.read(path) for path in chosen])), nl=False)


if __name__ == "__main__":
    main()

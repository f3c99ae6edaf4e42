"""Runs `minicontroller pipeline backtest`, from its arguments to the summary on the terminal and
its exit code.

What the workers answered is on the disk before anything is made of it, and stays there if that
fails.
"""

import shutil
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Literal

import click
from pyspark.sql import SparkSession
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..delta import Tables
from ..ending import ending
from ..location import Location
from ..page.files import Files, as_json
from ..page.tables import Column, ReportTable, ValueKind, count, plural, shortened, shown
from ..progress import Stages
from .candidate import LoadedCandidate
from .page import page
from .replaying import Window
from .results import EXISTING, LINES, ROWS, Results, write_differences, write_existing
from .running import BacktestError, Backtesting, BacktestRequest, answers
from .summary import TITLES, BacktestSummary, summarize
from .texts import ABOUT, answer, lacks, steadiness
from .verdicts import DifferenceKind as Differs

LAGS = (
    "The topic history of {} is older than its events, because an ingest is running or was interrupted: the back-test replays it in one piece, which takes "
    "longer, and reads the topics of today from the topic history."
)
STAGES = 4
SHOWN_ROWS = 10
NAME_WIDTH = 60
TABLES = ("by_rule", "by_principal", "by_topic")
PLAIN_WIDTH = 140
"""How many columns the output has where it goes to no terminal."""


def run_command(
    spark: SparkSession,
    place: Location,
    found: LoadedCandidate,
    files: Files | None,
    *,
    since: int | None,
    until: int | None,
    clusters: Sequence[str],
    counterfactual: bool,
    fail_on: Sequence[str],
) -> None:
    """Do a back-test and print its results. Raises PipelineError, OSError, Spark's errors, and
    click's for the exit code.
    """
    window = Window(_milliseconds(since), _milliseconds(until))
    request = BacktestRequest(
        candidate=found.candidate, window=window, clusters=tuple(clusters), counterfactual=counterfactual
    )
    summary = backtest(spark, Tables(place), found, request, files)
    print_summary(summary, sys.stdout)
    if files is not None:
        for sentence in files.misplaced:
            click.echo(sentence, err=True)
        beside = [files.json, *map(files.beside, (LINES, ROWS, EXISTING))]
        click.echo(f"The page is {files.written[-1]}; beside it are {', '.join(path.name for path in beside)}.")
    failed = [f"{what} ({count(summary.fails_on(what))})" for what in dict.fromkeys(fail_on) if summary.fails_on(what)]
    if failed:
        click.echo(f"Failed on {', '.join(failed)}.", err=True)
        raise click.exceptions.Exit(1)


def backtest(
    spark: SparkSession, tables: Tables, found: LoadedCandidate, request: BacktestRequest, files: Files | None
) -> BacktestSummary:
    """Do a back-test and write its results. Raises PipelineError, OSError and Spark's errors."""
    with _answers_folder(tables, files) as folder, Stages(spark, STAGES).shown() as progress:
        running = Backtesting(spark, tables, request, folder)
        with progress.stage("dividing the history"):
            plan = running.plan_slices()
        for cluster in running.lagging:
            click.echo(LAGS.format(shown(cluster, ValueKind.NAME)), err=True)
        events = sum(each.events for each in plan)
        with progress.stage(f"replaying {events:,} events", events=events):
            replayed = running.replay()
        with progress.stage("judging the topics of today"):
            existing = running.judge_existing()
        with progress.stage("writing"):
            results = Results()
            differences, refused = results.read(answers(replayed)), results.read(answers(existing))
            if files is None:
                deque(chain(differences, refused), maxlen=0)
                return summarize(found, request, running.clusters, results)
            write_differences(differences, files)
            write_existing(refused, files)
            summary = summarize(found, request, running.clusters, results)
            files.save(files.json, as_json(summary.document))
            files.save(files.out, page(summary, results, files))
            return summary


@contextmanager
def _answers_folder(tables: Tables, files: Files | None) -> Iterator[Path]:
    """Find a folder for the workers' answers: beside the page, or else with the tables, or where
    temporary files are if these are in a store. A run that fails when all requests were replayed
    leaves them there, and says so.
    """
    place = tables.location.path if tables.location.is_local else Path(tempfile.gettempdir())
    parent = place if files is None else files.out.parent
    try:
        parent.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".backtest-", dir=parent))
    except OSError as error:
        raise BacktestError(f"Nothing can be written into {parent}: {error.strerror or error}.") from None
    is_wanted = False
    ending.folders.add(folder)
    try:
        yield folder
    except Exception:
        if is_wanted := (folder / "replayed").exists():
            click.echo(f"The candidate's verdicts are in {folder}, as Parquet.", err=True)
        raise
    finally:
        ending.folders.discard(folder)
        if not is_wanted:
            shutil.rmtree(folder, ignore_errors=True)


def _milliseconds(microseconds: int | None) -> int | None:
    return None if microseconds is None else -(-microseconds // 1000)


def print_summary(summary: BacktestSummary, file: IO[str]) -> None:
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = PLAIN_WIDTH
    tables = [table for table in summary.tables if table.name in TABLES and table.rows and summary.differences]
    for table in (_requests(summary), *tables):
        console.print(_table(table))
        console.print()
    for sentence in (*_existing(summary), answer(summary), *lacks(summary), *steadiness(summary)):
        console.print(Text(sentence))
    for about, notes in summary.history["notes"].items():
        number, first = summary.history["counts"][about], shown(notes[0].text, ValueKind.TEXT)
        console.print(Text(f"{ABOUT.get(about, about)}: {count(number)}, first {first}"))


def _existing(summary: BacktestSummary) -> Iterator[str]:
    topics, refused = summary.existing["topics"], summary.existing["refused"]
    if topics:
        yield f"{plural(topics, 'topic exists', 'topics exist')} today; {count(refused)} would be refused."
        for cluster, rule, number in summary.existing["by_rule"][:SHOWN_ROWS]:
            who = shown(rule, ValueKind.NAME) if rule else "the policy"
            yield f"  {count(number)} by {who} in {shown(cluster, ValueKind.NAME)}"


def _requests(summary: BacktestSummary) -> ReportTable:
    kinds = summary.totals["differences"]
    rows = [("put to the candidate", summary.history["asked"]), ("the same verdict", summary.totals["same"])]
    always = {Differs.NEWLY_DENIED, Differs.NEWLY_ALLOWED}
    rows += [(TITLES[kind], kinds[kind.value]) for kind in Differs if kinds[kind.value] or kind in always]
    columns = Column("requests", "Requests", ValueKind.TEXT), Column("number", "", ValueKind.COUNT)
    return ReportTable("requests", "Requests", columns, rows)


def _table(table: ReportTable) -> Table:
    cut = table.cut(SHOWN_ROWS)
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in cut.columns:
        justify: Literal["left", "right"] = "right" if column.kind.is_number else "left"
        grid.add_column(column.title, justify=justify, no_wrap=column.kind.is_number)
    for row in cut.rows:
        cells = (
            shortened(value, NAME_WIDTH) if isinstance(value, str) else shown(value, column.kind)
            for value, column in zip(row, cut.columns, strict=True)
        )
        grid.add_row(*map(Text, cells))
    if cut.others:
        grid.add_row(Text(f"and {count(cut.others)} more"))
    return grid

"""What `minicontroller pipeline backtest` does from its arguments to its exit code.

Rule: what can be found wrong is found before Spark is started; what the workers answered is on the
disk before anything is made of it, and stays there if that fails.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from pyspark.sql import SparkSession

from ..delta import Tables, TablesError
from ..failures import first_line, is_sparks
from ..location import Location, reason
from ..page.files import Files, UnwritableError, as_json, plain_sheet
from ..page.sheet import Kind, shown
from ..progress import Stages
from .candidate import Found
from .page import page
from .replaying import Window
from .results import Results, Written, write_differences, write_existing
from .running import BacktestError, Backtesting, Wish, answers
from .summary import Summary, summarized
from .terminal import print_summary

LAGS = (
    "The topic history of {} is older than its events, because an ingest is at work or was interrupted: it is replayed in one piece, which takes "
    "longer, and the topics of today are those of the topic history."
)
STAGES = 4
ROWS = 10_000
"""Of a table as JSON."""


def run_command(
    spark: SparkSession,
    place: Location,
    found: Found,
    files: Files | None,
    *,
    since: int | None,
    until: int | None,
    clusters: Sequence[str],
    counterfactual: bool,
    fail_on: Sequence[str],
) -> None:
    window = Window(_milliseconds(since), _milliseconds(until))
    wish = Wish(candidate=found.candidate, window=window, clusters=tuple(clusters), counterfactual=counterfactual)
    try:
        summary = backtest(spark, Tables(place), found, wish, files)
    except (BacktestError, TablesError, UnwritableError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or place}: {reason(error)}.") from None
    print_summary(summary, sys.stdout)
    if files is not None:
        for sentence in files.misplaced:
            click.echo(sentence, err=True)
        click.echo(f"The page is {files.written[-1]}; beside it lie {', '.join(path.name for path in _beside(files))}.")
    failed = [f"{what} ({summary.fails_on(what)})" for what in dict.fromkeys(fail_on) if summary.fails_on(what)]
    if failed:
        click.echo(f"Failed on {', '.join(failed)}.", err=True)
        raise click.exceptions.Exit(1)


def backtest(spark: SparkSession, tables: Tables, found: Found, wish: Wish, files: Files | None) -> Summary:
    """Do a back-test and write its results. Raises BacktestError, TablesError, UnwritableError,
    OSError.
    """
    tables.require()
    with _answers_folder(tables, files) as folder, Stages(spark, STAGES).shown() as progress:
        running = Backtesting(spark, tables, wish, folder)
        with progress.stage("looking where to cut"):
            plan = _by_spark(running.look)
        for cluster in running.lagging:
            click.echo(LAGS.format(shown(cluster, Kind.NAME)), err=True)
        events = sum(each.events for each in plan)
        with progress.stage(f"replaying {events:,} events", events=events):
            replayed = _by_spark(running.replay)
        with progress.stage("asking for the topics of today"):
            existing = _by_spark(running.scan)
        with progress.stage("writing"):
            return _results(found, wish, running.clusters, (replayed, existing), files)


def _results(
    found: Found, wish: Wish, clusters: Sequence[str], found_in: tuple[list[Path], list[Path]], files: Files | None
) -> Summary:
    """Write the results to files before the page is made of them."""
    results = Results()
    replayed, existing = (results.read(answers(written)) for written in found_in)
    if files is None:
        for _ in (*replayed, *existing):
            pass
        return summarized(found, wish, clusters, results)
    written = Written(files)
    write_differences(replayed, written)
    write_existing(existing, written)
    summary = summarized(found, wish, clusters, results)
    files.save(files.json, as_json(_plain(summary)))
    files.save(files.out, page(summary, results, files))
    return summary


def _beside(files: Files) -> list[Path]:
    written = Written(files)
    return [files.json, written.ndjson, written.parquet, written.existing]


def _plain(summary: Summary) -> dict[str, Any]:
    parts = {name: getattr(summary, name) for name in ("candidate", "history", "totals", "existing")}
    return {**msgspec.to_builtins(parts), "tables": [plain_sheet(sheet.cut(ROWS)) for sheet in summary.sheets]}


@contextmanager
def _answers_folder(tables: Tables, files: Files | None) -> Iterator[Path]:
    """Find a folder for the workers' answers: beside the page, or else with the tables, or where
    temporary files are if these are in a store. A run that fails late leaves them there, and says
    so.
    """
    place = tables.location.path if tables.location.is_local else Path(tempfile.gettempdir())
    parent = place if files is None else files.out.parent
    try:
        parent.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".backtest-", dir=parent))
    except OSError as error:
        raise BacktestError(f"Nothing can be written into {parent}: {error.strerror or error}.") from None
    is_wanted = False
    try:
        yield folder
    except Exception as error:
        is_wanted = (folder / "replayed").exists() and not isinstance(error, BacktestError)
        if is_wanted:
            click.echo(f"What the candidate said lies in {folder}, as Parquet.", err=True)
        raise
    finally:
        if not is_wanted:
            shutil.rmtree(folder, ignore_errors=True)


def _by_spark(work: Callable[[], Any]) -> Any:
    """Do the work, and turn a failure of Spark's into a sentence."""
    try:
        return work()
    except Exception as error:
        if is_sparks(error):
            raise BacktestError(f"Spark could not do it: {first_line(error)}") from None
        raise


def _milliseconds(microseconds: int | None) -> int | None:
    return None if microseconds is None else -(-microseconds // 1000)

"""`minicontroller pipeline`: ingest, report, backtest.

Rule: what goes wrong is a sentence on stderr. The exit code is 1 for a failure, or for a finding
that was to count as one, and 2 for a wrong call. Spark is imported when a command is called, so
that `--help` is quick.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..text import escaped, parse_time
from .ending import SENTENCE, Interrupted, on_signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .backtest.candidate import LoadedCandidate
    from .location import Location

NEEDED = ("deltalake", "duckdb", "jinja2", "matplotlib", "pandas", "pyarrow", "pyspark")
"""The libraries of the extra `pipeline`."""

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+:/", re.ASCII)


class PageParameter(click.Path):
    """A page on this machine, as the `Files` that are written with it. An address such as
    s3://bucket/page.html would be taken for a folder of that name, and is refused.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from .page.files import Files, UnwritableError

        if URI.match(str(value)):
            self.fail(f"{value} is an address, and pages are written on local disks only.", param, ctx)
        try:
            return Files(Path(str(super().convert(value, param, ctx))))
        except UnwritableError as error:
            self.fail(str(error), param, ctx)


class LocationParameter(click.Path):
    """A folder on this machine, or an address of an object store: a `Location`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from .location import Location, LocationError

        try:
            place = Location.parse(str(value))
        except LocationError as error:
            self.fail(escaped(str(error)), param, ctx)
        if place.is_local:
            super().convert(place.path, param, ctx)
        return place


class TimeParameter(click.ParamType[int]):
    """A time in UTC, or an age, as microseconds since 1970."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return round(parse_time(value, UTC).timestamp() * 1_000_000)
        except ValueError as error:
            self.fail(str(error), param, ctx)


FOLDER = LocationParameter(file_okay=False)
EXISTING = LocationParameter(exists=True, file_okay=False)
tables_option = click.option(
    "--tables", required=True, type=FOLDER, help="Folder of the tables, or its address, such as s3://BUCKET/FOLDER."
)


class Commands(click.Group):
    """Commands that end at once, and with a sentence, when a signal asks them to."""

    def invoke(self, ctx: click.Context) -> Any:
        with on_signals():
            try:
                return super().invoke(ctx)
            except Interrupted as interrupted:
                click.echo(SENTENCE, err=True)
                sys.exit(interrupted.code)


@click.group("pipeline", cls=Commands)
def pipeline() -> None:
    """Load the audit log into tables on Spark, make reports, and judge recorded requests by another
    policy.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise click.ClickException(
            f"The pipeline needs {', '.join(missing)}, not installed here: pip install 'minicontroller[pipeline]'."
        )


def spark_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command `tables`, and as `spark` what starts Spark, slowly, when it is entered."""

    @tables_option
    @click.option(
        "--master",
        show_default="the master of spark-submit, else local[*]",
        help="Spark master URL: local[N], spark://HOST:PORT ...",
    )
    @click.option(
        "--conf", "settings", multiple=True, metavar="KEY=VALUE", callback=_settings, help="Spark setting; repeatable."
    )
    @click.option("-v", "--verbose", is_flag=True, help="Show Spark's log on stderr.")
    @wraps(function)
    def command(
        *, tables: "Location", master: str | None, settings: dict[str, str], verbose: bool, **rest: Any
    ) -> None:
        from .session import spark_session

        with failures_reported(tables):
            function(tables=tables, spark=spark_session(master, settings=settings, verbose=verbose), **rest)

    return command


def selection_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command `clusters`, and `since` and `until`, in microseconds since 1970 or None."""
    for option in (
        click.option("--cluster", "clusters", multiple=True, metavar="ID", help="Only this cluster; repeatable."),
        click.option("--until", type=TimeParameter(), help="Only events before this time."),
        click.option(
            "--since", type=TimeParameter(), help="Only events since this time in UTC, or this age, such as 7d."
        ),
    ):
        function = option(function)
    return function


def _settings(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for pair in values:
        key, equals, value = pair.partition("=")
        if not equals or not key.startswith("spark."):
            raise click.UsageError(f"--conf {pair}: write it as spark.KEY=VALUE.")
        settings[key] = value
    return settings


@contextmanager
def failures_reported(tables: "Location") -> Iterator[None]:
    """Turn a failure within the block into a sentence: click.ClickException."""
    from .failures import PipelineError, first_line, is_sparks
    from .location import advice, reason

    try:
        yield
    except PipelineError as error:
        raise click.ClickException(escaped(str(error))) from None
    except OSError as error:
        raise click.ClickException(escaped(f"{error.filename or tables}: {advice(error) or reason(error)}.")) from None
    except Exception as error:
        import duckdb

        from .database import failure

        if isinstance(error, duckdb.Error):
            reported = failure(error)
            raise click.ClickException(escaped(f"{reported.filename}: {reported.strerror}.")) from None
        if not is_sparks(error):
            raise
        raise click.ClickException(escaped(f"Spark failed: {first_line(error)}")) from None


@pipeline.command()
@click.option(
    "--audit",
    "folders",
    multiple=True,
    required=True,
    type=EXISTING,
    metavar="DIR",
    help="A folder with audit files, or its address; repeatable.",
)
@click.argument("more", nargs=-1, type=EXISTING, metavar="[DIR]...")
@click.option("--follow", is_flag=True, help="Continue with new events until Ctrl-C.")
@click.option("--anew", is_flag=True, help="Rebuild the tables from all audit files.")
@click.option(
    "--batch",
    type=click.IntRange(1),
    metavar="MIB",
    help="Add at most this many MiB of audit files in one commit.  [default: 1024 for each processor]",
)
@click.option("--fail-on", type=click.Choice(["problems"]), help="Exit with 1 if the log has problems.")
@spark_options
def ingest(
    *,
    spark: AbstractContextManager["SparkSession"],
    tables: "Location",
    folders: tuple["Location", ...],
    more: tuple["Location", ...],
    fail_on: str | None,
    batch: int | None,
    anew: bool,
    follow: bool,
) -> None:
    """Load new events of the audit log into the tables.

    Several folders can be given: --audit DIR DIR DIR.
    """
    from .delta import Tables
    from .ingest.run import run_command
    from .ingest.state import check

    if not anew:
        check(Tables(tables))
    with spark as session:
        run_command(
            session,
            tables,
            [*folders, *more],
            follow=follow,
            anew=anew,
            batch_bytes=None if batch is None else batch << 20,
            fails_on_problems=fail_on is not None,
        )


@pipeline.command()
@click.argument("policy")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="Set a configuration key of the policy. Can be repeated."
)
@click.option(
    "--counterfactual",
    is_flag=True,
    help="Judge later requests as if changes that POLICY refuses had not happened, and those that it allows had.",
)
@click.option(
    "--out",
    "files",
    metavar="PAGE.html",
    type=PageParameter(),
    help="Write a page with every difference, and the same as NDJSON, Parquet and JSON beside it.",
)
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice(["newly-denied", "newly-allowed", "changed", "errors", "existing"]),
    help="Exit with 1 if there is such a difference. Can be repeated.",
)
@selection_options
@spark_options
def backtest(
    *,
    spark: AbstractContextManager["SparkSession"],
    tables: "Location",
    policy: str,
    sets: tuple[str, ...],
    files: Any,
    **options: Any,
) -> None:
    """Judge every recorded request by POLICY. Show which decisions would have been different.

    POLICY is a file of rules (.toml; several by commas), a class in Python (module:Class or
    file.py:Class), or a node's server.properties.
    """
    from .backtest.command import run_command
    from .delta import Tables

    found = _read_candidate(policy, sets)
    Tables(tables).require()
    with spark as session:
        run_command(session, tables, found, files, **options)


def _read_candidate(policy: str, sets: tuple[str, ...] = ()) -> "LoadedCandidate":
    from .backtest.candidate import CandidateError
    from .backtest.isolated_loading import load_isolated

    try:
        return load_isolated(policy, sets)
    except CandidateError as error:
        raise click.ClickException(str(error)) from None


@pipeline.command()
@click.option(
    "--out",
    "files",
    required=True,
    metavar="PAGE.html",
    type=PageParameter(),
    help="Write the page here, and PAGE.json and PAGE-csv beside it.",
)
@click.option("--policy", help="The policy in force, as for `backtest`: its rules that never fired are listed, too.")
@selection_options
@spark_options
def report(
    *,
    spark: AbstractContextManager["SparkSession"],
    tables: "Location",
    files: Any,
    policy: str | None,
    **selection: Any,
) -> None:
    """Make a page with plots of what was recorded.

    It shows whose requests were refused and why, what grows, and how long changes take. The figures
    are written as JSON and CSV, too.
    """
    from .delta import Tables
    from .report.making import run_command

    rules = () if policy is None else _read_candidate(policy).names
    Tables(tables).require()
    with spark as session:
        run_command(session, tables, files, rules=rules, **selection)


@pipeline.command()
@tables_option
@click.option(
    "--verify", is_flag=True, help="Also read all audit files, and exit with 1 if one has changed since it was read."
)
def status(*, tables: "Location", verify: bool) -> None:
    """Show what the tables hold, and what is not in them yet.

    It does not start Spark.
    """
    from .status import print_differences, print_status

    with failures_reported(tables):
        print_status(tables, sys.stdout)
        if verify and not print_differences(tables, sys.stdout):
            raise click.exceptions.Exit(1)

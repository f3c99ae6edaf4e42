"""What `minicontroller pipeline ingest` tells of a run, and how it ends.

Rule: what goes wrong is a sentence; numbers are those of the tables.
"""

import signal
import sys
from collections.abc import Sequence
from threading import Event
from types import FrameType

import click
from pyspark.sql import SparkSession

from ...text.escaping import escaped
from ..delta import TablesError
from ..location import Location, reason
from ..progress import Stages
from .run import IngestError, Summary, ingest


def run_command(
    spark: SparkSession,
    tables: Location,
    folders: Sequence[Location],
    *,
    follow: bool,
    anew: bool,
    batch_bytes: int | None,
    fails_on_problems: bool,
) -> None:
    """Ingest, and print what came of it. Raises click.ClickException; exits with 1 if there are
    problems and `fails_on_problems`.
    """
    stop = _stopped_by_signals() if follow else None
    try:
        with Stages(spark).shown() as progress:
            summary = ingest(spark, tables, folders, follow=stop, anew=anew, batch_bytes=batch_bytes, progress=progress)
    except (IngestError, TablesError) as error:
        raise click.ClickException(escaped(str(error))) from None
    except OSError as error:
        raise click.ClickException(escaped(f"{error.filename or tables}: {reason(error)}.")) from None
    for line in told(summary):
        click.echo(line)
    if fails_on_problems and summary.has_problems:
        sys.exit(1)


def _stopped_by_signals() -> Event:
    """End the run in good order on Ctrl-C or SIGTERM."""
    stop = Event()

    def set_it(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGINT, set_it)
    signal.signal(signal.SIGTERM, set_it)
    return stop


def told(summary: Summary) -> list[str]:
    """Return the lines that describe a run."""
    lines = [f"{summary.events:,} new events from {_count(summary.files, 'file')}."]
    for number, text in (
        (summary.duplicates, "{} more than once in the files, and once in the tables."),
        (summary.conflicts, "{} in conflict with another at the same place in the log; the first one stays."),
        (summary.missing, "{} missing: no file had them so far."),
    ):
        if number:
            lines.append(text.format(_count(number, "event")))
    if summary.quarantined:
        lines.append(f"{_count(summary.quarantined, 'line')} in quarantine.")
    for number, text in (
        (summary.torn, "{} torn: finished, and without a last line end."),
        (summary.unreadable, "{} unreadable."),
        (summary.pending, "{} with a line that has no end yet."),
    ):
        if number:
            lines.append(text.format(_count(number, "file")))
    if summary.has_problems:
        lines.append("The tables `problems` and `quarantine` tell more.")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"

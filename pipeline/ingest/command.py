"""Runs `minicontroller pipeline ingest`: it tells what a run did, and sets the exit code.

Rule: what goes wrong is a sentence; numbers are those of the tables.
"""

import sys
from collections.abc import Sequence
from threading import Event

import click
from pyspark.sql import SparkSession

from ..ending import ending
from ..location import Location
from ..page.tables import plural
from ..progress import Stages
from .run import IngestSummary, ingest


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
    """Ingest, and print what came of it; exit with 1 if there are problems and `fails_on_problems`.
    Raises PipelineError and OSError.
    """
    stop = Event() if follow else None
    ending.finishes = None if stop is None else stop.set
    try:
        with Stages(spark).shown() as progress:
            summary = ingest(spark, tables, folders, follow=stop, anew=anew, batch_bytes=batch_bytes, progress=progress)
    finally:
        ending.finishes = None
    for line in summary_lines(summary):
        click.echo(line)
    if fails_on_problems and summary.has_problems:
        sys.exit(1)


def summary_lines(summary: IngestSummary) -> list[str]:
    lines = [
        f"{plural(number, what)} {text}."
        for number, what, text in (
            (summary.duplicates, "event", "more than once in the files, and once in the tables"),
            (summary.conflicts, "event", "in conflict with another at the same place in the log; the first one stays"),
            (summary.missing, "event", "missing: no file has them so far"),
            (summary.quarantined, "line", "in quarantine"),
            (summary.read_again, "file", "changed since it was read, and read again"),
            (summary.lost, "event", "no longer in their files, which were cut or changed"),
            (summary.torn, "file", "torn: finished, and ending within a line"),
            (summary.unreadable, "file", "unreadable"),
            (summary.pending, "file", "with an unfinished last line"),
        )
        if number
    ]
    if summary.has_problems:
        lines.append("The tables `problems` and `quarantine` have the details.")
    return [f"{summary.events:,} new events from {plural(summary.files, 'file')}.", *lines]

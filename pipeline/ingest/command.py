"""What `minicontroller pipeline ingest` tells of a run, and how it ends.

Rule: what goes wrong is a sentence; numbers are those of the tables.
"""

from collections.abc import Sequence
from pathlib import Path

import click
from pyspark.sql import SparkSession

from .run import IngestError, Summary, ingest
from .state import StateError


def run_command(spark: SparkSession, tables: Path, folders: Sequence[Path]) -> None:
    try:
        summary = ingest(spark, tables, folders)
    except (IngestError, StateError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename or tables}: {error.strerror or error}.") from None
    click.echo(_told(summary))


def _told(summary: Summary) -> str:
    return (
        f"{summary.events} new events of {summary.files} files, {summary.duplicates} duplicates left out, "
        f"{summary.quarantined} lines in quarantine, {summary.pending} files with a line that has no end yet."
    )

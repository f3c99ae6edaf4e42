"""What `minicontroller pipeline report` tells of its work, and how it ends.

Rule: whatever was counted is on the disk when it ends, and the last lines say where.
"""

from collections.abc import Sequence

import click
from pyspark.sql import SparkSession

from ..delta import Tables
from ..location import Location
from ..page.files import Files
from ..progress import Stages
from .making import STAGES, make, save_figures, save_page
from .selection import Selection


def run_command(
    spark: SparkSession, place: Location, files: Files, *, since: int | None, until: int | None, clusters: Sequence[str]
) -> None:
    """Make the report, and print where it is. Raises PipelineError, OSError and Spark's errors."""
    selection = Selection(spark, Tables(place), since=since, until=until, clusters=clusters)
    selection.check()
    with Stages(spark, STAGES + 1).shown() as progress:
        report = make(selection, progress)
        save_figures(report, files)
        with progress.stage("the page"):
            save_page(report, files)
    for sentence in files.misplaced:
        click.echo(sentence, err=True)
    click.echo(
        f"{report.clusters.totals['events']} events: {files.written[-1]}, with figures in {files.json.name} and {files.csv_folder.name}."
    )

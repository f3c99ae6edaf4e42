"""Runs `minicontroller pipeline report`: writes all questions as a JSON document, CSV files and a
page. The figures are written before the page is drawn, so an error in a drawing loses none of them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import click
from pyspark.sql import SparkSession

from ..delta import Tables
from ..location import Location
from ..page.files import Files, as_csv, as_json, plain_table
from ..page.rendering import render
from ..page.tables import ValueKind, count, moment, plural, share, shown
from ..progress import Stages
from ..schemas import Table
from .activity import BY_CLIENT, BY_PRINCIPAL, BY_TIME, BY_TOPIC, CHANGES, FORWARDING, OVER_TIME, TOPICS
from .aggregates import AggregateRequest
from .controllers import CONTROLLERS, NEAR_CHANGES, find_controller_epochs
from .durations import BY_OPERATION, BY_STEP, DURATIONS
from .faults import FAULTS, QUARANTINED
from .growth import BEGUN, GROWTH, grown, sum_up_growth
from .objections import OBJECTIONS, WOULD_BE_REFUSED, note_rules
from .question import Report
from .refusals import ERRORS, FINDINGS, REFUSALS, REFUSED, WARNINGS
from .selection import COLUMNS, Selection
from .table_queries import TableQuery

SCHEMA_VERSION = 1
"""The version of the JSON document: a name in it never gets another meaning."""
ROWS_ON_THE_PAGE = 10
STAGES = 2
CLUSTERS = TableQuery(
    "clusters",
    "Clusters",
    "cluster_id events changes first last",
    "SELECT cluster_id, sum(events) AS events, sum(decisions) AS changes, min(first) AS first, max(last) AS last FROM days GROUP BY ALL",
    "cluster_id",
    {"changes": "Requested changes", "last": "Last event"},
    most=None,
)
QUESTIONS = (
    *(REFUSALS, WOULD_BE_REFUSED, WARNINGS, OVER_TIME, BY_PRINCIPAL, BY_TOPIC, GROWTH, DURATIONS),
    *(FORWARDING, CONTROLLERS, BY_CLIENT, FAULTS),
)


def run_command(
    spark: SparkSession,
    place: Location,
    files: Files,
    *,
    since: int | None,
    until: int | None,
    clusters: Sequence[str],
    rules: Sequence[str],
) -> None:
    """Make the report with these rules in it, and print where it is. Raises PipelineError, OSError
    and Spark's errors.
    """
    selection = Selection(spark, Tables(place), since=since, until=until, clusters=clusters)
    selection.check()
    with Stages(spark, STAGES + 1).shown() as progress:
        report = make(selection, progress, rules)
        save_figures(report, files)
        with progress.stage("the page"):
            save_page(report, files)
    for sentence in files.misplaced:
        click.echo(sentence, err=True)
    click.echo(
        f"{report.clusters.totals['events']:,} events: {files.written[-1]}, with figures in {files.json.name} and {files.csv_folder.name}."
    )


def make(selection: Selection, progress: Stages, rules: Sequence[str] = ()) -> Report:
    with progress.stage("counting events"):
        selection.count(selection.days, BEGUN, QUARANTINED)
    selection.load(Table.PROBLEMS, Table.CONTROLLER_EPOCHS)
    near = {"positions": find_controller_epochs(selection)}
    aggregates = (CHANGES, BY_TIME, TOPICS, REFUSED, OBJECTIONS, ERRORS, FINDINGS, BY_STEP, BY_OPERATION, NEAR_CHANGES)
    with progress.stage("changes", events=selection.number):
        selection.count(
            AggregateRequest(Table.EVENTS, COLUMNS, selection.decisions, aggregates, near), grown(selection)
        )
    sum_up_growth(selection)
    note_rules(selection.aggregates, rules)
    return Report(selection, QUESTIONS, CLUSTERS)


def save_figures(report: Report, files: Files) -> None:
    files.save(files.json, as_json(document(report)))
    for table in report.tables:
        files.save(files.csv_folder / f"{table.name}.csv", as_csv(table))


def document(report: Report) -> dict[str, Any]:
    """Return the report for JSON; docs/pipeline.md describes its fields."""
    selection = report.selection
    since, until = (
        None if limit is None else moment(limit).replace(" ", "T") + "Z" for limit in (selection.since, selection.until)
    )
    return {
        "schema_version": SCHEMA_VERSION,
        "since": since,
        "until": until,
        "clusters": list(selection.clusters),
        "events": report.clusters.totals["events"],
        "step": selection.axis.step,
        "questions": [
            {
                "name": question.name,
                "title": question.title,
                "answer": question.answer(report),
                "tables": [table.name for table in question.tables(report)],
            }
            for question in report.questions
        ],
        "tables": {table.name: plain_table(table) for table in report.tables},
    }


def save_page(report: Report, files: Files) -> None:
    parts = [(question, question.draw(report)) for question in report.questions]
    untold = () if report.clusters.all_rows > 1 else ("cluster_id",)
    page = render(
        "report/report.html",
        report=report,
        parts=parts,
        on_page=lambda table: table.cut(ROWS_ON_THE_PAGE).with_content(*untold),
        figures=list(_figures(report)),
        period=_period(report),
        csv=files.csv_folder.name,
        json=files.json.name,
    )
    files.save(files.out, page)


def _figures(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield the figures at the top of the page: what, how much, and whether it is bad."""
    totals = {table.name: table.totals for table in report.tables}
    changes, refused = totals["clusters"]["changes"], totals["refusals_by_rule"]["refused"]
    yield "Requested changes", count(changes), ""
    yield "Refused by policies", share(refused / changes) if changes else shown(None, ValueKind.SHARE), ""
    yield "Would be refused", count(totals["would_be_refused_by_rule"]["would_be_refused"]), ""
    yield "Topics at the end", count(totals["growth_by_cluster"]["topics"]), ""
    yield "Partitions at the end", count(totals["growth_by_cluster"]["partitions"]), ""
    yield "Changes of controllers", count(report.table("controller_changes").all_rows), ""
    wrong = totals["problems_by_kind"]["problems"] + totals["quarantine_by_reason"]["lines"]
    yield "Faults of the log", count(wrong), "bad" if wrong else ""


def _period(report: Report) -> str:
    clusters, selection = report.clusters, report.selection
    if clusters.rows:
        first, last = min(clusters.values("first")), max(clusters.values("last"))
        return f"{moment(first)[:16]} to {moment(last)[:16]} UTC, {plural(clusters.totals['events'], 'event')}"
    limits = (("from", selection.since), ("until", selection.until))
    return " ".join(["No events", *(f"{word} {moment(limit)[:16]} UTC" for word, limit in limits if limit is not None)])

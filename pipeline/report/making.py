"""The report: all questions, in their order, as one document for programs and one page for people.

Rule: the figures are on the disk before the page is made, so whatever goes wrong with a drawing
costs no hour of counting.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..page.files import Files, as_json, plain_sheet
from ..page.rendering import render
from ..page.sheet import Column, Kind, Sheet, count, moment, plural, share, shown
from ..progress import Stages
from ..schemas import Table
from .activity import BY_TIME, CHANGES, TOPICS, Activity
from .controllers import NEAR_CHANGES, controllers, places, reigns_of
from .durations import BY_OPERATION, BY_STEP, durations
from .facts import Wanted
from .faults import QUARANTINED, faults
from .growth import BEGUN, grown, growth
from .question import Question
from .refusals import ERRORS, FINDINGS, REFUSED, refusals, warnings
from .selection import Selection

SCHEMA_VERSION = 1
"""Of the JSON document: a name in it never gets another meaning."""
ROWS_ON_THE_PAGE = 10


@dataclass(frozen=True)
class Report:
    selection: Selection
    clusters: Sheet
    questions: Sequence[Question]

    @property
    def sheets(self) -> list[Sheet]:
        """All sheets, in the order in which they are told."""
        return [self.clusters, *(sheet for each in self.questions for sheet in (*each.sheets, *each.more))]

    def sheet(self, name: str) -> Sheet:
        return next(sheet for sheet in self.sheets if sheet.name == name)


def make(selection: Selection, progress: Stages) -> Report:
    """Count all facts, ask all questions and return the report."""
    with progress.stage("what there is"):
        selection.count(selection.days, BEGUN, QUARANTINED)
    clusters = _clusters(selection)
    with progress.stage("changes", events=clusters.totals["events"]):
        facts = (CHANGES, BY_TIME, TOPICS, REFUSED, ERRORS, FINDINGS, BY_STEP, BY_OPERATION, NEAR_CHANGES)
        near = {"places": places(reigns_of(selection))}
        selection.count(Wanted(Table.EVENTS, selection.decisions, facts, near), grown(selection))
    return Report(selection, clusters, [ask() for ask in _questions(selection)])


def _questions(selection: Selection) -> list[Callable[[], Question]]:
    activity = Activity(selection)
    return [
        partial(refusals, selection),
        partial(warnings, selection),
        activity.over_time,
        activity.by_principal,
        activity.by_topic,
        partial(growth, selection),
        partial(durations, selection),
        activity.forwarding,
        partial(controllers, selection),
        activity.by_client,
        partial(faults, selection),
    ]


STAGES = 2


def _clusters(selection: Selection) -> Sheet:
    return Sheet(
        "clusters",
        "Clusters",
        (
            *(Column("cluster_id", "Cluster", Kind.NAME), Column("events", "Events", Kind.COUNT, sums=True)),
            Column("changes", "Changes asked for", Kind.COUNT, sums=True),
            *(Column("first", "First event", Kind.TIME), Column("last", "Last event", Kind.TIME)),
        ),
        [(each.cluster_id, each.events, each.decisions, each.first, each.last) for each in selection.spreads],
    )


# ------------------------------------------------------------------ for programs


def save_figures(report: Report, files: Files) -> None:
    """Write the figures as JSON and CSV."""
    files.save(files.json, as_json(document(report)))
    files.save_sheets(report.sheets)


def document(report: Report) -> dict[str, Any]:
    """Return the report for JSON; docs/pipeline.md describes its fields."""
    selection = report.selection
    limits = {"since": selection.since, "until": selection.until}
    return {
        "schema_version": SCHEMA_VERSION,
        **{name: None if limit is None else moment(limit).replace(" ", "T") + "Z" for name, limit in limits.items()},
        "clusters": list(selection.clusters),
        "events": report.clusters.totals["events"],
        "step": selection.axis.step.name,
        "questions": [
            {
                "name": question.name,
                "title": question.title,
                "answer": question.answer,
                "tables": [sheet.name for sheet in (*question.sheets, *question.more)],
            }
            for question in report.questions
        ],
        "tables": {sheet.name: plain_sheet(sheet) for sheet in report.sheets},
    }


# ------------------------------------------------------------------ for people


def save_page(report: Report, files: Files) -> None:
    """Draw all plots and write the page."""
    parts = [(question, question.draw()) for question in report.questions]
    page = render(
        "report/report.html",
        report=report,
        parts=parts,
        on_page=lambda sheet: _on_page(sheet, report),
        figures=list(_figures(report)),
        period=_period(report),
        csv=files.csv_folder.name,
        json=files.json.name,
    )
    files.save(files.out, page)


def _on_page(sheet: Sheet, report: Report) -> Sheet:
    """Return the sheet for the page: its first rows, and the columns that tell something."""
    short = sheet.cut(ROWS_ON_THE_PAGE).telling()
    return short if report.clusters.all_rows > 1 else short.without("cluster_id")


def _figures(report: Report) -> Iterator[tuple[str, str, str]]:
    """Yield the figures at the top of the page: what, how much, and whether it is bad."""
    totals = {sheet.name: sheet.totals for sheet in report.sheets}
    changes, refused = totals["clusters"]["changes"], totals["refusals_by_rule"]["refused"]
    yield "Changes asked for", count(changes), ""
    yield "Refused by policies", share(refused / changes) if changes else shown(None, Kind.SHARE), ""
    yield "Topics at the end", count(totals["growth_by_cluster"]["topics"]), ""
    yield "Partitions at the end", count(totals["growth_by_cluster"]["partitions"]), ""
    yield "Changes of controllers", count(report.sheet("controller_changes").all_rows), ""
    wrong = totals["problems_by_kind"]["problems"] + totals["quarantine_by_reason"]["lines"]
    yield "Faults of the log", count(wrong), "bad" if wrong else ""


def _period(report: Report) -> str:
    """Return the period of the events, or the one that was asked for."""
    rows = report.clusters.rows
    if rows:
        first, last = (min(report.clusters.values("first")), max(report.clusters.values("last")))
        return f"{moment(first)[:16]} to {moment(last)[:16]} UTC, {plural(report.clusters.totals['events'], 'event')}"
    since, until = report.selection.since, report.selection.until
    between = [
        f"{word} {moment(limit)[:16]} UTC" for word, limit in (("from", since), ("until", until)) if limit is not None
    ]
    return " ".join(["No events", *between])

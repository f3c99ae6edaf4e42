"""The question about faults of the log: problems that the ingest found, and invalid lines. An
invalid line may hold anything, so the page shows its file, number and reason, and not its text.
"""

from ..page.charts import bars
from ..page.drawing import Plot, Series
from ..page.tables import count, plural
from ..schemas import Table
from .aggregates import COUNT, Aggregate, AggregateRequest
from .question import Report, ReportQuestion, listed, named, times
from .table_queries import TableQuery

_MEANINGS = {
    "gap": ("missing event", "missing events", True),
    "dropped": ("dropped event", "dropped events", True),
    "duplicate": ("event that was there more than once", "events that were there more than once", True),
    "conflict": ("place with two different events", "places with two different events", False),
    "no-snapshot": ("epoch that does not begin with a snapshot", "epochs that do not begin with a snapshot", False),
    "unreadable": ("file that cannot be read", "files that cannot be read", False),
    "lost": (
        "file with fewer events than were read from it",
        "files with fewer events than were read from them",
        False,
    ),
    "torn": ("file that ends within a line", "files that end within a line", False),
}
"""The words for one and for several problems of each kind, and whether their events are counted
instead.
"""

QUARANTINED = AggregateRequest(
    Table.QUARANTINE,
    "reason file line",
    "FROM source",
    (Aggregate("quarantine", ("reason", "file"), {"lines": COUNT, "line": "min(line)"}),),
)


def _answer(report: Report) -> str:
    lines = report.table("quarantine_by_reason").totals["lines"]
    parts = [_told(*row) for row in report.table("problems_by_kind").rows]
    if lines:
        parts.append(plural(lines, "invalid line", "invalid lines"))
    return f"The ingest found {listed(parts)}." if parts else "Nothing: each line is an event, and no event is missing."


def _told(kind: str, problems: int, events: int) -> str:
    if kind not in _MEANINGS:
        return f"{named(kind)} {times(problems)}"
    one, many, counts_events = _MEANINGS[kind]
    return plural(events if counts_events else problems, one, many)


def _drawn(report: Report) -> Plot | None:
    values = {kind: events for kind, _, events in report.table("problems_by_kind").rows}
    if lines := report.table("quarantine_by_reason").totals["lines"]:
        values["invalid lines"] = lines
    if not values:
        return None
    numbers = list(values.values())
    return bars("faults", list(values), [Series("", "s5", numbers)], list(map(count, numbers)))


FAULTS = ReportQuestion(
    "faults",
    "Which problems does the log have?",
    _answer,
    _drawn,
    (
        TableQuery(
            "problems",
            "Problems",
            "kind text cluster_id epoch first_sequence last_sequence events file",
            "SELECT * REPLACE (coalesce(events, 0) AS events) FROM problems",
            "cluster_id, epoch, first_sequence, last_sequence, kind, file, text",
        ),
        TableQuery(
            "quarantine_by_reason",
            "Invalid lines",
            "reason lines files file line",
            "SELECT reason, sum(lines) AS lines, count(*) AS files, min(file) AS file, arg_min(line, file) AS line FROM quarantine GROUP BY ALL",
            "lines DESC, reason",
            {"file": "First file"},
        ),
        TableQuery(
            "problems_by_kind",
            "Problems by kind",
            "kind problems events",
            "SELECT kind, count(*) AS problems, coalesce(sum(events), 0) AS events FROM problems GROUP BY ALL",
            "events DESC, problems DESC, kind",
            on_page=False,
        ),
    ),
    note="These are problems of the whole log, at any time: a missing event has no time.",
)

"""What is wrong with the log: what the ingest found, and the lines that are no events.

Rule: a line that is no event may hold anything, so the page tells why and where, and not what.
"""

from ..page.charts import Series, bars
from ..page.drawing import Plot
from ..page.sheet import Column, Kind, Sheet, count, plural
from ..schemas import Table
from .facts import COUNT, LEAST, Fact, Figure, Wanted
from .question import Question, listed, named, times
from .selection import Selection
from .tops import ascending, descending, top

_KIND = Column("kind", "Kind", Kind.NAME)
_EVENTS = Column("events", "Events", Kind.COUNT, sums=True)

_MEANINGS = {
    "gap": ("missing event", "missing events", True),
    "dropped": ("dropped event", "dropped events", True),
    "duplicate": ("event that was there more than once", "events that were there more than once", True),
    "conflict": ("place with two different events", "places with two different events", False),
    "no-snapshot": ("epoch that does not begin with a snapshot", "epochs that do not begin with a snapshot", False),
    "torn": ("file without a last line end", "files without a last line end", False),
}
"""Of kinds: for one, for several, and whether events are counted or problems."""


QUARANTINED = Wanted(
    Table.QUARANTINE,
    "FROM source",
    (Fact("quarantine", ("reason", "file"), {"lines": COUNT, "line": Figure("min(line)", LEAST)}),),
)


def faults(selection: Selection) -> Question:
    facts, found = selection.facts, selection.rows(Table.PROBLEMS)
    facts.execute(f"UPDATE {found} SET events = 0 WHERE events IS NULL")
    by_kind = top(
        "problems_by_kind",
        "Problems by kind",
        (_KIND, Column("problems", "Problems", Kind.COUNT, sums=True), _EVENTS),
        facts,
        "SELECT kind, count(*) AS problems, sum(events) AS events FROM problems GROUP BY ALL",
        order=f"{descending('events', 'problems')}, {ascending('kind')}",
    )
    places = ("cluster_id", "epoch", "first_sequence", "last_sequence")
    problems = top(
        "problems",
        "Problems",
        (
            *(_KIND, Column("text", "What is wrong", Kind.TEXT), Column("cluster_id", "Cluster", Kind.NAME)),
            Column("epoch", "Epoch", Kind.NUMBER),
            *(Column("first_sequence", "From", Kind.NUMBER), Column("last_sequence", "To", Kind.NUMBER)),
            *(_EVENTS, Column("file", "File", Kind.NAME)),
        ),
        facts,
        "FROM problems",
        order=ascending(*places, "kind", "file", "text"),
    )
    quarantine = top(
        "quarantine_by_reason",
        "Lines that are no events",
        (
            *(Column("reason", "Reason", Kind.TEXT), Column("lines", "Lines", Kind.COUNT, sums=True)),
            Column("files", "Files", Kind.COUNT),
            *(Column("file", "First file", Kind.NAME), Column("line", "Line", Kind.NUMBER)),
        ),
        facts,
        "SELECT reason, sum(lines) AS lines, count(*) AS files, min(file) AS file, arg_min(line, file) AS line FROM quarantine GROUP BY ALL",
        order=f"{descending('lines')}, {ascending('reason')}",
    )
    return Question(
        "faults",
        "What is wrong with the log?",
        _answer(by_kind, quarantine),
        (problems, quarantine),
        lambda: _drawn(by_kind, quarantine),
        note="Of the whole log, whatever the stretch of time: an event that is missing has none.",
        more=(by_kind,),
    )


def _answer(by_kind: Sheet, quarantine: Sheet) -> str:
    lines = quarantine.totals["lines"]
    if not by_kind.rows and not lines:
        return "Nothing: each line is an event, and no event is missing."
    parts = [_told(str(kind), int(problems or 0), int(events or 0)) for kind, problems, events in by_kind.rows]
    if lines:
        parts.append(plural(lines, "line that is no event", "lines that are no events"))
    return f"The ingest found {listed(parts)}."


def _told(kind: str, problems: int, events: int) -> str:
    if kind not in _MEANINGS:
        return f"{named(kind)} {times(problems)}"
    one, many, counts_events = _MEANINGS[kind]
    return plural(events if counts_events else problems, one, many)


def _drawn(by_kind: Sheet, quarantine: Sheet) -> Plot | None:
    values = [(str(kind), int(events or 0)) for kind, _, events in by_kind.rows]
    if lines := quarantine.totals["lines"]:
        values.append(("lines that are no events", lines))
    if not values:
        return None
    labels, numbers = [label for label, _ in values], [number for _, number in values]
    return bars("faults", labels, [Series("events", "s5", numbers)], [count(number) for number in numbers])

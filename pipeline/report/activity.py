"""How much is asked for, when, by whom, about what and with which client; and which nodes pass it
on.

Rule: what has few values is counted together, for all questions; only time, and the topics, of
which there may be as many as events, are counted apart.
"""

from collections.abc import Sequence

from ..page.charts import Panel, Series, bars_over_time, short_count
from ..page.drawing import Plot
from ..page.sheet import Column, Kind, Sheet, Value, count, moment, plural, share
from ..periods import DAY, Axis
from .facts import COUNT, MOST, Fact, Figure, rows
from .question import NOTHING_ASKED, Part, Question, label_of, named, ranking, times
from .selection import Selection
from .tops import ascending, descending, different, top

OUTCOMES = (
    Column("asked", "Asked for", Kind.COUNT, sums=True),
    Column("applied", "Carried out", Kind.COUNT, sums=True),
    Column("validated", "Only validated", Kind.COUNT, sums=True),
    Column("refused", "Refused", Kind.COUNT, sums=True),
    Column("errors", "In error", Kind.COUNT, sums=True),
    Column("unknown", "In doubt", Kind.COUNT, sums=True),
)
"""What became of changes; `asked` is their sum."""
PARTS = (
    Part("applied", "carried out", "s0"),
    Part("validated", "only validated", "s4"),
    Part("refused", "refused by a policy", "s5"),
    Part("errors", "in error", "s7"),
    Part("unknown", "in doubt", "s3"),
)
_MEANINGS = {
    "applied": ("applied",),
    "validated": ("validated",),
    "refused": ("refused", "broken"),
    "errors": ("error",),
    "unknown": ("unknown",),
}
_LAST = Column("last", "Last", Kind.TIME)


CHANGES = Fact(
    "changes",
    ("cluster_id", "principal", "api", "operation", "software", "received_node", "way", "outcome"),
    {"changes": COUNT, "last": Figure("max(time)", MOST)},
)
"""The changes, counted by all that has few values."""
BY_TIME = Fact("changes_by_time", ("step", "outcome"), {"changes": COUNT})
TOPICS = Fact(
    "topics",
    ("cluster_id", "name AS topic", "outcome"),
    {"changes": COUNT, "last": Figure("max(time)", MOST)},
    "rows WHERE resource = 'topic' AND name != ''",
)


def _outcomes() -> str:
    """Return the columns above as aggregates of rows, each of which stands for so many changes."""
    counted = (
        f"coalesce(sum(changes) FILTER (outcome IN ({', '.join(map(repr, meant))})), 0) AS {name}"
        for name, meant in _MEANINGS.items()
    )
    return ", ".join(("sum(changes) AS asked", *counted))


class Activity:
    """The sheets and questions about the changes that were counted."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection

    def _top(
        self, name: str, title: str, keys: Sequence[Column], *others: tuple[Column, str], fact: str = "changes"
    ) -> Sheet:
        names = [column.name for column in keys]
        aggregates = [*(f"{value} AS {column.name}" for column, value in others), "max(last) AS last"]
        return top(
            name,
            title,
            (*keys, *OUTCOMES, *(column for column, _ in others), _LAST),
            self._selection.facts,
            f"SELECT {', '.join(names)}, {_outcomes()}, {', '.join(aggregates)} FROM {fact} GROUP BY ALL",
            order=f"{descending('asked')}, {ascending(*names)}",
        )

    # ------------------------------------------------------------------ questions

    def over_time(self) -> Question:
        sheet = self._by_time()
        by_api = self._top(
            "activity_by_api",
            "Changes by API",
            (Column("api", "API", Kind.NAME), Column("operation", "Operation", Kind.NAME)),
        )
        axis = self._selection.axis
        return Question(
            "activity",
            "How much is asked for, and when?",
            self._over_time_answer(sheet, by_api),
            (by_api,),
            lambda: _drawn_over_time(sheet, axis),
            note="A change is one element of a request: one topic, or one resource's configs.",
            more=(sheet,),
        )

    def _by_time(self) -> Sheet:
        steps = self._selection.axis
        found = rows(self._selection.facts, f"SELECT step, {_outcomes()} FROM changes_by_time GROUP BY ALL")
        by_step = {step: values for step, *values in found}
        nothing = [0] * len(OUTCOMES)
        values = [(start, *by_step.get(step, nothing)) for step, start in enumerate(steps.starts[:-1])]
        title = f"Changes over time, by {steps.step.name}"
        return Sheet("activity_over_time", title, (Column("time", "From", Kind.TIME), *OUTCOMES), values)

    def _over_time_answer(self, sheet: Sheet, by_api: Sheet) -> str:
        asked, applied = (by_api.totals[name] for name in ("asked", "applied"))
        if not asked:
            return NOTHING_ASKED
        api, _, most = by_api.rows[0][:3]
        text = f"{plural(asked, 'change')} were asked for" if asked > 1 else "1 change was asked for"
        text += (
            f", and {share(applied / asked)} of them carried out. {share(int(most or 0) / asked)} came by {named(api)}."
        )
        busiest = max(sheet.rows, key=lambda row: int(row[1] or 0))
        if len(sheet.rows) > 1:
            step = self._selection.axis.step
            began = moment(int(busiest[0] or 0))[: 10 if step.months or step.microseconds >= DAY else 19]
            text += f" The busiest {step.name} began on {began}, with {count(int(busiest[1] or 0))}."
        return text

    def by_principal(self) -> Question:
        sheet = self._top(
            "activity_by_principal", "Changes by principal", (Column("principal", "Principal", Kind.PRINCIPAL),)
        )
        return Question(
            "principals",
            "Who asks for changes?",
            _most(sheet, "asked", "that {} principals asked for"),
            (sheet,),
            lambda: ranking("principals", sheet, _first, PARTS),
        )

    def by_client(self) -> Question:
        sheet = self._top(
            "activity_by_client",
            "Changes by client",
            (Column("software", "Client and version", Kind.NAME),),
            (Column("principals", "Principals", Kind.COUNT), different("principal")),
        )
        unknown = sum(int(row[1] or 0) for row in sheet.rows if not row[0])
        return Question(
            "clients",
            "Which clients ask?",
            _clients_answer(sheet, unknown),
            (sheet,),
            lambda: ranking("clients", sheet, lambda row: str(row[0] or "(did not say)"), PARTS),
            note="Clients say their name and version since Kafka 2.4 (KIP-511).",
        )

    def forwarding(self) -> Question:
        sheet = top(
            "forwarding_by_node",
            "Changes by the node that the client was connected to",
            (
                *(Column("cluster_id", "Cluster", Kind.NAME), Column("received_node", "Node", Kind.NUMBER)),
                Column("changes", "Changes", Kind.COUNT, sums=True),
                Column("local", "Decided there", Kind.COUNT, sums=True),
                Column("forwarded", "Forwarded", Kind.COUNT, sums=True),
                Column("share", "Share", Kind.SHARE),
            ),
            self._selection.facts,
            "SELECT *, forwarded / changes AS share FROM (SELECT cluster_id, received_node, sum(changes) AS changes, "
            "coalesce(sum(changes) FILTER (way = 'local'), 0) AS local, coalesce(sum(changes) FILTER (way = 'forwarded'), 0) AS forwarded "
            "FROM changes WHERE way != 'unknown' GROUP BY ALL)",
            order=f"{descending('changes')}, {ascending('cluster_id', 'received_node')}",
        )
        several = len(self._selection.spreads) > 1
        parts = (
            Part("local", "decided where it arrived", "s0"),
            Part("forwarded", "forwarded to the controller", "s1"),
        )
        return Question(
            "forwarding",
            "How much is forwarded, and by which node?",
            _forwarding_answer(sheet, several=several),
            (sheet,),
            lambda: ranking("forwarding", sheet, lambda row: _node(row, several=several), parts),
            note="Every node takes every change, and forwards it to the controller unless it is the controller itself.",
        )

    def by_topic(self) -> Question:
        sheet = self._top(
            "activity_by_topic",
            "Changes by topic",
            (Column("cluster_id", "Cluster", Kind.NAME), Column("topic", "Topic", Kind.NAME)),
            fact="topics",
        )
        several = len(self._selection.spreads) > 1
        return Question(
            "topics",
            "Which topics are changed most?",
            _most(sheet, "was asked about", "of {} topics", name=1, several=several),
            (sheet,),
            lambda: ranking("topics", sheet, lambda row: label_of(row[1]) + _of_cluster(row, several=several), PARTS),
        )


def _drawn_over_time(sheet: Sheet, axis: Axis) -> Plot | None:
    if not any(sheet.totals.values()):
        return None
    series = [Series(part.label, part.colour, sheet.values(part.column)) for part in PARTS if sheet.totals[part.column]]
    return bars_over_time("activity", axis.starts, Panel(f"Changes, by {axis.step.name}", series, short_count))


def _first(row: tuple[Value, ...]) -> str:
    return label_of(row[0])


def _most(sheet: Sheet, did: str, of: str, *, name: int = 0, several: bool = False) -> str:
    """Say who did most; of several clusters, the cluster's name stands first."""
    if not sheet.rows:
        return NOTHING_ASKED
    first, all_asked = sheet.rows[0], sheet.totals["asked"]
    asked, who = int(first[name + 1] or 0), named(first[name]) + _of_cluster(first, several=several)
    if sheet.all_rows == 1:
        return f"{who} alone {did}: {times(asked)}."
    text = f"{who} {did} most often: {times(asked)}, {share(asked / all_asked)} of the changes {of.format(count(sheet.all_rows))}."
    ten = sum(int(row[name + 1] or 0) for row in sheet.rows[:10])
    return text + (f" The first ten make up {share(ten / all_asked)}." if sheet.all_rows > 10 else "")


def _clients_answer(sheet: Sheet, unknown: int) -> str:
    asked = sheet.totals["asked"]
    known = [row for row in sheet.rows if row[0]]
    if not asked:
        return NOTHING_ASKED
    if not known:
        return "No client said which one it is."
    text = f"Most often {named(known[0][0])}, {times(int(known[0][1] or 0))}."
    return text + (f" Of {share(unknown / asked)} of the changes it is not known." if unknown else "")


def _forwarding_answer(sheet: Sheet, *, several: bool) -> str:
    changes, forwarded = sheet.totals["changes"], sheet.totals["forwarded"]
    if not changes:
        return NOTHING_ASKED
    if not forwarded:
        return "Nothing: all changes arrived at the controller itself."
    most = max(sheet.rows, key=lambda row: int(row[4] or 0))
    return (
        f"{count(forwarded)} of {plural(changes, 'change')} ({share(forwarded / changes)}) reached the controller by way of another node. "
        f"{_node(most, several=several)} forwarded most, {count(int(most[4] or 0))}."
    )


def _node(row: tuple[Value, ...], *, several: bool) -> str:
    return f"Node {row[1]}{_of_cluster(row, several=several)}"


def _of_cluster(row: tuple[Value, ...], *, several: bool) -> str:
    """Name the row's cluster, which goes without saying unless there are several."""
    return f" of {named(row[0])}" if several else ""

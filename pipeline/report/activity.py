"""Questions about requested changes: how many, when, by whom, of which topic and with which client;
and which nodes forward them. Columns with few values share one GROUP BY; time and topic names have
their own.
"""

from collections.abc import Mapping
from typing import Any

from ..page.charts import Panel, bars_over_time
from ..page.drawing import Plot, Series
from ..page.tables import count, moment, plural, share
from .aggregates import COUNT, Aggregate
from .question import NOTHING_ASKED, BarSegment, Report, ReportQuestion, label_of, named, ranking, times
from .table_queries import TableQuery, different

PARTS = (
    BarSegment("applied", "carried out", "s0"),
    BarSegment("validated", "only validated", "s4"),
    BarSegment("refused", "refused by a policy", "s5"),
    BarSegment("errors", "in error", "s7"),
    BarSegment("unknown", "in doubt", "s3"),
)
CHANGES = Aggregate(
    "changes",
    ("cluster_id", "principal", "api", "operation", "software", "received_node", "way", "outcome"),
    {"changes": COUNT, "last": "max(time)"},
)
"""The changes, counted by all that has few values."""
BY_TIME = Aggregate("changes_by_time", ("step", "outcome"), {"changes": COUNT})
TOPICS = Aggregate(
    "topics",
    ("cluster_id", "name AS topic", "outcome"),
    {"changes": COUNT, "last": "max(time)"},
    "rows WHERE resource = 'topic' AND name != ''",
)


def _sum(condition: str) -> str:
    return f"coalesce(sum(changes) FILTER ({condition}), 0)"


_OUTCOMES = {
    "asked": "true",
    "applied": "outcome = 'applied'",
    "validated": "outcome = 'validated'",
    "refused": "outcome IN ('refused', 'broken')",
    "errors": "outcome = 'error'",
    "unknown": "outcome = 'unknown'",
}
"""The condition that the changes of each column fulfil."""
_COLUMNS = " ".join(_OUTCOMES)
_SUMS = ", ".join(f"{_sum(condition)} AS {name}" for name, condition in _OUTCOMES.items())


def _by(keys: str, name: str, title: str, *, aggregate: str = "changes", principals: bool = False) -> TableQuery:
    """Ask for the outcomes by some keys, and for how many principals there were."""
    listed = ", ".join(keys.split())
    people = f"{different('principal')} AS principals, " if principals else ""
    return TableQuery(
        name,
        title,
        f"{keys} {_COLUMNS} {'principals ' if principals else ''}last",
        f"SELECT {listed}, {_SUMS}, {people}max(last) AS last FROM {aggregate} GROUP BY ALL",
        f"asked DESC, {listed}",
    )


def _over_time_answer(report: Report) -> str:
    by_api, steps, step = report.table("activity_by_api"), report.table("activity_over_time"), report.axis.step
    asked, applied = by_api.totals["asked"], by_api.totals["applied"]
    if not asked:
        return NOTHING_ASKED
    api, _, most = by_api.rows[0][:3]
    text = (
        f"{plural(asked, 'change was', 'changes were')} requested, and {share(applied / asked)} of them carried out. "
    )
    text += f"{share(most / asked)} came by {named(api)}."
    if len(steps.rows) > 1:
        time, number = max(steps.rows, key=lambda row: int(row[1]))[:2]
        began = moment(time)[: 10 if report.axis.has_days else 19]
        text += f" The busiest {step} began on {began}, with {count(number)}."
    return text


def _most(report: Report, table: str, name: str, did: str, of: str) -> str:
    """Say who did most; of several clusters, the cluster's name stands first."""
    found = report.table(table)
    if not found.rows:
        return NOTHING_ASKED
    first, every = found.records[0], found.totals["asked"]
    who = named(first[name]) + (report.of_cluster(first) if "cluster_id" in first else "")
    if found.all_rows == 1:
        return f"{who} alone {did}: {times(first['asked'])}."
    text = f"{who} {did} most often: {times(first['asked'])}, {share(first['asked'] / every)} of the changes "
    text += f"{of.format(count(found.all_rows))}."
    ten = sum(found.values("asked")[:10])
    return text + (f" The first ten make up {share(ten / every)}." if found.all_rows > 10 else "")


def _clients_answer(report: Report) -> str:
    table = report.table("activity_by_client")
    known = [row for row in table.records if row["software"]]
    if not table.rows:
        return NOTHING_ASKED
    if not known:
        return "No client sent its name."
    unknown = sum(row["asked"] for row in table.records if not row["software"])
    text = f"Most often {named(known[0]['software'])}, {times(known[0]['asked'])}."
    return text + (
        f" Of {share(unknown / table.totals['asked'])} of the changes the client is unknown." if unknown else ""
    )


def _forwarding_answer(report: Report) -> str:
    table = report.table("forwarding_by_node")
    changes, forwarded = table.totals["changes"], table.totals["forwarded"]
    if not changes:
        return NOTHING_ASKED
    if not forwarded:
        return "Nothing: all changes arrived at the controller itself."
    most = max(table.records, key=lambda row: int(row["forwarded"]))
    return (
        f"{count(forwarded)} of {plural(changes, 'change')} ({share(forwarded / changes)}) reached the controller by way of another node. "
        f"{_node(report, most)} forwarded most, {count(most['forwarded'])}."
    )


def _node(report: Report, row: Mapping[str, Any]) -> str:
    return f"Node {row['received_node']}{report.of_cluster(row)}"


def _drawn_over_time(report: Report) -> Plot | None:
    table, axis = report.table("activity_over_time"), report.axis
    series = [Series(part.label, part.colour, table.values(part.column)) for part in PARTS if table.totals[part.column]]
    panel = Panel(f"Changes, by {axis.step}", series)
    return bars_over_time("activity", axis.starts, panel) if series else None


OVER_TIME = ReportQuestion(
    "activity",
    "How many changes are requested, and when?",
    _over_time_answer,
    _drawn_over_time,
    (
        _by("api operation", "activity_by_api", "Changes by API"),
        TableQuery(
            "activity_over_time",
            "Changes over time, by {step}",
            f"time {_COLUMNS}",
            f"SELECT time, {_SUMS} FROM steps LEFT JOIN changes_by_time USING (step) GROUP BY ALL",
            "time",
            on_page=False,
        ),
    ),
    note="A change is one element of a request: one topic, or one resource's configs.",
)
BY_PRINCIPAL = ReportQuestion(
    "principals",
    "Who requests changes?",
    lambda report: _most(
        report, "activity_by_principal", "principal", "requested changes", "that {} principals requested"
    ),
    ranking("principals", "activity_by_principal", lambda _, row: label_of(row["principal"]), *PARTS),
    (_by("principal", "activity_by_principal", "Changes by principal"),),
)
BY_TOPIC = ReportQuestion(
    "topics",
    "Which topics are changed most?",
    lambda report: _most(report, "activity_by_topic", "topic", "was named in requests", "of {} topics"),
    ranking("topics", "activity_by_topic", lambda report, row: row["topic"] + report.of_cluster(row), *PARTS),
    (_by("cluster_id topic", "activity_by_topic", "Changes by topic", aggregate="topics"),),
)
FORWARDING = ReportQuestion(
    "forwarding",
    "How much is forwarded, and by which node?",
    _forwarding_answer,
    ranking(
        "forwarding",
        "forwarding_by_node",
        _node,
        BarSegment("local", "decided where it arrived", "s0"),
        BarSegment("forwarded", "forwarded to the controller", "s1"),
    ),
    (
        TableQuery(
            "forwarding_by_node",
            "Changes by the node that the client was connected to",
            "cluster_id received_node changes local forwarded share",
            "SELECT *, forwarded / changes AS share FROM (SELECT cluster_id, received_node, sum(changes) AS changes, "
            f"""{_sum("way = 'local'")} AS local, {_sum("way = 'forwarded'")} AS forwarded """
            "FROM changes WHERE way != 'unknown' GROUP BY ALL)",
            "changes DESC, cluster_id, received_node",
        ),
    ),
    note="Every node takes every change, and forwards it to the controller unless it is the controller itself.",
)
BY_CLIENT = ReportQuestion(
    "clients",
    "Which clients send requests?",
    _clients_answer,
    ranking("clients", "activity_by_client", lambda _, row: row["software"] or "(unknown)", *PARTS),
    (_by("software", "activity_by_client", "Changes by client", principals=True),),
    note="Clients send their name and version since Kafka 2.4 (KIP-511).",
)

"""The question about changes that would be refused: a rule or a policy objected, and the objection
was not enforced. The SQL applies the definition of `audit/outcomes.py`. Rules that never objected
are listed with zero.
"""

from collections.abc import Sequence

import pyarrow as pa

from ..page.tables import count, plural, share
from .aggregates import COUNT, LAST_EVENT, Aggregate, AggregateDatabase, last_event
from .question import NOTHING_ASKED, BarSegment, Report, ReportQuestion, label_of, named, ranking, times
from .table_queries import TableQuery, different

OBJECTION = """
    CASE WHEN error_code != 0 THEN NULL
    WHEN decision IS NULL THEN
        CASE WHEN enforced = false AND unjudged IS NOT NULL THEN {'rule': '', 'text': unjudged} END
    WHEN enforced = false AND decision = 'violated' THEN {'rule': blamed, 'text': policy_message}
    WHEN enforced = false AND decision = 'broken' THEN
        {'rule': blamed, 'text': 'The policy failed: ' || string_split(rtrim(policy_message, chr(10) || ' '), chr(10))[-1]}
    ELSE [{'rule': f.rule, 'text': f.message} FOR f IN findings IF f.action != 'deny'][1] END
"""
"""The query for the rule that objects to a change that was not refused, and what it says; without a
name where nothing could judge the change.
"""
OBJECTIONS = Aggregate(
    "objections",
    ("principal", "objection.rule AS rule", "cluster_id", "resource", "name"),
    {"changes": COUNT, "applied": "count_if(outcome = 'applied')", "event": last_event("objection.text")},
    f"(SELECT *, {OBJECTION} AS objection FROM rows) WHERE objection IS NOT NULL",
)
IN_FORCE = "in_force"
"""The table of the names of the rules that are in force."""

_COUNTED = f"sum(changes) AS would_be_refused, sum(applied) AS applied, {LAST_EVENT}"
_COLUMNS = "would_be_refused applied"


def note_rules(aggregates: AggregateDatabase, names: Sequence[str]) -> None:
    aggregates.from_arrow(pa.table({"rule": pa.array(names, pa.string())})).create(IN_FORCE)


def _answer(report: Report) -> str:
    by_rule, by_principal = report.table("would_be_refused_by_rule"), report.table("would_be_refused_by_principal")
    asked = report.clusters.totals["changes"]
    if not asked:
        return NOTHING_ASKED
    if not by_rule.rows:
        return "Nobody: no rule and no policy objected to a change that passed."
    number, (rule, most) = by_rule.totals["would_be_refused"], by_rule.rows[0][:2]
    text = f"{count(number)} of {plural(asked, 'change')} ({share(number / asked)}) passed although a rule or a policy objected. "
    text += f"Most objections are by “{named(rule)}” ({count(most)}). " if by_rule.all_rows > 1 else ""
    who, often = by_principal.rows[0][:2]
    if by_principal.all_rows == 1:
        return f"{text}Only {named(who)} would be refused."
    return (
        text
        + f"Of {plural(by_principal.all_rows, 'principal')}, {named(who)} would be refused most often, {times(often)}."
    )


def _by(keys: str, name: str, title: str, *, more: str = "", where: str = "", on_page: bool = True) -> TableQuery:
    """Ask for the objections by some keys, and how many different values the columns of `more`
    have.
    """
    listed = ", ".join(keys.split())
    others = "".join(f", {different(column)} AS {counted}" for column, counted in _pairs(more))
    return TableQuery(
        name,
        title,
        f"{keys} {_COLUMNS} {' '.join(counted for _, counted in _pairs(more))} last message",
        f"SELECT {listed}, {_COUNTED}{others} FROM objections{where} GROUP BY ALL",
        f"would_be_refused DESC, {listed}",
        on_page=on_page,
    )


def _pairs(text: str) -> list[tuple[str, str]]:
    """Read pairs of the form `column counted`, separated by commas."""
    return [(column, counted) for column, counted in (each.split() for each in text.split(",") if each)]


WOULD_BE_REFUSED = ReportQuestion(
    "would_be_refused",
    "Who would be refused if all rules were enforced?",
    _answer,
    ranking(
        "would_be_refused",
        "would_be_refused_by_principal",
        lambda _, row: label_of(row["principal"]),
        BarSegment("would_be_refused", "would be refused", "s3"),
    ),
    (
        _by(
            "principal rule",
            "would_be_refused_by_principal_and_rule",
            "Changes that would be refused, by principal and rule",
        ),
        _by(
            "rule",
            "would_be_refused_by_rule",
            "Changes that would be refused, by rule",
            more="principal principals,name names",
        ),
        _by(
            "cluster_id name",
            "would_be_refused_by_topic",
            "Changes of topics that would be refused",
            more="rule rules",
            where=" WHERE resource = 'topic' AND name != ''",
        ),
        _by(
            "principal",
            "would_be_refused_by_principal",
            "Changes that would be refused, by principal",
            more="rule rules,name names",
            on_page=False,
        ),
        TableQuery(
            "rules",
            "All rules",
            "rule refused would_be_refused last",
            "SELECT rule, sum(refused) AS refused, sum(would) AS would_be_refused, max(last) AS last FROM ("
            "SELECT rule, changes AS refused, 0 AS would, event.time AS last FROM refused UNION ALL "
            "SELECT rule, 0, changes, event.time FROM objections UNION ALL "
            f"SELECT rule, 0, 0, NULL FROM {IN_FORCE}) GROUP BY ALL",
            "refused DESC, would_be_refused DESC, rule",
        ),
    ),
    note="A change would be refused if it passed although a rule or a policy objected: a gateway only observed or its policy had failed, "
    "or the rule has the action warn or audit. The last table has the rules that never fired, too, if --policy names what is in force.",
)

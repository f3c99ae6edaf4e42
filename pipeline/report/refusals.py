"""Questions about refusals by principal and by rule with their reasons, and about findings that
refused nothing. A refusal is a policy's verdict or its failure; errors without a policy have a
table of their own.
"""

from ..page.charts import bars
from ..page.drawing import REST, Plot, Series, series_colour
from ..page.tables import count, plural, share
from .aggregates import COUNT, LAST_EVENT, Aggregate, last_event
from .question import BARS, NOTHING_ASKED, BarSegment, Report, ReportQuestion, label_of, named, ranking, rest_of, times
from .table_queries import TableQuery, different

REFUSED = Aggregate(
    "refused",
    ("principal", "blamed AS rule", "name"),
    {"changes": COUNT, "broken": "count_if(outcome = 'broken')", "event": last_event("policy_message")},
    "rows WHERE outcome IN ('refused', 'broken')",
)
ERRORS = Aggregate(
    "errors",
    ("error", "operation", "principal"),
    {"changes": COUNT, "event": last_event("message")},
    "rows WHERE outcome = 'error'",
)
FINDINGS = Aggregate(
    "findings",
    ("finding.rule AS rule", "finding.action AS action", "principal", "name"),
    {"findings": COUNT, "applied": "count_if(outcome = 'applied')", "event": last_event("finding.message")},
    "(SELECT *, unnest(findings) AS finding FROM rows) WHERE finding.action != 'deny'",
)

_REFUSED = f"sum(changes) AS refused, {LAST_EVENT}"
_NAMES = f"{different('name')} AS names"
_PRINCIPALS = f"{different('principal')} AS principals"


def _refusals_answer(report: Report) -> str:
    by_principal, by_rule = report.table("refusals_by_principal"), report.table("refusals_by_rule")
    decided, refused, failed = report.clusters.totals["changes"], by_rule.totals["refused"], by_rule.totals["failed"]
    if not decided:
        return NOTHING_ASKED
    if not refused:
        return f"Nobody: no policy refused any of {plural(decided, 'change')} that clients requested."
    (rule, most), (who, often) = by_rule.rows[0][:2], by_principal.rows[0][:2]
    text = f"Policies refused {count(refused)} of {plural(decided, 'change')} ({share(refused / decided)}). "
    text += (
        f"All refusals are by “{named(rule)}”. "
        if by_rule.all_rows == 1
        else f"Most are by “{named(rule)}” ({count(most)}). "
    )
    text += (
        f"{named(who)} is the only one who was refused."
        if by_principal.all_rows == 1
        else f"{named(who)} was refused most often, {times(often)}, of {plural(by_principal.all_rows, 'principal')}."
    )
    return text + (f" {times(failed).capitalize()} the policy failed instead." if failed else "")


def _refusals_drawn(report: Report) -> Plot | None:
    people = report.table("refusals_by_principal").cut(BARS)
    rules = report.table("refusals_by_rule").cut(REST)
    if not rules.rows:
        return None
    who, totals = people.values("principal"), people.values("refused")
    counts = {row[:2]: row[2] for row in report.table("refusals_by_principal_and_rule").rows}
    series = [
        Series(label_of(rule), series_colour(index), [counts.get((name, rule), 0) for name in who])
        for index, rule in enumerate(rules.values("rule"))
    ]
    if rules.others:
        drawn = [sum(held) for held in zip(*(part.values for part in series), strict=True)]
        left = [total - part for total, part in zip(totals, drawn, strict=True)]
        series.append(Series(plural(rules.others, "other rule"), series_colour(REST), left))
    labels, said = list(map(label_of, who)), list(map(count, totals))
    return bars("refusals", labels, series, said, rest_of(people, people.of_others["refused"]))


def _warnings_answer(report: Report) -> str:
    table = report.table("warnings_by_rule")
    if not table.rows:
        return "Nothing: no rule had a finding that refused nothing."
    findings, applied = table.totals["findings"], table.totals["applied"]
    rule, action, most = table.rows[0][:3]
    who = f"“{named(rule)}” ({named(action)})"
    if table.all_rows == 1:
        text = f"Only {who} had findings that refused nothing: {times(findings)}."
    else:
        text = f"{plural(table.all_rows, 'rule')} had {plural(findings, 'finding')} that refused nothing. "
        text += f"Most are by {who}: {count(most)}."
    return f"{text} {share(applied / findings)} of these changes were carried out."


REFUSALS = ReportQuestion(
    "refusals",
    "Who is refused, by which rule, and why?",
    _refusals_answer,
    _refusals_drawn,
    (
        TableQuery(
            "refusals_by_principal_and_rule",
            "Refusals by principal and rule",
            "principal rule refused last message",
            f"SELECT principal, rule, {_REFUSED}, sum(sum(changes)) OVER (PARTITION BY principal) AS of_principal "
            "FROM refused GROUP BY principal, rule",
            "of_principal DESC, principal, refused DESC, rule",
        ),
        TableQuery(
            "refusals_by_rule",
            "Refusals by rule",
            "rule refused failed principals names last message",
            f"SELECT rule, {_REFUSED}, sum(broken) AS failed, {_PRINCIPALS}, {_NAMES} FROM refused GROUP BY ALL",
            "refused DESC, rule",
        ),
        TableQuery(
            "errors",
            "Errors without a policy",
            "error operation changes principals last message",
            f"SELECT error, operation, sum(changes) AS changes, count(*) AS principals, {LAST_EVENT} FROM errors GROUP BY ALL",
            "changes DESC, error, operation",
        ),
        TableQuery(
            "refusals_by_principal",
            "Refusals by principal",
            "principal refused rules names last message",
            f"SELECT principal, {_REFUSED}, {different('rule')} AS rules, {_NAMES} FROM refused GROUP BY ALL",
            "refused DESC, principal",
            on_page=False,
        ),
    ),
    note="A policy refused these changes, or failed. Changes that were refused without a policy, because they were invalid or not "
    "authorized, are in the last table.",
)
WARNINGS = ReportQuestion(
    "warnings",
    "What do rules warn of?",
    _warnings_answer,
    ranking(
        "warnings",
        "warnings_by_rule",
        lambda _, row: f"{row['rule']} ({row['action']})",
        BarSegment("applied", "carried out", "s0"),
        BarSegment("findings", "not carried out", "s7", less="applied"),
    ),
    (
        TableQuery(
            "warnings_by_rule",
            "Findings by rule",
            "rule action findings applied principals names last message",
            f"SELECT rule, action, sum(findings) AS findings, sum(applied) AS applied, {_PRINCIPALS}, {_NAMES}, {LAST_EVENT} "
            "FROM findings GROUP BY ALL",
            "findings DESC, rule, action",
            {"rule": "Rule", "message": "The latest message"},
        ),
    ),
    note="Findings of rules with the action warn or audit, which refuse nothing; also about changes that were refused by another rule or in error.",
)

"""Who is refused, by which rule, and why; and what rules find without refusing.

Rule: a refusal is a policy's: it said no, or it failed. What was refused without one is told apart.
"""

from ..page.charts import Series, bars
from ..page.drawing import REST, Plot, series_colour
from ..page.sheet import Column, Kind, Sheet, count, plural, share
from .facts import COUNT, Fact, Facts, Figure, last_event
from .question import BARS, NOTHING_ASKED, Part, Question, label_of, named, ranking, rest_of, times
from .selection import Selection
from .tops import LAST, ascending, descending, different, top

_PRINCIPAL = Column("principal", "Principal", Kind.PRINCIPAL)
_RULE = Column("rule", "Rule, or policy", Kind.NAME)
_REFUSED = Column("refused", "Refused", Kind.COUNT, sums=True)
_PRINCIPALS = Column("principals", "Principals", Kind.COUNT)
_NAMES = Column("names", "Topics", Kind.COUNT)
_LAST = Column("last", "Last", Kind.TIME)
_WHY = Column("message", "Why, the last time", Kind.TEXT)


REFUSED = Fact(
    "refused",
    ("principal", "blamed AS rule", "name"),
    {
        "changes": COUNT,
        "broken": Figure("count_if(outcome = 'broken')"),
        "event": last_event("policy_message"),
    },
    "rows WHERE outcome IN ('refused', 'broken')",
)
ERRORS = Fact(
    "errors",
    ("error", "operation", "principal"),
    {"changes": COUNT, "event": last_event("message")},
    "rows WHERE outcome = 'error'",
)
FINDINGS = Fact(
    "findings",
    ("finding.rule AS rule", "finding.action AS action", "principal", "name"),
    {"findings": COUNT, "applied": Figure("count_if(outcome = 'applied')"), "event": last_event("finding.message")},
    "(SELECT *, unnest(findings) AS finding FROM rows) WHERE finding.action != 'deny'",
)


def refusals(selection: Selection) -> Question:
    facts = selection.facts
    by_principal, by_rule, pairs = _by_principal(facts), _by_rule(facts), _by_principal_and_rule(facts)
    return Question(
        "refusals",
        "Who is refused, by which rule, and why?",
        _refusals_answer(selection.decided, by_principal, by_rule),
        (pairs, by_rule, _errors(facts)),
        lambda: _refusals_drawn(by_principal, by_rule, pairs),
        note="A refusal is a policy's: it said no, or it failed. What was refused without asking one, because it was wrong in itself or not "
        "authorized, is in the last table.",
        more=(by_principal,),
    )


def _by_principal(facts: Facts) -> Sheet:
    return top(
        "refusals_by_principal",
        "Refusals by principal",
        (_PRINCIPAL, _REFUSED, Column("rules", "Rules", Kind.COUNT), _NAMES, _LAST, _WHY),
        facts,
        f"SELECT principal, {_SUMS}, {different('rule')} AS rules, {different('name')} AS names FROM refused GROUP BY ALL",
        order=f"{descending('refused')}, {ascending('principal')}",
    )


def _by_rule(facts: Facts) -> Sheet:
    return top(
        "refusals_by_rule",
        "Refusals by rule",
        (_RULE, _REFUSED, Column("failed", "It failed", Kind.COUNT, sums=True), _PRINCIPALS, _NAMES, _LAST, _WHY),
        facts,
        f"SELECT rule, {_SUMS}, sum(broken) AS failed, {different('principal')} AS principals, {different('name')} AS names "
        "FROM refused GROUP BY ALL",
        order=f"{descending('refused')}, {ascending('rule')}",
    )


def _by_principal_and_rule(facts: Facts) -> Sheet:
    return top(
        "refusals_by_principal_and_rule",
        "Refusals by principal and rule",
        (_PRINCIPAL, _RULE, _REFUSED, _LAST, _WHY),
        facts,
        f"SELECT principal, rule, {_SUMS}, sum(sum(changes)) OVER (PARTITION BY principal) AS of_principal "
        "FROM refused GROUP BY principal, rule",
        order=f"{descending('of_principal')}, {ascending('principal')}, {descending('refused')}, {ascending('rule')}",
    )


_SUMS = f"sum(changes) AS refused, {', '.join(LAST)}"
"""The aggregates that add groups of refusals up."""


def _errors(facts: Facts) -> Sheet:
    return top(
        "errors",
        "Errors without a policy",
        (
            Column("error", "Error", Kind.NAME),
            Column("operation", "Operation", Kind.NAME),
            Column("changes", "Changes", Kind.COUNT, sums=True),
            *(_PRINCIPALS, _LAST, _WHY),
        ),
        facts,
        f"SELECT error, operation, sum(changes) AS changes, count(*) AS principals, {', '.join(LAST)} FROM errors GROUP BY ALL",
        order=f"{descending('changes')}, {ascending('error', 'operation')}",
    )


def _refusals_answer(decided: int, by_principal: Sheet, by_rule: Sheet) -> str:
    refused, failed = by_rule.totals["refused"], by_rule.totals["failed"]
    if not decided:
        return NOTHING_ASKED
    if not refused:
        return f"Nobody: no policy refused any of {plural(decided, 'change')} that people asked for."
    rule, most = by_rule.rows[0][:2]
    who, often = by_principal.rows[0][:2]
    sentences = [f"Policies refused {count(refused)} of {plural(decided, 'change')} ({share(refused / decided)})."]
    if by_rule.all_rows == 1:
        sentences.append(f"All of them fell to “{named(rule)}”.")
    else:
        sentences.append(f"Most fell to “{named(rule)}” ({count(int(most or 0))}).")
    if by_principal.all_rows == 1:
        sentences.append(f"{named(who)} is the only one who was refused.")
    else:
        sentences.append(
            f"{named(who)} was refused most often, {times(int(often or 0))}, of {plural(by_principal.all_rows, 'principal')}."
        )
    if failed:
        sentences.append(f"{times(failed).capitalize()} it was no decision: the policy failed.")
    return " ".join(sentences)


def _refusals_drawn(by_principal: Sheet, by_rule: Sheet, pairs: Sheet) -> Plot | None:
    if not by_rule.rows:
        return None
    people, rules = by_principal.cut(BARS), by_rule.cut(REST)
    who, totals = people.values("principal"), people.values("refused")
    counts = {(row[0], row[1]): int(row[2] or 0) for row in pairs.rows}
    series = [
        Series(label_of(rule), series_colour(index), [counts.get((name, rule), 0) for name in who])
        for index, rule in enumerate(rules.values("rule"))
    ]
    if rules.others:
        told = [sum(held) for held in zip(*(part.values for part in series), strict=True)]
        left = [total - part for total, part in zip(totals, told, strict=True)]
        series.append(Series(plural(rules.others, "other rule"), series_colour(REST), left))
    return bars(
        "refusals",
        list(map(label_of, who)),
        series,
        list(map(count, totals)),
        rest_of(people, people.of_others["refused"]),
    )


# ------------------------------------------------------------------ findings that refuse nothing


def warnings(selection: Selection) -> Question:
    sheet = top(
        "warnings_by_rule",
        "Findings by rule",
        (
            Column("rule", "Rule", Kind.NAME),
            Column("action", "Action", Kind.NAME),
            Column("findings", "Findings", Kind.COUNT, sums=True),
            Column("applied", "Carried out", Kind.COUNT, sums=True),
            *(_PRINCIPALS, _NAMES, _LAST),
            Column("message", "What it said, the last time", Kind.TEXT),
        ),
        selection.facts,
        f"SELECT rule, action, sum(findings) AS findings, sum(applied) AS applied, {different('principal')} AS principals, "
        f"{different('name')} AS names, {', '.join(LAST)} FROM findings GROUP BY ALL",
        order=f"{descending('findings')}, {ascending('rule', 'action')}",
    )
    parts = [Part("applied", "carried out", "s0"), Part("rest", "not carried out", "s7")]
    return Question(
        "warnings",
        "What do rules warn of?",
        _warnings_answer(sheet),
        (sheet,),
        lambda: ranking("warnings", _with_rest(sheet), lambda row: f"{row[0]} ({row[1]})", parts),
        note="Findings of rules with the action warn or audit, which refuse nothing: what would be refused if they had the action deny.",
    )


def _with_rest(sheet: Sheet) -> Sheet:
    """Add to the sheet how many changes were not carried out."""
    findings, applied = sheet.values("findings"), sheet.values("applied")
    rest = [found - done for found, done in zip(findings, applied, strict=True)]
    return Sheet(
        sheet.name,
        sheet.title,
        (*sheet.columns, Column("rest", "Not carried out", Kind.COUNT, sums=True)),
        [(*row, value) for row, value in zip(sheet.rows, rest, strict=True)],
        sheet.all_rows,
        {**sheet.totals, "rest": sheet.totals["findings"] - sheet.totals["applied"]},
    )


def _warnings_answer(sheet: Sheet) -> str:
    if not sheet.rows:
        return "Nothing: no rule found anything that it did not refuse."
    findings, applied = sheet.totals["findings"], sheet.totals["applied"]
    rule, action, most = sheet.rows[0][:3]
    if sheet.all_rows == 1:
        text = f"Only “{named(rule)}” ({named(action)}) found something that it did not refuse: {times(findings)}."
    else:
        text = (
            f"{plural(sheet.all_rows, 'rule')} had {plural(findings, 'finding')} that refused nothing. "
            f"Most are of “{named(rule)}” ({named(action)}): {count(int(most or 0))}."
        )
    return f"{text} {share(applied / findings)} of these changes were carried out."

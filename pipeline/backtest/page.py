"""The page of a back-test: what it comes to, by whom and by what, and each difference with all that
was asked and said. It has room for so many differences; the files beside it have all.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any

import msgspec

from ...audit.event import HIGH_WATERMARK, NOT_AUTHENTICATED, Decision, Effect, RecordedState, Requested
from ...audit.replay import operands_of
from ..page.charts import Panel, bars_over_time
from ..page.drawing import REST, Plot, Series, series_colour
from ..page.files import Files
from ..page.rendering import render
from ..page.tables import Column, ReportTable, count, moment, plural, shortened
from ..page.tables import ValueKind as Holds
from ..periods import DAY, Axis, Spread, axis, worth_showing
from .results import DENIED_BY, EXISTING, LINES, ROWS, Results
from .summary import TITLES, BacktestSummary
from .texts import answer, lacks, steadiness
from .verdicts import ALLOWED, BROKEN, VIOLATED, Difference, DifferenceKind, Opinion

MOST_ROWS = 20
PARTITIONS = 12
"""How many partitions of a topic are listed, with their replicas or offsets."""
SIGNS = {"append": "+=", "subtract": "-="}
EFFECTS = {Effect.APPLIED: "carried out", Effect.NONE: "no effect", Effect.UNKNOWN: "unknown"}
SAID = {ALLOWED: "allowed", VIOLATED: "denied", BROKEN: "failed"}
TONES: Mapping[DifferenceKind, str] = {
    DifferenceKind.NEWLY_DENIED: "bad",
    DifferenceKind.BROKEN: "bad",
    DifferenceKind.TIMED_OUT: "bad",
    DifferenceKind.NEWLY_ALLOWED: "warn",
}

_differences: msgspec.json.Decoder[Difference] = msgspec.json.Decoder(Difference)
_decisions: msgspec.json.Decoder[Decision] = msgspec.json.Decoder(Decision)

Line = tuple[str, str]
"""A title and a text."""
COLOURS: Mapping[str, str] = {
    "newly_denied": "bad",
    "newly_allowed": "warn",
    "other_message": "s0",
    "recorded_broken": "s2",
    "broken": "s4",
    "timed_out": "s5",
    "moot": "s7",
}
MOST_NAMES = REST
"""How many names have a colour of their own, beside one for all others."""

Drawn = tuple[Axis, list[Series]] | None
"""The axis and the series of a plot; None for fewer than two days, or without differences."""


def page(summary: BacktestSummary, results: Results, files: Files) -> bytes:
    """Make the page; the same results give the same bytes."""
    shown = [_entry(body) for body in results.differences()]
    return render(
        "backtest/backtest.html",
        summary=summary,
        figures=list(_figures(summary)),
        answer=answer(summary),
        lacks=lacks(summary),
        steadiness=steadiness(summary),
        entries=shown,
        kinds={kind.value: TITLES[kind] for kind in DifferenceKind if summary.totals["differences"][kind.value]},
        others=summary.differences - len(shown),
        plots=list(_plots(summary)),
        existing=_existing(summary, results),
        lines_name=files.beside(LINES).name,
        table_name=files.beside(ROWS).name,
        existing_name=files.beside(EXISTING).name,
        json_name=files.json.name,
        most_rows=MOST_ROWS,
    )


def _plots(summary: BacktestSummary) -> Iterator[tuple[str, Plot]]:
    days = next(table for table in summary.tables if table.name == "by_day")
    if differences := plotted("differences", "Requests", differences_over_time(days)):
        yield "When the candidate differs", differences
    for table in summary.tables:
        drawn = refusals_over_time(table, days) if table.name.startswith(DENIED_BY) else None
        if refusals := plotted(table.name, "Refusals", drawn):
            yield table.title.partition(" and ")[0], refusals


def _figures(summary: BacktestSummary) -> Iterator[tuple[str, str, str]]:
    """Yield title, value and tone of the figures at the top of the page."""
    yield "requests asked", count(summary.history["asked"]), ""
    for kind in DifferenceKind:
        number = summary.totals["differences"][kind.value]
        if number or kind in {DifferenceKind.NEWLY_DENIED, DifferenceKind.NEWLY_ALLOWED, DifferenceKind.OTHER_MESSAGE}:
            yield TITLES[kind], count(number), TONES.get(kind, "") if number else ""
    topics, refused = summary.existing["topics"], summary.existing["refused"]
    if topics:
        yield "existing topics refused", f"{count(refused)} of {count(topics)}", "bad" if refused else ""


def _existing(summary: BacktestSummary, results: Results) -> ReportTable:
    columns = (
        Column("topic", "Topic", Holds.NAME),
        Column("principal", "As if created by", Holds.PRINCIPAL),
        Column("partitions", "Partitions", Holds.COUNT),
        Column("rule", "Rule", Holds.NAME),
        Column("message", "Why", Holds.TEXT),
    )
    found = [each | each["candidate"] for each in map(msgspec.json.decode, results.refused)]
    rows = [tuple(each[column.name] for column in columns) for each in found]
    title = "Existing topics that would be refused today"
    return ReportTable("existing", title, columns, rows, max(summary.existing["refused"], len(rows)))


# ------------------------------------------------------------------ one difference


def _entry(body: str) -> Mapping[str, Any]:
    difference = _differences.decode(body)
    return {
        "kind": difference.kind.value,
        "title": TITLES[difference.kind],
        "tone": TONES.get(difference.kind, ""),
        "time": moment(difference.time_ms * 1000),
        "principal": difference.principal or NOT_AUTHENTICATED,
        "operation": difference.operation.replace("_", " "),
        "topic": difference.topic,
        "rule": difference.rule,
        "place": f"{difference.cluster_id} {difference.epoch}/{difference.sequence}",
        "lines": list(_lines(difference, _decisions.decode(difference.event))),
    }


def _lines(difference: Difference, event: Decision) -> Iterator[Line]:
    yield "then", _said(difference.recorded)
    if event.policy is not None and not event.enforced and event.policy.decision != ALLOWED:
        yield "not enforced then", _said(Opinion(event.policy.decision, event.policy.rule, event.policy.message))
    if difference.kind is DifferenceKind.MOOT:
        yield "now", f"moot: {difference.candidate.message}"
    else:
        yield "candidate", _said(difference.candidate)
    via = ", ".join(filter(None, (event.client_id, event.software, event.client_host)))
    yield "by", (difference.principal or NOT_AUTHENTICATED) + (f" ({via})" if via else "")
    asked = f"{event.api} version {event.api_version}, element {event.element + 1} of {event.elements}"
    yield "request", asked + (", only to validate" if event.validate_only else "")
    if operations := operands_of(event):
        kinds = event.config_operation_kinds or {}
        named = (
            f"{key} {SIGNS.get(kinds.get(key, ''), '=')} {value}" if value is not None else f"{key} deleted"
            for key, value in operations.items()
        )
        yield "configs named", "\n".join(named)
    if moved := event.reassignments:
        yield "reassigned", _first((f"{number}: {_row(row)}" for number, row in moved.items()), len(moved))
    if deleted := event.delete_records_offsets:
        offsets = {number: "all" if at == HIGH_WATERMARK else f"before {at}" for number, at in deleted.items()}
        yield "records deleted", _first((f"{number}: {text}" for number, text in offsets.items()), len(offsets))
    if entity := event.entity:
        for title, configs in (("wanted", entity.requested), ("before", entity.before), ("after", entity.after)):
            yield title, "\n".join(f"{key} = {value}" for key, value in configs.items()) or "no configs of its own"
    else:
        yield from _states(difference, event)
    refused = f", {event.error}" + (f": {event.message}" if event.message else "") if event.error_code else ""
    yield "outcome then", EFFECTS[event.effect] + refused
    if difference.hidden:
        keys = ", ".join(difference.hidden)
        yield (
            "hidden",
            f"The log hides the values of {keys}: the candidate saw [hidden] in their place.",
        )
    if not difference.is_certain:
        yield "uncertain", "Events are missing before this one: other topics may have been in another state."
    if not difference.is_steady:
        yield "unsteady", "Called again, the candidate decided differently."


def _first(partitions: Iterable[str], number: int) -> str:
    text = "  ".join(islice(partitions, PARTITIONS))
    return text + (f"  and {number - PARTITIONS} more" if number > PARTITIONS else "")


def _row(replicas: Sequence[int] | None) -> str:
    return "cancelled" if replicas is None else ",".join(map(str, replicas))


def _states(difference: Difference, event: Decision) -> Iterator[Line]:
    """Yield the topic's states around the request, as recorded and as they would have been."""
    if event.requested is not None:
        yield "wanted", _state(event.requested)
    yield "before", _state(event.before)
    if difference.before is not None or difference.requested is not None:
        yield "before, as it would have been", _state(difference.before)
        if difference.requested is not None:
            yield "wanted, as it would have been", _state(difference.requested)
    yield "after", _state(event.after)


def _said(opinion: Opinion) -> str:
    text = SAID.get(opinion.decision, opinion.decision) + (f" by {opinion.rule}" if opinion.rule else "")
    if opinion.message:
        text += f": {opinion.message}"
    for finding in opinion.findings:
        if finding.rule != opinion.rule or finding.error is not None:
            text += f"\n{finding.action} by {finding.rule}: {finding.message}"
            text += f" ({finding.error})" if finding.error is not None else ""
    return text


def _state(state: RecordedState | Requested | None) -> str:
    if state is None:
        return "no topic"
    replicas = state.replicas
    text = f"{plural(len(replicas), 'partition')}, replication factor {len(replicas[0]) if replicas else 0}"
    if state.marked_for_deletion:
        text += ", marked for deletion"
    if isinstance(state, Requested):
        is_generated = state.generated_replica_assignments
        text += f", replicas {'chosen by the controller' if is_generated else 'named by the request'}"
    configs = [f"{key} = {value}" for key, value in sorted(state.configs.items())]
    rows = _first((f"{number}: {_row(row)}" for number, row in enumerate(replicas)), len(replicas))
    return "\n".join([text, *configs, f"replicas {rows}"])


def plotted(name: str, title: str, drawn: Drawn) -> Plot | None:
    if drawn is None:
        return None
    steps, series = drawn
    return bars_over_time(name, steps.starts, Panel(f"{title}, by {steps.step}", series))


def differences_over_time(days: ReportTable) -> Drawn:
    """Return a series for each kind of difference in the table `by_day`."""
    kinds = [column for column in days.columns if column.name in COLOURS]
    counts = [(row["day"], kind.title, row[kind.name]) for row in days.records for kind in kinds]
    return _series(days, counts, {kind.title: COLOURS[kind.name] for kind in kinds})


def refusals_over_time(denied: ReportTable, days: ReportTable) -> Drawn:
    """Return a series for each of the names with the most refusals, and one for all others, over
    the same time as the table `by_day`.
    """
    totals = Counter[str]()
    for _, name, number in denied.rows:
        totals[name] += number
    most = sorted(totals, key=lambda name: (-totals[name], name))[:MOST_NAMES]
    others = f"{plural(len(totals) - len(most), 'other')} together"
    counts = [(day, name if name in most else others, number) for day, name, number in denied.rows]
    labels = most if len(most) == len(totals) else [*most, others]
    return _series(days, counts, {label: series_colour(index) for index, label in enumerate(labels)})


def _series(days: ReportTable, counts: Iterable[tuple[str, str, int]], colours: Mapping[str, str]) -> Drawn:
    """Add up counts of (day, label, number) by step, as a series for each label."""
    asked = [Spread(start, start, row[-1]) for row in days.rows if (start := _start(row[0])) is not None]
    if len(asked) < 2 or not colours:
        return None
    steps = axis(*worth_showing(asked), finest="day")
    found = Counter[tuple[str, int]]()
    for day, label, number in counts:
        if (start := _start(day)) is not None:
            found[label, bisect_right(steps.starts, start) - 1] += number
    return steps, [
        Series(shortened(label, 60), colour, [found[label, step] for step in range(steps.steps)])
        for label, colour in colours.items()
    ]


def _start(day: str) -> int | None:
    """Return the start of a day in microseconds since 1970; None for a day that no calendar has."""
    try:
        return (date.fromisoformat(day) - date(1970, 1, 1)).days * DAY
    except ValueError:
        return None

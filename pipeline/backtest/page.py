"""The page of a back-test: what it comes to, by whom and by what, and each difference with all that
was asked and said.

Rule: all of it stands in the files beside it; the page has room for so many differences, and says
where the others are.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ...audit.event import NOT_AUTHENTICATED, Decision, Effect, RecordedState, Requested
from ...audit.replay import operands_of
from ..page.drawing import Plot
from ..page.files import Files
from ..page.rendering import render
from ..page.sheet import Column, Sheet, count, moment, plural
from ..page.sheet import Kind as Holds
from .plots import TITLE, over_time, refusals_over_time
from .results import Results, Written
from .summary import DENIED_BY, TITLES, Summary
from .verdicts import ALLOWED, BROKEN, VIOLATED, Difference, Kind, Opinion
from .wording import answer, lacks, steadiness

ROWS = 20
"""Of a table."""
PARTITIONS = 12
"""Whose replicas are shown."""
HIGH_WATERMARK = -1
"""The offset that stands for the end of a partition."""
SIGNS = {"append": "+=", "subtract": "-="}
EFFECTS = {Effect.APPLIED: "carried out", Effect.NONE: "no effect", Effect.UNKNOWN: "unknown"}
SAID = {ALLOWED: "allowed", VIOLATED: "denied", BROKEN: "failed"}
TONES: Mapping[Kind, str] = {
    Kind.NEWLY_DENIED: "bad",
    Kind.BROKEN: "bad",
    Kind.TIMED_OUT: "bad",
    Kind.NEWLY_ALLOWED: "warn",
}

_differences: msgspec.json.Decoder[Difference] = msgspec.json.Decoder(Difference)
_decisions: msgspec.json.Decoder[Decision] = msgspec.json.Decoder(Decision)

Line = tuple[str, str]
"""A title and a text."""


def page(summary: Summary, results: Results, files: Files) -> bytes:
    """Make the page; the same results give the same bytes."""
    shown = [_entry(body) for body in results.differences()]
    kinds = {kind.value: TITLES[kind] for kind in Kind if summary.totals.differences[kind.value]}
    return render(
        "backtest/backtest.html",
        summary=summary,
        figures=_figures(summary),
        answer=answer(summary),
        lacks=lacks(summary),
        steadiness=steadiness(summary),
        entries=shown,
        kinds=kinds,
        others=summary.differences - len(shown),
        plots=list(_plots(summary)),
        existing=_existing(summary, results),
        written=Written(files),
        json=files.json.name,
        rows=ROWS,
    )


def _plots(summary: Summary) -> Iterator[tuple[str, Plot]]:
    """Yield the plots over time, each with its title."""
    days = next(sheet for sheet in summary.sheets if sheet.name == "by_day")
    if (differences := over_time(days)) is not None:
        yield TITLE, differences
    for sheet in summary.sheets:
        if sheet.name.startswith(DENIED_BY) and (refusals := refusals_over_time(sheet, days)) is not None:
            yield sheet.title.partition(" and ")[0], refusals


def _figures(summary: Summary) -> list[tuple[str, str, str]]:
    """Return title, value and tone of the figures at the top of the page."""
    kinds = summary.totals.differences
    figures = [("requests asked", count(summary.history.asked), "")]
    always = {Kind.NEWLY_DENIED, Kind.NEWLY_ALLOWED, Kind.OTHER_MESSAGE}
    for kind in Kind:
        number = kinds[kind.value]
        if number or kind in always:
            figures.append((TITLES[kind], count(number), TONES.get(kind, "") if number else ""))
    if summary.existing.topics:
        tone = "bad" if summary.existing.refused else ""
        figures.append(
            ("existing topics refused", f"{count(summary.existing.refused)} of {count(summary.existing.topics)}", tone)
        )
    return figures


def _existing(summary: Summary, results: Results) -> Sheet:
    columns = (
        Column("topic", "Topic", Holds.NAME),
        Column("principal", "As if created by", Holds.PRINCIPAL),
        Column("partitions", "Partitions", Holds.COUNT),
        Column("rule", "Rule", Holds.NAME),
        Column("message", "Why", Holds.TEXT),
    )
    rows: list[tuple[Any, ...]] = []
    for each in map(msgspec.json.decode, results.refused):
        said = each["candidate"]
        rows.append((each["topic"], each["principal"], each["partitions"], said["rule"], said["message"]))
    sheet = Sheet("existing", "Existing topics that would be refused today", columns, rows)
    return Sheet(sheet.name, sheet.title, columns, rows, max(summary.existing.refused, len(rows)))


# ------------------------------------------------------------------ one difference


def _entry(body: str) -> Mapping[str, Any]:
    difference = _differences.decode(body)
    event = _decisions.decode(difference.event)
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
        "lines": _lines(difference, event),
    }


def _lines(difference: Difference, event: Decision) -> Sequence[Line]:
    lines: list[Line] = [("then", _said(difference.recorded))]
    if difference.kind is Kind.MOOT:
        lines.append(("now", f"moot: {difference.candidate.message}"))
    else:
        lines.append(("candidate", _said(difference.candidate)))
    via = ", ".join(filter(None, (event.client_id, event.software, event.client_host)))
    lines.append(
        (
            "by",
            f"{difference.principal or NOT_AUTHENTICATED} ({via})"
            if via
            else difference.principal or NOT_AUTHENTICATED,
        )
    )
    asked = f"{event.api} version {event.api_version}, element {event.element + 1} of {event.elements}"
    lines.append(("request", asked + (", only to validate" if event.validate_only else "")))
    if operations := operands_of(event):
        kinds = event.config_operation_kinds or {}
        named = (
            f"{key} {SIGNS.get(kinds.get(key, ''), '=')} {value}" if value is not None else f"{key} deleted"
            for key, value in operations.items()
        )
        lines.append(("configs named", "\n".join(named)))
    lines += _partitions_named(event)
    if event.entity is not None:
        entity = event.entity
        states = (("wanted", entity.requested), ("before", entity.before), ("after", entity.after))
        lines += [(name, _configs(configs)) for name, configs in states]
    else:
        lines += _states(difference, event)
    refused = f", {event.error}" + (f": {event.message}" if event.message else "") if event.error_code else ""
    outcome = EFFECTS[event.effect] + refused
    lines.append(("outcome then", outcome))
    if difference.hidden:
        lines.append(
            (
                "hidden",
                f"The log does not show the values of {', '.join(difference.hidden)}: the candidate was not asked about them as they were.",
            )
        )
    if not difference.is_certain:
        lines.append(("uncertain", "Events are missing before this one: other topics may have been otherwise."))
    if not difference.is_steady:
        lines.append(("unsteady", "Asked again, the candidate said something else."))
    return lines


def _partitions_named(event: Decision) -> Iterator[Line]:
    """Yield the partitions that a reassignment or a deletion of records names."""
    for title, named in (
        ("reassigned", {number: _row(row) for number, row in (event.reassignments or {}).items()}),
        ("records deleted", {number: _offset(at) for number, at in (event.delete_records_offsets or {}).items()}),
    ):
        if named:
            parts = [f"{number}: {text}" for number, text in list(named.items())[:PARTITIONS]]
            yield title, "  ".join(parts) + (f"  and {len(named) - PARTITIONS} more" if len(named) > PARTITIONS else "")


def _row(replicas: Sequence[int] | None) -> str:
    return "cancelled" if replicas is None else ",".join(map(str, replicas))


def _offset(offset: int) -> str:
    return "all" if offset == HIGH_WATERMARK else f"before {offset}"


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


def _configs(configs: Mapping[str, str]) -> str:
    return "\n".join(f"{key} = {value}" for key, value in configs.items()) or "nothing of its own"


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
    parts = [f"{plural(len(replicas), 'partition')}, replication factor {len(replicas[0]) if replicas else 0}"]
    if state.marked_for_deletion:
        parts[0] += ", marked for deletion"
    if isinstance(state, Requested):
        parts[0] += (
            ", replicas chosen by the controller"
            if state.generated_replica_assignments
            else ", replicas named by the request"
        )
    parts += [f"{key} = {value}" for key, value in sorted(state.configs.items())]
    rows = [f"{number}: {','.join(map(str, row))}" for number, row in enumerate(replicas[:PARTITIONS])]
    left = len(replicas) - len(rows)
    parts.append("replicas " + "  ".join(rows) + (f"  and {left} more" if left else ""))
    return "\n".join(parts)

"""A report as tables: medians with their range, and each goal with the ratio that was reached. Rich
or Markdown.
"""

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.table import Table

from .lines import LINES, Figure, Goal, Line
from .peers import SYSTEMS
from .result import Outcome, Report

NOTHING: Final = "-"
WIDTH: Final = 200  # where the output is no terminal

Row = list[str]


def show(report: Report, console: Console) -> None:
    for title, header, rows in _tables(report):
        table = Table(title=title, title_justify="left")
        for index, name in enumerate(header):
            table.add_column(name, justify="left" if index == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for failure in failures(report):
        console.print(failure, markup=False)


def markdown(report: Report) -> str:
    parts = [f"Measured {report.started[:10]} on {report.machine}; {report.rounds} rounds, medians (lowest - highest)."]
    for title, header, rows in _tables(report):
        ruler = ["---", *("---:" for _ in header[1:])]
        lines = ["| " + " | ".join(row) + " |" for row in [header, ruler, *rows]]
        parts.append("\n".join([f"### {title}", "", *lines]))
    parts += [f"- {failure}" for failure in failures(report)]
    return "\n\n".join(parts) + "\n"


def failures(report: Report) -> Iterator[str]:
    """A sentence for everything that was wanted and could not be measured."""
    for system, why in report.left_out.items():
        yield f"{system} was left out: {why}"
    for line, outcomes in report.lines.items():
        for system, outcome in outcomes.items():
            if outcome.failure is not None:
                yield f"{line} on {system} failed: {outcome.failure}"


def _tables(report: Report) -> Iterator[tuple[str, Row, list[Row]]]:
    systems = [name for name in SYSTEMS if name in report.titles]
    yield "Results", ["", "unit", *systems], list(_result_rows(report, systems))
    goals = list(_goal_rows(report))
    if goals:
        yield "Goals", ["", "measured", "against", "ratio or value", "goal", "reached"], goals


def _result_rows(report: Report, systems: list[str]) -> Iterator[Row]:
    for name, line in LINES.items():
        outcomes = report.lines.get(name, {})
        for key, figure in line.figures.items():
            cells = [_cell(outcomes.get(system), key) for system in systems]
            if any(cell != NOTHING for cell in cells):
                yield [figure.title, figure.unit, *cells]


def _cell(outcome: Outcome | None, figure: str) -> str:
    values = outcome.figures.get(figure) if outcome is not None else None
    median = outcome.median(figure) if outcome is not None else None
    if not values or median is None:
        return NOTHING
    if len(values) == 1:
        return number(median)
    return f"{number(median)} ({number(min(values))} - {number(max(values))})"


def _goal_rows(report: Report) -> Iterator[Row]:
    for name, line in LINES.items():
        for goal in line.goals:
            score = report.score(name, line, goal)
            if score is not None:
                yield _goal_row(line, goal, score)


def _goal_row(line: Line, goal: Goal, score: float) -> Row:
    figure = line.figures[goal.figure]
    if goal.peer is None:
        return [figure.title, goal.subject, NOTHING, *_limit(figure, goal, score)]
    against = goal.peer
    if goal.peer_figure is not None:
        against += f" ({line.figures[goal.peer_figure].title})"
    reached = "yes" if score >= goal.target else "no"
    return [figure.title, goal.subject, against, f"{number(score)}x", f"{number(goal.target)}x", reached]


def _limit(figure: Figure, goal: Goal, score: float) -> Row:
    reached = "yes" if score <= goal.target else "no"
    return [f"{number(score)} {figure.unit}", f"at most {number(goal.target)} {figure.unit}", reached]


def number(value: float) -> str:
    """Three significant digits, thousands grouped."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"

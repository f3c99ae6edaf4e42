"""From facts to sheets: the first rows of a long table, and the sums of all.

Rule: rows come in an order that is total, so that the same tables give the same sheet.
"""

from ..page.sheet import Column, Sheet
from .facts import Facts, rows

MOST_ROWS = 1000
"""Of a sheet: whoever wants more asks the tables themselves."""
LAST = ("max(event).time AS last", "max(event).text AS message")
"""Aggregates of groups with a `last_event`: its time in microseconds since 1970, and its text."""


def top(name: str, title: str, columns: tuple[Column, ...], facts: Facts, query: str, *, order: str) -> Sheet:
    """Make a sheet of the first rows that a query gives, which have its columns and others to sort
    by, while all are counted.
    """
    summed = [column.name for column in columns if column.sums]
    facts.execute(f"CREATE OR REPLACE TEMP TABLE asked_for AS {query}")
    names = ", ".join(column.name for column in columns)
    first = rows(facts, f"SELECT {names} FROM asked_for ORDER BY {order} LIMIT {MOST_ROWS}")
    sums = ", ".join(("count(*)", *(f"coalesce(sum({each}), 0)" for each in summed)))
    [(number, *totals)] = rows(facts, f"SELECT {sums} FROM asked_for")
    return Sheet(name, title, columns, first, number, dict(zip(summed, totals, strict=True)))


def different(column: str) -> str:
    """Count the different values of a column, null among them."""
    return f"count(DISTINCT {{'value': {column}}})"


def descending(*names: str) -> str:
    """Sort by number, the largest first."""
    return ", ".join(f"{name} DESC NULLS LAST" for name in names)


def ascending(*names: str) -> str:
    """Sort by name, null first."""
    return ", ".join(f"{name} ASC NULLS FIRST" for name in names)

"""Report tables, which are rendered as HTML, JSON and CSV by the kinds of their columns. A table
holds plain values; this module formats them for people, and `files.py` for programs.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from ...audit.event import NOT_AUTHENTICATED
from ...text import escaped, noun

Value = str | int | float | None
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOTHING = "\N{EN DASH}"


class ValueKind(Enum):
    """The kind of the values of a column. A name is somebody else's; a principal is null for a
    caller who is not authenticated; a share is between 0 and 1; a time is in microseconds since
    1970; and a number is one that names something: a node, an epoch, a line.
    """

    TEXT = "text"
    NAME = "name"
    PRINCIPAL = "principal"
    COUNT = "count"
    SHARE = "share"
    MICROSECONDS = "microseconds"
    TIME = "time"
    NUMBER = "number"

    @property
    def is_number(self) -> bool:
        return self not in {ValueKind.TEXT, ValueKind.NAME, ValueKind.PRINCIPAL}


@dataclass(frozen=True)
class Column:
    """A column of a table: programs call it `name`, which stays; people read `title`."""

    name: str
    title: str
    kind: ValueKind
    sums: bool = False
    """Whether the values of several rows may be added."""


@dataclass(frozen=True)
class ReportTable:
    """The first rows of a table; `all_rows` and `totals` are those of the whole table."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Any, ...]]
    all_rows: int = -1
    totals: Mapping[str, int] = field(default_factory=dict)
    """The sums of the columns that may be added, by name."""

    def __post_init__(self) -> None:
        if self.all_rows < 0:
            object.__setattr__(self, "all_rows", len(self.rows))
            object.__setattr__(self, "totals", self._sums)

    def cut(self, rows: int) -> "ReportTable":
        """Return the table with only its first rows; all are still counted."""
        return replace(self, rows=self.rows[:rows])

    def with_content(self, *besides: str) -> "ReportTable":
        """Return the table without some columns, and without those of zeros and nulls, which tell
        nothing but of a caller; the first one stays, and all do if no other would.
        """
        left = [column for column in self.columns if column.name not in besides]
        with_content = [column for column in left if column is left[0] or self._has_content(column)]
        columns = with_content if len(with_content) > 1 else left
        rows = [tuple(record[column.name] for column in columns) for record in self.records]
        totals = {column.name: self.totals[column.name] for column in columns if column.sums}
        return replace(self, columns=tuple(columns), rows=rows, totals=totals)

    @property
    def others(self) -> int:
        return self.all_rows - len(self.rows)

    @property
    def of_others(self) -> dict[str, int]:
        return {name: total - self._sums[name] for name, total in self.totals.items()}

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows, with the columns' names."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows]

    def values(self, name: str) -> list[Any]:
        index = self.names.index(name)
        return [row[index] for row in self.rows]

    def _has_content(self, column: Column) -> bool:
        return column.kind is ValueKind.PRINCIPAL or any(self.values(column.name)) or bool(self.totals.get(column.name))

    @property
    def _sums(self) -> dict[str, int]:
        added = [column.name for column in self.columns if column.sums]
        return {name: sum(value or 0 for value in self.values(name)) for name in added}


def shown(value: Value, kind: ValueKind) -> str:
    """Write a value as text, with escapes for what a terminal or a page would obey."""
    if value is None:
        return NOT_AUTHENTICATED if kind is ValueKind.PRINCIPAL else NOTHING
    if isinstance(value, str):
        return escaped(value) or NOTHING
    return _WRITTEN[kind](value) if kind in _WRITTEN else str(value)


def count(number: int) -> str:
    return f"{number:,}"


def share(part: float) -> str:
    """Write a part as a percentage, which is 0 or 100 only if it is nothing or all."""
    if 0 < part < 0.001:
        return "< 0.1 %"
    if 0.995 <= part < 1:
        return "> 99 %"
    return f"{part:.1%}".replace("%", " %") if 0 < part < 0.0995 else f"{part:.0%}".replace("%", " %")


def duration(microseconds: float) -> str:
    """Write a duration in two or three digits, in the unit that suits it."""
    sign, left = ("-" if microseconds < 0 else ""), abs(microseconds)
    for unit, size, limit in (("µs", 1, 1e3), ("ms", 1e3, 1e6), ("s", 1e6, 120e6)):
        if left < limit * 0.9995:
            return f"{sign}{left / size:.3g} {unit}"
    minutes = round(left / 60e6)
    if minutes < 120:
        return f"{sign}{minutes} min"
    return f"{sign}{round(minutes / 60)} h" if minutes < 48 * 60 else f"{sign}{count(round(minutes / 1440))} days"


def as_datetime(microseconds: int) -> datetime | None:
    """Convert microseconds since 1970; None for what no calendar has: a clock can say anything."""
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def moment(microseconds: int) -> str:
    when = as_datetime(microseconds)
    return "beyond all years" if when is None else f"{when:%Y-%m-%d %H:%M:%S}".zfill(19)


def shortened(name: str, width: int) -> str:
    """Shorten a name to so many columns of a terminal, in its middle, since ends often differ."""
    text = escaped(name)
    if _width(text) <= width:
        return text
    head, tail = list[str](), list[str]()
    left, characters = width - 1, list(text)
    while characters:
        side, character = (head, characters.pop(0)) if len(head) <= len(tail) * 2 else (tail, characters.pop())
        left -= _width(character)
        if left < 0:
            break
        side.append(character)
    return "".join(head) + "…" + "".join(reversed(tail))


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


_WRITTEN: Mapping[ValueKind, Callable[[Any], str]] = {
    ValueKind.COUNT: count,
    ValueKind.SHARE: share,
    ValueKind.MICROSECONDS: duration,
    ValueKind.TIME: moment,
}


def plural(number: int, one: str, many: str | None = None) -> str:
    """Write a count with its noun: `1 topic`, `2 topics`."""
    return f"{count(number)} {noun(number, one, many)}"

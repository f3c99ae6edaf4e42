"""Time in steps: which steps suit a range of times, and in which step an event is.

Rule: steps begin where calendars begin them, in UTC. Clocks say anything, so a few events far from
all others do not stretch the axis: they are left of it or right of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

SECOND = 1_000_000
"""Times are in microseconds since 1970."""
DAY = 86_400 * SECOND
MOST_STEPS = 92
"""A quarter shows its days."""
FAR_OFF = 0.001
"""So few events may be left aside at either end, if that makes the rest readable."""
READABLE = 2.0
"""... if all is so much longer than the rest."""
_EPOCH = date(1970, 1, 1).toordinal()
_MONDAY = 4 * DAY
"""The first one of 1970 is the 5th of January."""
_LAST_MONTH = (9999 - 1970) * 12 + 11
_FIRST_MONTH = (1 - 1970) * 12


@dataclass(frozen=True)
class Step:
    """A step of time, of so many microseconds or months."""

    name: str
    microseconds: int = 0
    months: int = 0
    offset: int = 0

    def index(self, time: int) -> int:
        """Return the number of the step that a time is in."""
        if self.microseconds:
            return (time - self.offset) // self.microseconds
        return _month(time) // self.months

    def start(self, index: int) -> int:
        if self.microseconds:
            return index * self.microseconds + self.offset
        month = min(max(index * self.months, _FIRST_MONTH), _LAST_MONTH)
        return (date(1970 + month // 12, month % 12 + 1, 1).toordinal() - _EPOCH) * DAY

    def column(self, time: str) -> str:
        """Return `index` as an expression of DuckDB's, for a time in microseconds since 1970."""
        if self.microseconds:
            return _divided(f"({time} - {self.offset})", self.microseconds)
        moment = f"make_timestamp({time})"
        return _divided(f"((year({moment}) - 1970) * 12 + month({moment}) - 1)", self.months)


def _divided(number: str, by: int) -> str:
    """Return an expression for a number divided by another one, rounded down."""
    return f"({number} // {by} - CASE WHEN {number} % {by} < 0 THEN 1 ELSE 0 END)"


STEPS = (
    *(Step(name, size * SECOND) for name, size in (("second", 1), ("5 seconds", 5), ("15 seconds", 15))),
    *(Step(name, size * 60 * SECOND) for name, size in (("minute", 1), ("5 minutes", 5), ("15 minutes", 15))),
    *(Step(name, size * 3600 * SECOND) for name, size in (("hour", 1), ("3 hours", 3), ("12 hours", 12))),
    Step("day", DAY),
    Step("week", 7 * DAY, offset=_MONDAY),
    *(Step(name, months=size) for name, size in (("month", 1), ("quarter", 3), ("year", 12), ("10 years", 120))),
    Step("100 years", months=1200),
    Step("1000 years", months=12000),
)


@dataclass(frozen=True)
class Axis:
    """Consecutive steps of time, at least one."""

    step: Step
    first: int
    steps: int

    @property
    def starts(self) -> list[int]:
        """The start of each step, and of the one behind the last."""
        return [self.step.start(self.first + number) for number in range(self.steps + 1)]

    def column(self, time: str) -> str:
        """Return an expression for the step of a time from 0; null for what is not on the axis."""
        number = f"({self.step.column(time)} - {self.first})"
        return f"CASE WHEN {number} BETWEEN 0 AND {self.steps - 1} THEN {number} END"

    def clamped(self, time: str) -> str:
        """Return an expression for a time's step: -1 before the axis, `steps` after it."""
        return f"greatest(-1, least({self.steps}, {self.step.column(time)} - {self.first}))"


def axis(first: int, last: int, *, finest: int = SECOND) -> Axis:
    """Make an axis of the finest steps, of `finest` microseconds at least, that are few enough."""
    for step in STEPS:
        if 0 < step.microseconds < finest:
            continue
        begin, end = step.index(first), step.index(last)
        if end - begin < MOST_STEPS:
            return Axis(step, begin, end - begin + 1)
    raise AssertionError("a thousand years suit every calendar")


@dataclass(frozen=True)
class Spread:
    """How many of something there were in a stretch of time, such as a day."""

    first: int
    last: int
    count: int


def worth_showing(spreads: Iterable[Spread]) -> tuple[int, int]:
    """Return from when until when nearly all happened. There has to be one."""
    ordered = sorted(spreads, key=lambda spread: (spread.first, spread.last))
    every = ordered[0].first, max(spread.last for spread in ordered)
    aside = sum(spread.count for spread in ordered) * FAR_OFF
    core = _without_few(_without_few(ordered, aside)[::-1], aside)
    most = min(spread.first for spread in core), max(spread.last for spread in core)
    return most if every[1] - every[0] > READABLE * max(most[1] - most[0], DAY) else every


def _without_few(spreads: list[Spread], few: float) -> list[Spread]:
    passed = 0
    for number, spread in enumerate(spreads):
        passed += spread.count
        if passed > few:
            return spreads[number:]
    return spreads


def _month(time: int) -> int:
    day = date.fromordinal(min(max(time // DAY + _EPOCH, 1), date.max.toordinal()))
    return (day.year - 1970) * 12 + day.month - 1

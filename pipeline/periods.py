"""Time in steps: which steps suit a range of times, and in which step an event is.

Steps begin where calendars begin them, in UTC. Clocks say anything, so a few events far from all
others do not stretch the axis: they are left of it or right of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

SECOND = 1_000_000
"""A second in microseconds; all times are microseconds since 1970."""
DAY = 86_400 * SECOND
MOST_STEPS = 92
"""How many steps an axis has at most, so that a quarter shows its days."""
FAR_OFF = 0.001
"""The share of events that may be left aside at either end, if that makes the rest readable."""
READABLE = 2.0
"""How many times as long as the rest the whole has to be, so that events are left aside."""
_CALENDAR = np.array(["0001-01-01", "9999-12-31T23:59:59.999999"], "M8[us]")
"""The first time that a calendar has, and the last one."""
_MONDAY = np.timedelta64(4, "D")
"""The first Monday of 1970, in days since the 1st of January; numpy's weeks begin on Thursdays."""

_UNITS = {
    "second": "s", "5 seconds": "5s", "15 seconds": "15s", "minute": "m", "5 minutes": "5m", "15 minutes": "15m",
    "hour": "h", "3 hours": "3h", "12 hours": "12h", "day": "D", "week": "W", "month": "M", "quarter": "3M",
    "year": "Y", "10 years": "10Y", "100 years": "100Y", "1000 years": "1000Y",
}  # fmt: skip


@dataclass(frozen=True)
class Axis:
    """Consecutive steps of time, at least one."""

    step: str
    """The name of a step, such as `5 minutes`."""
    months: int
    """How many months a step has; 0 for steps of one length."""
    starts: list[int]
    """The start of each step, and of the one behind the last."""

    @property
    def steps(self) -> int:
        return len(self.starts) - 1

    @property
    def has_days(self) -> bool:
        return self.starts[1] - self.starts[0] >= DAY

    def column(self, time: str) -> str:
        """Return an expression of DuckDB's for the step of a time from 0; null for what is not on
        the axis.
        """
        return f"CASE WHEN {time} >= {self.starts[0]} AND {time} < {self.starts[-1]} THEN {self._number(time)} END"

    def clamped(self, time: str) -> str:
        """Return an expression for a time's step: -1 before the axis, `steps` after it."""
        first, last = self.starts[0], self.starts[-1]
        return (
            f"CASE WHEN {time} < {first} THEN -1 WHEN {time} < {last} THEN {self._number(time)} ELSE {self.steps} END"
        )

    def _number(self, time: str) -> str:
        first, second = self.starts[:2]
        if self.steps == 1:
            return "0"
        if self.months:
            # counted from the second start, because the first one may be cut off by the calendar
            passed = f"datediff('month', make_timestamp({second}), make_timestamp({time}))"
            return f"({passed} + {self.months}) // {self.months}"
        return f"({time} - {first}) // {second - first}"


def axis(first: int, last: int, *, finest: str = "second") -> Axis:
    """Make an axis of the finest steps, no finer than `finest`, that are few enough."""
    within = np.clip(np.array([first, last], "M8[us]"), _CALENDAR[0], _CALENDAR[1] - 1)
    names = list(_UNITS)
    for name in names[names.index(finest) :]:
        unit, shift = f"M8[{_UNITS[name]}]", _MONDAY if name == "week" else np.timedelta64(0, "D")
        begin, end = (within - shift).astype(unit)
        if (end - begin).astype(int) < MOST_STEPS:
            starts = np.clip(np.arange(begin, end + 2).astype("M8[us]") + shift, *_CALENDAR)
            months = (begin + 1).astype("M8[M]") - begin.astype("M8[M]") if unit[-2] in "MY" else 0
            return Axis(name, int(months), starts.astype(int).tolist())
    raise AssertionError("a thousand years suit every calendar")


@dataclass(frozen=True, order=True)
class Spread:
    """How many of something there were in a stretch of time, such as a day."""

    first: int
    last: int
    count: int


def worth_showing(spreads: Iterable[Spread]) -> tuple[int, int]:
    """Return from when until when nearly all happened. There has to be one."""
    ordered = sorted(spreads)
    every = ordered[0].first, max(spread.last for spread in ordered)
    aside = sum(spread.count for spread in ordered) * FAR_OFF
    core = _without_few(_without_few(ordered, aside)[::-1], aside)
    most = min(spread.first for spread in core), max(spread.last for spread in core)
    return most if every[1] - every[0] > READABLE * max(most[1] - most[0], DAY) else every


def _without_few(spreads: list[Spread], few: float) -> list[Spread]:
    passed = accumulate(spread.count for spread in spreads)
    return [spread for spread, number in zip(spreads, passed, strict=True) if number > few] or spreads

"""Steps of time: few enough, where calendars begin them, and undisturbed by a clock that goes
wrong.
"""

from bisect import bisect_right
from datetime import UTC, datetime

import duckdb
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.pipeline.periods import DAY, MOST_STEPS, SECOND, Spread, axis, worth_showing

YEARS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda when: round(when.timestamp()) * SECOND
)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * SECOND


@given(YEARS, YEARS)
def test_an_axis_holds_its_range_in_few_steps(one: int, other: int) -> None:
    """From a second to all years: every time lies in one of at most so many steps."""
    first, last = sorted((one, other))
    found = axis(first, last)
    assert found.steps <= MOST_STEPS
    assert found.starts == sorted(set(found.starts))
    for time in (first, last):
        assert found.starts[0] <= time < found.starts[-1]


@given(YEARS, YEARS, YEARS)
def test_every_time_of_an_axis_has_its_step(one: int, other: int, any_time: int) -> None:
    """SQL finds the step in which a time lies, up to the last moment of all calendars."""
    first, last = sorted((one, other))
    found = axis(first, last)
    for time in (first, last, min(max(any_time, first), last)):
        [row] = duckdb.execute(f"SELECT {found.column(str(time))}, {found.clamped(str(time))}").fetchall()
        assert row == (bisect_right(found.starts, time) - 1,) * 2


def test_the_last_month_of_all_calendars() -> None:
    """Seconds are seconds there, too, and long axes reach to its end."""
    begin, end = at("9999-12-20T10:13:19"), at("9999-12-31T23:59:59")
    assert (axis(begin, begin + 50 * SECOND).step, axis(begin, begin + 50 * SECOND).steps) == ("second", 51)
    for first in (begin, at("9999-11-30T00:00:00"), at("2026-01-01T00:00:00")):
        found = axis(first, end)
        assert duckdb.execute(f"SELECT {found.column(str(end + SECOND - 1000))}").fetchall() == [(found.steps - 1,)]


def test_steps_suit_the_range() -> None:
    """A minute shows its seconds, a quarter its days, decades their years; weeks
    begin on Mondays.
    """
    ranges = {
        "2026-01-01T00:01:00": "second",
        "2026-01-01T08:00:00": "15 minutes",
        "2026-03-31T00:00:00": "day",
        "2027-01-01T00:00:00": "week",
        "2030-01-01T00:00:00": "month",
        "2076-01-01T00:00:00": "year",
    }
    begin = at("2026-01-01T00:00:00")
    assert {end: axis(begin, at(end)).step for end in ranges} == ranges
    weeks = axis(begin, at("2027-01-01T00:00:00"))
    assert {datetime.fromtimestamp(start / SECOND, UTC).weekday() for start in weeks.starts} == {0}


def test_steps_are_not_finer_than_is_known() -> None:
    """What is counted by days is not shown by hours."""
    assert axis(0, 3 * DAY, finest="day").step == "day"
    assert axis(0, 3 * DAY).step == "hour"
    assert axis(0, 3650 * DAY, finest="day").step == axis(0, 3650 * DAY).step == "quarter"


def test_a_few_events_of_a_wrong_clock_do_not_stretch_the_axis() -> None:
    """One event of 1970 among thousands of this year is left aside; where it is not that few,
    everything is shown.
    """
    usual = [Spread(day * DAY, (day + 1) * DAY - 1, 1000) for day in range(20_000, 20_010)]
    lost = Spread(0, 0, 1)
    assert worth_showing([*usual, lost]) == (20_000 * DAY, 20_010 * DAY - 1)
    assert worth_showing([*usual, Spread(0, 0, 5000)]) == (0, 20_010 * DAY - 1)
    assert worth_showing([lost]) == (0, 0)
    assert worth_showing([Spread(0, 5, 1), *usual[:1]]) == (20_000 * DAY, 20_001 * DAY - 1)

"""The plot of a back-test shows what its table of days says."""

from collections.abc import Sequence
from datetime import date, timedelta

from minicontroller.pipeline.backtest.plots import COLOURS, over_time, series_over_time
from minicontroller.pipeline.backtest.verdicts import Kind as Difference
from minicontroller.pipeline.page.sheet import Column, Kind, Sheet

COLUMNS = (
    Column("day", "Day", Kind.NAME),
    Column("newly_denied", "Newly denied", Kind.COUNT, sums=True),
    Column("moot", "Moot", Kind.COUNT, sums=True),
    Column("requests", "Requests", Kind.COUNT, sums=True),
)


def days(rows: Sequence[tuple[str, int, int, int]], columns: Sequence[Column] = COLUMNS) -> Sheet:
    return Sheet("by_day", "Days", tuple(columns), list(rows))


def test_a_day_without_requests_has_its_place() -> None:
    """A bar is where its day is, whatever days the table lacks; a refusal has the colour of
    something bad.
    """
    found = series_over_time(days([("2026-03-01", 3, 1, 10), ("2026-03-04", 5, 0, 10)]))
    assert found is not None
    axis, [denied, moot] = found
    assert (axis.step.name, denied.values, moot.values) == ("day", [3, 0, 0, 5], [1, 0, 0, 0])
    assert (denied.label, denied.colour) == ("Newly denied", "bad")


def test_each_kind_of_difference_has_its_own_colour() -> None:
    """Whichever of them come together."""
    assert {kind.value.replace("-", "_") for kind in Difference} == set(COLOURS)
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_a_long_history_is_shown_in_longer_steps() -> None:
    """Nothing of it is lost."""
    rows = [((date(2025, 1, 1) + timedelta(days=number)).isoformat(), 1, 0, 7) for number in range(365)]
    found = series_over_time(days(rows))
    assert found is not None
    axis, [denied, _] = found
    assert axis.step.name == "week"
    assert sum(value or 0 for value in denied.values) == 365
    assert over_time(days(rows)) is not None


def test_a_clock_that_went_wrong_does_not_stretch_it() -> None:
    """Days that no calendar has, and a few requests of 1970, are in the table only."""
    usual = [(f"2026-03-{number:02}", 1, 0, 5000) for number in range(1, 11)]
    found = series_over_time(days([("1970-01-01", 1, 0, 1), *usual, ("beyond all years", 1, 0, 1)]))
    assert found is not None
    assert found[1][0].values == [1] * 10


def test_nothing_to_draw() -> None:
    """One day is told by the table, and without differences there is no plot."""
    assert over_time(days([("2026-03-01", 3, 1, 10)])) is None
    assert over_time(days([], COLUMNS)) is None
    plain = Sheet("by_day", "Days", (COLUMNS[0], COLUMNS[3]), [("2026-03-01", 10), ("2026-03-02", 10)])
    assert over_time(plain) is None

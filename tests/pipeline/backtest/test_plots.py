"""The plot of a back-test shows what its table of days says."""

from collections.abc import Sequence
from datetime import date, timedelta

from minicontroller.pipeline.backtest.page import COLOURS, differences_over_time, plotted, refusals_over_time
from minicontroller.pipeline.backtest.verdicts import DifferenceKind as Difference
from minicontroller.pipeline.page.tables import Column, ReportTable, ValueKind

COLUMNS = (
    Column("day", "Day", ValueKind.NAME),
    Column("newly_denied", "Newly denied", ValueKind.COUNT, sums=True),
    Column("moot", "Moot", ValueKind.COUNT, sums=True),
    Column("requests", "Requests", ValueKind.COUNT, sums=True),
)


def days(rows: Sequence[tuple[str, int, int, int]], columns: Sequence[Column] = COLUMNS) -> ReportTable:
    return ReportTable("by_day", "Days", tuple(columns), list(rows))


def test_a_day_without_requests_has_its_place() -> None:
    """A bar is where its day is, whatever days the table lacks; a refusal has the colour of
    something bad.
    """
    found = differences_over_time(days([("2026-03-01", 3, 1, 10), ("2026-03-04", 5, 0, 10)]))
    assert found is not None
    axis, [denied, moot] = found
    assert (axis.step, denied.values, moot.values) == ("day", [3, 0, 0, 5], [1, 0, 0, 0])
    assert (denied.label, denied.colour) == ("Newly denied", "bad")


def test_each_kind_of_difference_has_its_own_colour() -> None:
    """Whichever of them come together."""
    assert {kind.value.replace("-", "_") for kind in Difference} == set(COLOURS)
    assert len(set(COLOURS.values())) == len(COLOURS)


def test_a_long_history_is_shown_in_longer_steps() -> None:
    """Nothing of it is lost."""
    rows = [((date(2025, 1, 1) + timedelta(days=number)).isoformat(), 1, 0, 7) for number in range(365)]
    found = differences_over_time(days(rows))
    assert found is not None
    axis, [denied, _] = found
    assert axis.step == "week"
    assert sum(value or 0 for value in denied.values) == 365
    assert plotted("differences", "Requests", found) is not None


def test_a_clock_that_went_wrong_does_not_stretch_it() -> None:
    """Days that no calendar has, and a few requests of 1970, are in the table only."""
    usual = [(f"2026-03-{number:02}", 1, 0, 5000) for number in range(1, 11)]
    found = differences_over_time(days([("1970-01-01", 1, 0, 1), *usual, ("beyond all years", 1, 0, 1)]))
    assert found is not None
    assert found[1][0].values == [1] * 10


def test_nothing_to_draw() -> None:
    """One day is told by the table, and without differences there is no plot."""
    assert differences_over_time(days([("2026-03-01", 3, 1, 10)])) is None
    assert differences_over_time(days([], COLUMNS)) is None
    plain = ReportTable("by_day", "Days", (COLUMNS[0], COLUMNS[3]), [("2026-03-01", 10), ("2026-03-02", 10)])
    assert differences_over_time(plain) is None


def denied(rows: Sequence[tuple[str, str, int]]) -> ReportTable:
    columns = (COLUMNS[0], Column("rule", "Rule", ValueKind.NAME), COLUMNS[1])
    return ReportTable("denied_by_rule", "Newly denied, by rule and day", columns, list(rows))


def test_the_names_with_the_most_refusals_have_colours() -> None:
    """Each has its own, over the same days as all differences; the others are together."""
    days_ = days([("2026-03-01", 3, 1, 10), ("2026-03-04", 5, 0, 10)])
    many = [("2026-03-01", f"rule {number}", 10 - number) for number in range(10)]
    found = refusals_over_time(denied([*many, ("2026-03-04", "rule 1", 5), ("beyond all years", "rule 0", 1)]), days_)
    assert found is not None
    axis, series = found
    assert axis.steps == 4
    assert [each.label for each in series[:2]] == ["rule 1", "rule 0"]
    assert series[0].values == [9, 0, 0, 5]
    assert series[-1].label.endswith("others together")
    assert len({each.colour for each in series}) == len(series)
    assert sum(sum(value or 0 for value in each.values) for each in series) == sum(range(1, 11)) + 5
    assert plotted("denied", "Refusals", found) is not None


def test_no_refusals_to_draw() -> None:
    """Nothing is drawn of nothing, or of a single day."""
    row = ("2026-03-01", 3, 1, 10)
    assert refusals_over_time(denied([]), days([row, ("2026-03-02", 0, 0, 1)])) is None
    assert refusals_over_time(denied([("2026-03-01", "r", 3)]), days([row])) is None

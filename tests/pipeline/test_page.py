"""What the pipeline's pages are made of: values as text, files that are not lost, plots in which
nothing means anything.
"""

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from minicontroller.pipeline.page.charts import Panel, bars, bars_over_time, lines_over_time
from minicontroller.pipeline.page.drawing import COLOURS, SERIES, Plot, Series, series_colour
from minicontroller.pipeline.page.files import Files, UnwritableError, as_csv, as_json, plain_table
from minicontroller.pipeline.page.tables import (
    Column,
    ReportTable,
    Value,
    ValueKind,
    duration,
    moment,
    share,
    shortened,
    shown,
)

HOSTILE = (
    "</svg><script>alert(1)</script>",
    "$x$ \\frac{1}{2} & co",
    "User:\u05e9\u05dc\u05d5\u05dd \u202eevil",
    "\N{PARTY POPPER} \u65e5\u672c\u8a9e",
    "line\nend \x00 \x1b[31m",
    "#000011",
    "x" * 249,
)
COLUMNS = (
    Column("who", "Who", ValueKind.NAME),
    Column("refused", "Refused", ValueKind.COUNT, sums=True),
    Column("last", "Last", ValueKind.TIME),
)


def a_table(*rows: tuple[Value, ...]) -> ReportTable:
    return ReportTable("table", "A table", COLUMNS, rows)


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (999.7, "1 ms"),
        (1_500, "1.5 ms"),
        (999_900, "1 s"),
        (119_000_000, "119 s"),
        (3_600_000_000, "60 min"),
        (7_300_000_000, "2 h"),
        (200 * 3_600_000_000, "8 days"),
        (-2_000, "-2 ms"),
    ],
)
def test_durations_are_told_in_the_unit_that_suits(microseconds: float, text: str) -> None:
    """A duration has two or three digits and a unit."""
    assert duration(microseconds) == text


def test_a_small_share_is_not_nothing() -> None:
    """What is rounded never becomes none or all."""
    parts = (0, 0.0001, 0.0123, 0.0999, 0.123456, 0.9949, 0.99999, 1)
    assert [share(part) for part in parts] == ["0 %", "< 0.1 %", "1.2 %", "10 %", "12 %", "99 %", "> 99 %", "100 %"]


@given(st.integers(-(2**63), 2**63 - 1))
@example(-62135596800_000000)
def test_any_time_is_told(microseconds: int) -> None:
    """A clock may say anything; what no calendar has is told in words."""
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|beyond all years", moment(microseconds))


@given(st.text(max_size=300), st.integers(2, 40))
def test_a_shortened_name_keeps_both_ends(name: str, width: int) -> None:
    """A name that fits stays, another loses its middle; nothing in it is obeyed by whatever shows
    it.
    """
    short = shortened(name, width)
    assert short.isprintable()
    assert len(short) <= max(width, 0)
    if "…" in short and "…" not in name:
        head, _, tail = short.partition("…")
        whole = shown(name, ValueKind.NAME)
        assert whole.startswith(head) and whole.endswith(tail)


def test_the_rest_of_a_long_table_is_counted() -> None:
    """Whatever is cut off is told with its sums, however often it is cut."""
    table = a_table(*((f"u{number}", number, None) for number in range(10)))
    assert (table.others, table.of_others) == (0, {"refused": 0})
    short = table.cut(8).cut(3)
    assert (short.others, short.of_others) == (7, {"refused": 42})


def test_a_table_on_the_page_has_the_columns_that_tell_something() -> None:
    """Those of nothing but zeros go, unless only names would be left: then zeros are
    what it tells.
    """
    assert a_table(("a", 1, None)).with_content().columns == COLUMNS[:2]
    assert a_table(("a", 0, None)).with_content().columns == COLUMNS


def test_a_caller_without_a_name_is_not_authenticated() -> None:
    """A principal that is null is shown as the caller who is not authenticated, and its column is
    never left out as empty.
    """
    columns = (COLUMNS[0], Column("principal", "Principal", ValueKind.PRINCIPAL), COLUMNS[1])
    assert ReportTable("table", "A table", columns, [("a", None, 0)]).with_content().columns == columns[:2]
    assert (shown(None, ValueKind.PRINCIPAL), shown("User:alice", ValueKind.PRINCIPAL)) == (
        "(not authenticated)",
        "User:alice",
    )


# ------------------------------------------------------------------ files


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.integers(0, 9), st.none()), max_size=5))
@example([("=1+1", 0, None), ("\t=1", 1, None), (" @x", 2, None), ("-3", 3, None), ('a,"b"\r\n', 4, None)])
@example([("\u00a0=1", 0, None), ("\ufeff+1", 0, None), (" \u200b\u3000\uff0d1", 0, None), ("\u2009\x01@x", 0, None)])
def test_csv_gives_back_what_went_in_and_no_formula(rows: list[tuple[Value, ...]]) -> None:
    """A reader of CSV gets each text, with an apostrophe before it where a spreadsheet would
    calculate (P-3a).
    """
    read = list(csv.reader(io.StringIO(as_csv(a_table(*rows)).decode(), newline="")))
    assert read[0] == ["who", "refused", "last"]
    for row, (name, refused, _) in zip(read[1:], rows, strict=True):
        assert row[0].removeprefix("'") == str(name).removeprefix("'")
        assert "".join(each for each in row[0] if each in "\t\r\n" or unicodedata.category(each)[0] not in "CZ")[
            :1
        ] not in set("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20") - {""}
        assert row[1:] == [str(refused), ""]


def test_json_has_names_as_they_are() -> None:
    """Nothing is escaped but what JSON escapes, and times are in UTC."""
    rows = [(name, 1, 1_767_225_600_123_000) for name in HOSTILE]
    read = json.loads(as_json(plain_table(a_table(*rows))))
    assert [row["who"] for row in read["rows"]] == list(HOSTILE)
    assert read["rows"][0]["last"] == "2026-01-01T00:00:00.123Z"
    assert (read["all_rows"], read["totals"]) == (len(HOSTILE), {"refused": len(HOSTILE)})


def test_results_stand_beside_the_page(tmp_path: Path) -> None:
    """The page's name gives the others theirs; what was there before is replaced, and nothing else
    is left behind.
    """
    files = Files(tmp_path / "q1.html")
    for _ in range(2):
        files.save(files.json, b"{}")
        files.save(files.csv_folder / "table.csv", as_csv(a_table()))
        files.save(files.out, b"<html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["q1-csv", "q1.html", "q1.json"]
    assert [path.name for path in files.csv_folder.iterdir()] == ["table.csv"]
    assert files.misplaced == []


@pytest.mark.parametrize(
    ("out", "complaint"),
    [
        ("missing/report.html", "no folder"),
        ("report.txt", "must end in .html"),
        ("folder.html", "is a folder"),
        ("file/report.html", "no folder"),
        ("taken.html", "is a file"),
        ("/proc/report.html", "Nothing can be written into /proc"),
    ],
)
def test_an_unwritable_place_is_found_before_the_work(tmp_path: Path, out: str, complaint: str) -> None:
    """What is wrong with --out is a sentence, at once."""
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "taken-csv").touch()
    with pytest.raises(UnwritableError, match=complaint):
        Files(tmp_path / out)


def test_a_result_that_cannot_be_written_after_all_is_kept_elsewhere(tmp_path: Path) -> None:
    """The folder is gone when the work is done: the result is in a temporary file, and the sentence
    says in which.
    """
    folder = tmp_path / "out"
    folder.mkdir()
    files = Files(folder / "report.html")
    folder.rmdir()
    folder.touch()
    where = files.save(files.out, b"<html>")
    [sentence] = files.misplaced
    assert where.read_bytes() == b"<html>"
    assert str(where) in sentence and str(files.out) in sentence


# ------------------------------------------------------------------ plots


class Reader(HTMLParser):
    """What a browser would make of it: elements and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(svg: str) -> Reader:
    reader = Reader()
    reader.feed(svg)
    return reader


def hostile_bars() -> Plot:
    series = [Series("<i>rule</i>", "s0", [3.0] * len(HOSTILE)), Series("rest", "s7", [1.0] * len(HOSTILE))]
    return bars("who", HOSTILE, series, ["4"] * len(HOSTILE))


def test_names_in_a_plot_are_texts() -> None:
    """A label may look like SVG, mathematics, a colour or a command to a terminal: it is shown,
    whole or shortened (P-3b).
    """
    for form in (hostile_bars().wide, hostile_bars().narrow):
        reader = read(form)
        assert set(reader.elements) <= {"svg", "g", "path", "text", "defs", "use", "clippath", "rect"}
        texts = {text for text in reader.texts if text.strip()}
        assert {"$x$ \\frac{1}{2} & co", "#000011", "</svg><script>alert(1)</script>", "4"} <= texts
        assert "line\\nend \\x00 \\x1b[31m" in texts
        assert any(text.startswith("xxx") and "…" in text for text in texts)


def test_a_plot_brings_no_style_and_no_colours_of_its_own() -> None:
    """Colours are those of the page's style sheet, and the page forbids other styles; nothing leads
    outside.
    """
    for svg in (hostile_bars().wide, hostile_bars().narrow):
        attributes = read(svg).attributes
        assert "style" not in {name for name, _ in attributes}
        painted = {value for name, value in attributes if name in {"fill", "stroke"}}
        assert painted <= {"none", *(f"var(--{role})" for role in COLOURS)}
        assert "http" not in svg


@pytest.mark.parametrize("role", ["good", "bad", "warn", *map(series_colour, range(SERIES))])
def test_each_colour_has_a_mark_in_legends(role: str) -> None:
    """A legend without its mark says nothing."""
    style = resources.files("minicontroller.pipeline.page").joinpath("style.css").read_text(encoding="utf-8")
    assert re.search(rf"(\.mark)?\.{role} {{ background: var\(--{role}\);", style)


def test_the_same_values_give_the_same_plot() -> None:
    """No dates, no counters, no random names (P-3b)."""
    assert hostile_bars() == hostile_bars()


@pytest.mark.parametrize("values", [[None, None], [0, 0], [1, None], [1e-9, 1e12]])
def test_any_values_can_be_drawn(values: list[float | None]) -> None:
    """A plot can be drawn of nothing, of nothing but zeros, of a single value, and of very
    different ones.
    """
    starts = [0, 1_000_000, 2_000_000]
    series = [Series("a", "s0", values, "solid"), Series("b", "s1", values, "dashed")]
    assert bars("bars", ["a", "b"], series, ["", ""]).wide
    assert bars_over_time("over-time", starts, Panel("Changes", series)).narrow
    panels = [Panel("A", series), Panel("B", series, durations=True)]
    plot = lines_over_time("lines", starts, panels)
    assert [mark.label for mark in plot.legend] == ["a", "b"]


def test_a_single_series_is_named_too() -> None:
    """A plot with one rule says which it is; only a series without a name is not in the legend."""
    named, nameless = Series("partitions", "s0", [1]), Series("", "s1", [1])
    assert [mark.label for mark in bars("bars", ["a"], [named], ["1"]).legend] == ["partitions"]
    assert bars("bars", ["a"], [nameless], ["1"]).legend == []


def test_an_isolated_value_has_a_mark() -> None:
    """No line leads to it, so it has a mark, however many steps there are."""
    starts = [step * 1_000_000 for step in range(61)]
    joined: list[float | None] = [5.0] * 30 + [None] * 30
    apart = [*joined[:-1], 7.0]
    drawn = [
        lines_over_time("lines", starts, [Panel("A", [Series("a", "s0", values, "solid")])]).wide
        for values in (joined, apart)
    ]
    assert [svg.count('"#m') for svg in drawn] == [ticks := drawn[0].count('"#m'), ticks + 1]


@contextmanager
def rc_file(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Iterator[None]:
    (folder / "matplotlibrc").write_text(text)
    monkeypatch.setenv("MATPLOTLIBRC", str(folder))
    import matplotlib as mpl

    before = mpl.rcParams.copy()
    mpl.rcParams.update(mpl.rc_params())
    yield
    mpl.rcParams.update(before)


def test_whatever_a_user_set_for_matplotlib_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """His own style file is for his own plots."""
    wanted = hostile_bars()
    with rc_file(tmp_path, monkeypatch, "axes.facecolor: red\nfont.size: 30\nsvg.fonttype: path\n"):
        assert hostile_bars() == wanted

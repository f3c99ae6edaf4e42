"""What a report says: of nothing, of one event, of clocks that go wrong, and of what is missing."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from minicontroller.audit.event import AuditEvent
from minicontroller.pipeline.datafiles import dataset
from minicontroller.pipeline.delta import Tables
from minicontroller.pipeline.page.files import Files
from minicontroller.pipeline.periods import DAY
from minicontroller.pipeline.report.making import save_figures, save_page
from minicontroller.pipeline.report.question import Report, named
from minicontroller.pipeline.report.selection import NothingSelectedError, Selection
from minicontroller.pipeline.schemas import Table
from tests.pipeline.by_hand import START_MS, a_decision, a_refusal, a_state, changed, time_of, write_tables
from tests.pipeline.report.histories import CLUSTERS, a_reign, answer, report_of, rows

DAY_MS = DAY // 1000
YEAR_MS = 365 * DAY_MS
START = START_MS * 1000


def written(report: Report, folder: Path) -> str:
    """The page."""
    files = Files(folder / "report.html")
    save_figures(report, files)
    save_page(report, files)
    assert files.misplaced == []
    return files.out.read_text()


# ------------------------------------------------------------------ nothing, and one


def test_a_report_on_nothing_says_so(spark: SparkSession, tmp_path: Path) -> None:
    """Where no event is, each question is answered by a sentence, nothing is drawn, and the tables
    are empty (P-3b).
    """
    report = report_of(spark, tmp_path / "tables", [a_decision(1)], since=START + 5 * DAY, until=START + 6 * DAY)
    answers = {question.name: question.answer(report) for question in report.questions}
    assert answers == {
        "refusals": "No changes were requested.",
        "would_be_refused": "No changes were requested.",
        "warnings": "Nothing: no rule had a finding that refused nothing.",
        "activity": "No changes were requested.",
        "principals": "No changes were requested.",
        "topics": "No changes were requested.",
        "growth": "Topics began and ended at 1, partitions began and ended at 1; 0 topics were created and 0 deleted. No prefix has more partitions than before.",
        "durations": "No change was carried out.",
        "forwarding": "No changes were requested.",
        "controllers": "The log has no events of controllers.",
        "clients": "No changes were requested.",
        "faults": "Nothing: each line is an event, and no event is missing.",
    }
    page = written(report, tmp_path)
    assert "No events from 2026-01-06 00:00 UTC until 2026-01-07 00:00 UTC" in page
    document = json.loads((tmp_path / "report.json").read_text())
    assert (document["events"], document["since"]) == (0, "2026-01-06T00:00:00Z")
    assert (tmp_path / "report-csv" / "refusals_by_rule.csv").read_text().strip().startswith("rule,refused")


def test_a_report_on_one_event_counts_one(spark: SparkSession, tmp_path: Path) -> None:
    """One refusal gives sentences about one, and plots with one bar (P-3b)."""
    report = report_of(spark, tmp_path / "tables", [a_refusal(1, principal=None)])
    assert answer(report, "refusals") == (
        "Policies refused 1 of 1 change (100 %). All refusals are by “partitions”. (not authenticated) is the only one who was refused."
    )
    assert (
        answer(report, "activity") == "1 change was requested, and 0 % of them carried out. 100 % came by CreateTopics."
    )
    assert answer(report, "principals") == "(not authenticated) alone requested changes: once."
    assert answer(report, "growth") == "There was no topic."
    assert answer(report, "controllers") == "It did not change: node 1 was the controller."
    assert answer(report, "clients") == "Most often confluent-kafka-python/2.6, once."
    rows_of_principals = re.findall(r'<td class="principal"><bdi>(.*?)</bdi>', written(report, tmp_path))
    assert len(rows_of_principals) > 1 and set(rows_of_principals) == {"(not authenticated)"}


# ------------------------------------------------------------------ clocks and gaps


def decades() -> list[AuditEvent]:
    """Of a controller whose successor's clock was behind, with a node that believed it was 1970,
    and topics that were there before.
    """
    topics = {"old.a": a_state(3), "old.b": a_state(4)}
    first = [
        *a_reign(1, topics),
        *(a_decision(4 + year, f"y.{year}", time_ms=START_MS + year * YEAR_MS) for year in range(30)),
    ]
    behind = START_MS + 29 * YEAR_MS - 40_000
    held = {**topics, **{f"y.{year}": a_state() for year in range(29)}}
    second = [
        *a_reign(2, held, time_ms=behind, decided_node=2),
        *(
            a_decision(4 + number, f"z.{number}", epoch=2, decided_node=2, time_ms=behind + number)
            for number in range(2000)
        ),
    ]
    lost = a_decision(2004, "lost", epoch=2, decided_node=2, time_ms=0)
    return [*first, *second, lost]


@pytest.fixture(name="decades", scope="module")
def report_on_decades(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    problem = {"kind": "gap", "text": "Missing.", "cluster_id": CLUSTERS[0], "epoch": 1, "events": 3}
    line = {"file": "a.ndjson", "line": 7, "reason": "not an event", "text": "secret", "ingested": time_of(START_MS)}
    others: dict[Table, list[dict[str, Any]]] = {
        Table.PROBLEMS: [problem, {"kind": "novel", "text": "New."}],
        Table.QUARANTINE: [line, line | {"line": 8}],
    }
    events = [changed(event, cluster_id=CLUSTERS[0]) for event in decades()]
    return report_of(spark, tmp_path_factory.mktemp("tables"), events, others)


def test_decades_have_years(decades: Report) -> None:
    """The axis holds the years in few steps, without the one event of 1970, which is counted beside
    it (P-3b).
    """
    assert decades.selection.axis.step == "year"
    assert decades.selection.axis.steps == 29
    assert decades.selection.beside_the_axis == 1
    assert "1970" not in answer(decades, "activity")


def test_what_a_long_table_leaves_out_is_counted(decades: Report) -> None:
    """It has its first thousand rows; how many there are, and what they add up to, is told of all
    (P-3a).
    """
    table = decades.table("activity_by_topic")
    assert (len(table.rows), table.all_rows) == (1000, 2031)
    assert (table.totals["asked"], table.of_others["asked"]) == (2031, 1031)


def test_a_clock_that_is_behind_is_told(decades: Report) -> None:
    """The next controller's first event is before the last one of the one before: by how much, and
    that it is the clock (P-3b).
    """
    assert decades.table("controller_changes").values("silence_us") == [-40_000_000]
    assert "passed in the median" in answer(decades, "controllers")
    assert "Once the clock of the next was behind." in answer(decades, "controllers")


def test_what_was_there_is_no_growth(decades: Report) -> None:
    """Topics that a cluster had when its log began are before its first step, not in it; as is what
    came, by its clock, in 1970.
    """
    assert rows(decades.table("growth_by_cluster"), "topics_before", "partitions_before") == [(3, 8)]
    assert rows(decades.table("growth_over_time"), "topics", "partitions")[0] == (4, 9)


def test_what_is_wrong_with_the_log_is_told(decades: Report, tmp_path: Path) -> None:
    """Kinds of problems in words, one that is not known by its name; of a line that is no event the
    place, not the text (P-3b).
    """
    assert answer(decades, "faults") == "The ingest found 3 missing events, novel once and 2 invalid lines."
    page = written(decades, tmp_path)
    assert "a.ndjson" in page
    assert "secret" not in page + (tmp_path / "report.json").read_text()


def test_a_page_is_the_same_each_time(decades: Report, tmp_path: Path) -> None:
    """The same figures give the same bytes, of all files (P-3b)."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert written(decades, tmp_path / "one") == written(decades, tmp_path / "two")
    assert (tmp_path / "one" / "report.json").read_bytes() == (tmp_path / "two" / "report.json").read_bytes()


# ------------------------------------------------------------------ selecting


def test_a_cluster_that_is_not_there_is_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """The error about an unknown cluster names those that are; a time that ends before it begins is
    an error, too.
    """
    tables = write_tables(tmp_path, [a_decision(1)])
    with pytest.raises(NothingSelectedError, match=r"There is no cluster nowhere .* there is cluster-of-the-tests-0"):
        Selection(spark, Tables(tables.location), clusters=["nowhere"]).check()
    with pytest.raises(NothingSelectedError, match="later than --since"):
        Selection(spark, Tables(tables.location), since=5, until=5).check()


def test_a_stretch_of_time_has_its_beginning_and_not_its_end(spark: SparkSession, tmp_path: Path) -> None:
    """--since and --until select by the events' times, to the microsecond, of the clusters that are
    wanted.
    """
    other = [a_decision(number, cluster_id=CLUSTERS[1]) for number in range(10)]
    tables = write_tables(tmp_path, [*(a_decision(number) for number in range(10)), *other])
    since, until = START + 2_000_000, START + 5_000_000
    selection = Selection(spark, Tables(tables.location), since=since, until=until, clusters=[CLUSTERS[1]])
    selection.check()
    source = dataset(tables.location, Table.EVENTS, selection.files(Table.EVENTS))  # noqa: F841 - in the query
    assert duckdb.execute(f"SELECT sequence FROM ({selection.events}) ORDER BY ALL").fetchall() == [(2,), (3,), (4,)]


def test_a_name_in_a_sentence_keeps_to_itself() -> None:
    """A long one is shortened, one from right to left is isolated, and none has control over the
    text (P-3b).
    """
    assert named("x" * 249) == "x" * 39 + "…" + "x" * 20
    assert named("\u05e9\u05dc\u05d5\u05dd") == "\u2068\u05e9\u05dc\u05d5\u05dd\u2069"
    assert named("a\u202eb") == "a\\u202eb"
    assert named(None) == "(not authenticated)"
    assert named("") == "(empty)"

"""On Spark, a back-test says what it says without: whatever the slices, the master and the
candidate; and its results are files.
"""

import copy
import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from minicontroller.audit.event import AuditEvent
from minicontroller.pipeline.backtest.candidate import Candidate, LoadedCandidate
from minicontroller.pipeline.backtest.command import backtest
from minicontroller.pipeline.backtest.counterfactual import Counterfactual
from minicontroller.pipeline.backtest.replaying import ALWAYS, Window
from minicontroller.pipeline.backtest.running import BacktestError, BacktestRequest
from minicontroller.pipeline.backtest.summary import BacktestSummary
from minicontroller.pipeline.backtest.texts import answer
from minicontroller.pipeline.backtest.verdicts import Difference
from minicontroller.pipeline.delta import Tables
from minicontroller.pipeline.ingest.state import Ledger, copied
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.page.files import Files
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import write
from tests.pipeline.backtest.asking import at_most, in_python, in_rules
from tests.pipeline.backtest.by_words import History, denied
from tests.pipeline.backtest.lives import recorded
from tests.pipeline.backtest.slicing import backtested
from tests.pipeline.backtest.test_exactness import candidate_of, settings_of
from tests.pipeline.ingest.local import ingest_on

REAL, TOLD = "real", "told-in-words-00000000"


class Tried:
    """Tables of two clusters: one lived under a policy of Python and rules, the other is told, and
    lacks something.
    """

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.settings = settings_of("both", folder)
        self.in_force = candidate_of(self.settings, folder)
        self.real = recorded(folder / "audit", self.settings, seed=5)
        self.told = a_history().events
        write(folder / "audit" / "told.ndjson", self.told)
        self.tables = Tables(Location.local(folder / "tables"))
        ingest_on(spark, self.tables.location.path, [folder / "audit"])
        self.spark = spark

    @property
    def clusters(self) -> Sequence[Sequence[AuditEvent]]:
        """In the order of their names."""
        return sorted((self.real, self.told), key=lambda events: events[0].cluster_id)

    def found(
        self, out: Path, candidate: Candidate, slice_events: int | None = None, **wish: object
    ) -> tuple[BacktestSummary, Files]:
        files = Files(out)
        asked: dict[str, Any] = {"window": ALWAYS} | wish
        request = BacktestRequest(candidate=candidate, slice_events=slice_events, bucket_events=4, **asked)
        return backtest(self.spark, self.tables, LoadedCandidate(candidate, (), ()), request, files), files


def a_history() -> History:
    """With a gap, a late snapshot, hidden values, and topics that stay."""
    history = (
        History().create("old.1", 3).create("old.2", 9, policy=denied("9 partitions are more than 5.", "partitions"))
    )
    for number in range(8):
        history.create(f"t.{number}", number + 1, configs={"some.plugin.key": "[hidden]"} if number == 6 else None)
    history.lose().grow("t.1", 7).delete("t.2").remove("t.2").elect()
    for number in range(8, 14):
        history.create(f"t.{number}", number - 5, principal="User:<script>alert(1)</script>")
    return history.adjust("t.9", {"retention.ms": "5"}).refuse("t.9", "TOPIC_ALREADY_EXISTS")


@pytest.fixture(name="tried", scope="module")
def tables_to_try(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tried:
    return Tried(tmp_path_factory.mktemp("tried"), spark)


def expected(
    tried: Tried, candidate: Candidate, *, window: Window = ALWAYS, counterfactual: bool = False
) -> list[Difference]:
    """Without Spark."""
    differences: list[Difference] = []
    for events in tried.clusters:
        differences += backtested(events, candidate, Counterfactual() if counterfactual else None, window=window)[0]
    return differences


def written(files: Files) -> list[Difference]:
    lines = files.out.with_name(f"{files.out.stem}-differences.ndjson").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Difference) for line in lines]


def same(one: Sequence[Difference], other: Sequence[Difference]) -> bool:
    """With the recorded lines, byte for byte."""
    return [msgspec.json.encode(each) for each in one] == [msgspec.json.encode(each) for each in other]


def test_the_policy_that_was_in_force_differs_in_nothing(tried: Tried, tmp_path: Path) -> None:
    """P-4a: a Python policy with its neighbour and its configuration, and rules, agree with the
    tables of what they decided.
    """
    real = tried.real[0].cluster_id
    summary, files = tried.found(tmp_path / "page.html", tried.in_force, slice_events=20, clusters=(real,))
    assert written(files) == []
    assert summary.differences == 0
    assert summary.candidate["in_force"] == summary.history["asked"] > 20
    assert summary.history["clusters"] == [real]


def digests(files: Files) -> dict[str, str]:
    folder = files.out.parent
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_slices_give_the_same_bytes(tried: Tried, tmp_path: Path) -> None:
    """One slice for each cluster or as many as can be: page, JSON, NDJSON and Parquet are the same
    to the last byte, and no other file is left.
    """
    candidate = at_most(tmp_path, 2)
    found = {}
    for slice_events in (10**9, 1):
        folder = tmp_path / str(slice_events)
        folder.mkdir()
        _, files = tried.found(folder / "page.html", candidate, slice_events)
        assert same(written(files), expected(tried, candidate))
        found[slice_events] = digests(files)
    assert found[10**9] == found[1]
    assert list(found[1]) == [
        "page-differences.ndjson",
        "page-differences.parquet",
        "page-existing.ndjson",
        "page.html",
        "page.json",
    ]


def test_any_time_and_history_as_it_would_have_been(tried: Tried, tmp_path: Path) -> None:
    """`--since` and `--until` take part of it with all that was before in mind; `--counterfactual`
    follows the candidate.
    """
    candidate = in_rules(tmp_path, "[[quota]]\nowned = 't.*'\nmax_topics = 3\n[[partitions]]\nmax = 6\n")
    times = [event.time_ms for event in tried.told]
    window = Window(times[len(times) // 2], times[-2])
    summary, files = tried.found(tmp_path / "part.html", candidate, 1, window=window)
    assert same(written(files), expected(tried, candidate, window=window))
    assert summary.history["since"] == "2026-01-01T00:00:12.000Z"
    summary, files = tried.found(tmp_path / "otherwise.html", candidate, counterfactual=True)
    assert same(written(files), expected(tried, candidate, counterfactual=True))
    assert summary.totals["moot"] and summary.totals["parted"]


def test_a_time_without_requests(tried: Tried, tmp_path: Path) -> None:
    """Nothing was asked then, which is said; the topics of today are put to the candidate all the
    same.
    """
    late = max(event.time_ms for events in tried.clusters for event in events) + 1
    window = Window(late, None)
    summary, files = tried.found(tmp_path / "page.html", at_most(tmp_path, 5), window=window)
    assert answer(summary) == "No policy judges any request of this time."
    assert written(files) == []
    assert summary.fails_on("newly-denied") == 0 < summary.fails_on("existing")


def test_a_topic_history_that_lags(tried: Tried, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where ingest was interrupted before the history was made, or is at work, no slice begins with
    topics that are not so.
    """
    candidate = in_rules(tmp_path, "[[quota]]\nowned = '*'\nmax_topics = 3\n")
    lagging = copy.copy(tried)
    lagging.tables = Tables(Location.local(tmp_path / "tables"))
    shutil.copytree(tried.tables.location.path, lagging.tables.location.path)
    ledger = Ledger(lagging.tables)
    ledger.change(copied(ledger.state), [], [])
    for file in (lagging.tables.location.path / Table.TOPIC_HISTORY.value).rglob("*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).slice(0, 1), file)
    _, files = lagging.found(tmp_path / "page.html", candidate, 1)
    assert same(written(files), expected(tried, candidate))
    assert capsys.readouterr().err.count("is older than its events") == len(tried.clusters)


def test_a_topic_history_that_cannot_be_read(tried: Tried, tmp_path: Path) -> None:
    """It is told in a sentence before any request is put to the candidate."""
    broken = copy.copy(tried)
    broken.tables = Tables(Location.local(tmp_path / "tables"))
    shutil.copytree(tried.tables.location.path, broken.tables.location.path)
    file = next((broken.tables.location.path / Table.TOPIC_HISTORY.value).glob("*.parquet"))
    file.write_bytes(b"PAR1 no more")
    with pytest.raises(BacktestError, match=rf"The tables cannot be read: .*{file.name}"):
        broken.found(tmp_path / "page.html", at_most(tmp_path, 5))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["candidate.toml", "tables"]


def test_what_the_history_lacks_is_said(tried: Tried, tmp_path: Path) -> None:
    """Gaps, uncertain requests and hidden values are in the summary, with their numbers."""
    summary, files = tried.found(tmp_path / "page.html", at_most(tmp_path, 5), clusters=(TOLD,))
    assert (summary.history["missing"], summary.history["uncertain"]) == (1, 2)
    assert summary.history["hidden"] == {"some.plugin.key": 1}
    assert summary.history["not_asked"] == {"TOPIC_ALREADY_EXISTS": 1}
    page = files.out.read_text()
    assert "1 event is missing in the log" in page and "2 requests came while not all topics were known" in page


def test_the_topics_of_today(tried: Tried, tmp_path: Path) -> None:
    """Each topic that would be refused today is listed in its newest state, with who created it."""
    summary, files = tried.found(tmp_path / "page.html", at_most(tmp_path, 5), clusters=(TOLD,))
    lines = [json.loads(line) for line in (tmp_path / "page-existing.ndjson").read_text().splitlines()]
    script = "User:<script>alert(1)</script>"
    assert [(line["topic"], line["partitions"], line["principal"]) for line in lines] == [
        *[("t.1", 7, "User:alice"), ("t.11", 6, script), ("t.12", 7, script), ("t.13", 8, script)],
        *[("t.5", 6, "User:alice"), ("t.6", 7, "User:alice"), ("t.7", 8, None)],
    ]
    assert (summary.existing["refused"], summary.fails_on("existing")) == (7, 7)
    assert summary.existing["topics"] == len(a_history().topics)
    page = files.out.read_text()
    assert "<script>alert" not in page
    assert '<td class="principal"><bdi>(not authenticated)</bdi>' in page


def rows(query: str) -> list[Any]:
    found = duckdb.sql(query)
    assert found is not None
    return found.fetchall()


def test_other_tools_read_the_differences(tried: Tried, tmp_path: Path) -> None:
    """The Parquet file has a column for what people filter by, and the lines have the events."""
    _, files = tried.found(tmp_path / "page.html", at_most(tmp_path, 5), clusters=(TOLD,))
    query = (
        f"SELECT kind, topic, rule, candidate_message, is_certain FROM '{tmp_path}/page-differences.parquet' "
        "WHERE kind = 'newly-denied' ORDER BY epoch, sequence LIMIT 1"
    )
    assert rows(query) == [("newly-denied", "t.5", "partitions", "6 partitions are more than 5.", True)]
    assert rows(f"SELECT count(*) FROM '{tmp_path}/page-differences.parquet'") == [(len(written(files)),)]


def test_a_policy_that_hangs_on_a_worker(tried: Tried, tmp_path: Path) -> None:
    """There, too, it is cut short; and what it prints there reaches nobody."""
    body = "def validate_create_topic(self, request, cluster):\n    print('x')\n    while request.topic == 't.1':\n        pass"
    candidate = in_python(tmp_path, body, "policy.timeout.ms=40")
    summary, _ = tried.found(tmp_path / "page.html", candidate, clusters=(TOLD,))
    assert summary.totals["differences"]["timed-out"] == 1
    assert summary.candidate["deeds"] == ["prints; the output is discarded"]


def test_a_policy_that_is_fit_here_only_is_told_in_a_sentence(tried: Tried, tmp_path: Path) -> None:
    """What a worker cannot load is an error of one line, not a trace of Spark's."""
    candidate = in_python(tmp_path, "pass", head="import sys\nassert 'pytest' in sys.modules, 'not here'\n")
    with pytest.raises(BacktestError, match=r"On a worker of Spark: .*AssertionError: not here"):
        tried.found(tmp_path / "page.html", candidate, clusters=(TOLD,))


def test_a_cluster_that_is_not_there(tried: Tried, tmp_path: Path) -> None:
    """A wrong id is told, and nothing is written."""
    with pytest.raises(BacktestError, match="no event of the cluster nowhere"):
        tried.found(tmp_path / "page.html", at_most(tmp_path, 5), clusters=("nowhere",))
    assert list(tmp_path.glob("page*")) == []

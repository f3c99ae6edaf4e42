"""From a worker's answers to files and a page, without Spark: many differences, hostile names, and
a disk that fails.
"""

import io
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from minicontroller.audit.event import AuditEvent
from minicontroller.pipeline.backtest import running, workers
from minicontroller.pipeline.backtest.candidate import Candidate, LoadedCandidate
from minicontroller.pipeline.backtest.command import print_summary
from minicontroller.pipeline.backtest.page import page
from minicontroller.pipeline.backtest.replaying import ALWAYS, NOWHERE
from minicontroller.pipeline.backtest.results import ON_THE_PAGE, ROW_GROUP, Results, write_differences
from minicontroller.pipeline.backtest.running import BacktestRequest
from minicontroller.pipeline.backtest.slices import Slice
from minicontroller.pipeline.backtest.summary import BacktestSummary, summarize
from minicontroller.pipeline.backtest.workers import Failure, Job, Task, answer, replay
from minicontroller.pipeline.page.files import Files
from tests.pipeline.backtest.asking import at_most
from tests.pipeline.backtest.by_words import ALLOWED, FAILED, History, denied
from tests.pipeline.backtest.files import written

SCRIPT = "<script>alert(1)</script>"


def answers(candidate: Candidate, events: Sequence[AuditEvent], folder: Path) -> list[pa.RecordBatch]:
    """A worker's, of one slice."""
    piece = written(folder / "events.parquet", events)
    slice_ = Slice("c", NOWHERE, (piece,))
    (folder / "answers").mkdir(exist_ok=True)
    name = answer(partial(replay, Job(candidate)), folder / "answers", Task(slice_))
    assert isinstance(name, str)
    return list(running.answers([folder / "answers" / name]))


def made(tmp_path: Path, candidate: Candidate, answered: Sequence[pa.RecordBatch]) -> tuple[BacktestSummary, str]:
    files = Files(tmp_path / "page.html")
    results = Results()
    write_differences(results.read(answered), files)
    summary = summarize(
        LoadedCandidate(candidate, (), ()), BacktestRequest(candidate=candidate, window=ALWAYS), ["c"], results
    )
    return summary, page(summary, results, files).decode()


def test_a_class_and_deletions_are_told_in_words(tmp_path: Path) -> None:
    """Where no rule denied, the policy did; and what was deleted already when it was to be deleted
    is no error called NONE.
    """
    history = History().create("t", 9).refuse("t", "NONE")
    summary, told = made(tmp_path, at_most(tmp_path, 5), answers(at_most(tmp_path, 5), history.events, tmp_path))
    existing = {"topics": 1, "refused": 1, "by_rule": [("c", "", 1)]}
    said = io.StringIO()
    print_summary(msgspec.structs.replace(summary, existing=existing), said)
    assert "1 topic exists today; 1 would be refused.\n  1 by the policy in c" in said.getvalue()
    for text in (told, said.getvalue()):
        assert "deletions of topics that were already deleted (1)" in text


def test_what_a_gateway_only_observed_is_history_as_it_happened(tmp_path: Path) -> None:
    """What passed counts as passed, and what the cluster refused as its error, whatever the rules
    said that were not enforced; the page shows what they had said.
    """
    objects = denied("9 partitions are more than 5.", "partitions")
    observed: dict[str, Any] = {"enforced": False}
    history = History().create("passed", 9, policy=objects, **observed).create("small", 2, policy=ALLOWED, **observed)
    history.create("failed", 9, policy=objects, **FAILED).create("failed-small", 2, policy=ALLOWED, **FAILED)
    history.create("asked", 9, policy=objects, validate_only=True, **observed)
    for most, denials, same in ((5, 2, 1), (9, 0, 3)):
        candidate = at_most(tmp_path, most)
        summary, told = made(tmp_path, candidate, answers(candidate, history.events, tmp_path))
        fails = [summary.fails_on(each) for each in ("newly-denied", "newly-allowed", "changed")]
        assert (fails, summary.totals["same"]) == ([denials, 0, denials], same)
        assert (summary.history["observed"], summary.history["not_asked"]) == (3, {"INVALID_CONFIG": 2})
        assert "The verdicts on 3 requests were not enforced" in told and "nobody knows" not in told
        assert ("not enforced then" in told) is (denials > 0)


def test_a_hundred_thousand_differences(tmp_path: Path) -> None:
    """All of them are in the files; the page has room for some, of each kind, and says where the
    others are.
    """
    history = History()
    for number in range(300):
        history.create(f"t.{number}", 9)
    candidate = at_most(tmp_path, 5)
    *many, tally = pa.Table.from_batches(answers(candidate, history.events, tmp_path)).to_batches(300)
    repeated = [batch for _ in range(334) for batch in many]
    summary, text = made(tmp_path, candidate, [*repeated, tally])
    lines = (tmp_path / "page-differences.ndjson").read_bytes().count(b"\n")
    table = pq.read_metadata(tmp_path / "page-differences.parquet")
    assert lines == table.num_rows >= 100_000
    assert {table.row_group(number).num_rows for number in range(table.num_row_groups - 1)} == {ROW_GROUP}
    assert text.count("<details data-kind=") == ON_THE_PAGE
    assert "page-differences.ndjson" in text
    assert summary.totals["differences"]["newly-denied"] == 300


def test_large_differences_are_written_few_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of topics with many partitions have megabytes: not thousands wait in memory."""
    monkeypatch.setattr(workers, "OUT_BYTES", 10_000)
    history = History()
    for number in range(9):
        history.create(f"t.{number}", 500)
    answered = answers(at_most(tmp_path, 5), history.events, tmp_path)
    assert [len(batch) for batch in answered] == [2, 2, 2, 2, 2]
    summary, _ = made(tmp_path, at_most(tmp_path, 5), answered)
    assert summary.totals["differences"]["newly-denied"] == 9
    assert (tmp_path / "page-differences.ndjson").read_bytes().count(b"\n") == 9


def test_the_files_do_not_depend_on_how_the_answers_are_cut(tmp_path: Path) -> None:
    """Nor on what Parquet makes of columns with megabytes of different texts."""
    [answered] = answers(at_most(tmp_path, 5), History().create("t", 9).events, tmp_path)
    table = pa.Table.from_batches([answered.slice(0, 1)] * 12_000)
    told = pa.array([f"{number:>500}" for number in range(len(table))])
    table = table.set_column(table.schema.names.index("candidate_message"), "candidate_message", told).combine_chunks()

    def files(size: int) -> list[bytes]:
        write_differences(Results().read(table.to_batches(size)), Files(tmp_path / "page.html"))
        return [(tmp_path / f"page-differences.{ending}").read_bytes() for ending in ("ndjson", "parquet")]

    assert files(7) == files(2000)


@pytest.mark.parametrize("ending", ["ndjson", "parquet"])
def test_a_disk_that_is_full_is_told_of_the_file_that_has_no_room(tmp_path: Path, ending: str) -> None:
    """Whichever it is, neither gets its name."""
    answered = answers(at_most(tmp_path, 5), History().create("t", 9).events, tmp_path)
    part = tmp_path / f".page-differences.{ending}.part"
    part.symlink_to("/dev/full")
    with pytest.raises(OSError, match=rf"No space left on device: '.*/page-differences\.{ending}'"):
        write_differences(Results().read(answered), Files(tmp_path / "page.html"))
    assert list(tmp_path.glob("*page*")) == [] == list(tmp_path.glob(".*"))


def test_names_of_the_log_are_text(tmp_path: Path) -> None:
    """A principal, a topic, a config or a message that is named like a script or turns the line
    stays what it is; nothing is loaded.
    """
    history = History().create(
        SCRIPT, 9, principal=f"User:{SCRIPT}", configs={SCRIPT: f"\u202e{SCRIPT}"}, client_id=SCRIPT
    )
    candidate = at_most(tmp_path, 5)
    _, text = made(tmp_path, candidate, answers(candidate, history.events, tmp_path))
    assert SCRIPT not in text and "&lt;script&gt;" in text
    assert "\u202e" not in text
    assert re.findall(r"""(?:src|href)="(?!data:|#)""", text) == []


def test_no_difference_is_a_page_too(tmp_path: Path) -> None:
    """A page without differences says so, and there is nothing to unfold."""
    candidate = at_most(tmp_path, 9)
    summary, text = made(tmp_path, candidate, answers(candidate, History().create("t").events, tmp_path))
    assert summary.differences == 0
    assert "1 request: the candidate gives each the verdict that it had." in text
    assert "<details data-kind=" not in text


@pytest.mark.parametrize("is_light", [False, True], ids=["read as a whole", "carried"])
def test_a_line_that_is_no_event_is_a_failure_of_its_own(tmp_path: Path, *, is_light: bool) -> None:
    """A damaged table is told in a sentence, nobody tries again, and no answer is left half."""
    history = History(snapshot=False).create("t") if is_light else History().create("t")
    piece = written(tmp_path / "events.parquet", history.events, line="{}")
    work = partial(replay, Job(at_most(tmp_path, 5)))
    (tmp_path / "answers").mkdir()
    failure = answer(work, tmp_path / "answers", Task(Slice("c", NOWHERE, (piece,))))
    assert isinstance(failure, Failure)
    assert failure.text.startswith("The table of events holds a line that is not an event")
    assert list((tmp_path / "answers").iterdir()) == []


def test_a_failure_on_the_way_is_the_tasks_own(tmp_path: Path) -> None:
    """A topic history that is gone meanwhile is what is wrong with the task."""
    task = Task(Slice("c", (1, 1), ()), (str(tmp_path / "gone.parquet"),))
    failure = answer(partial(replay, Job(at_most(tmp_path, 5))), tmp_path, task)
    assert isinstance(failure, Failure)
    assert "gone.parquet" in failure.text


def test_a_file_that_cannot_be_written_leaves_nothing_half(tmp_path: Path) -> None:
    """What is there has its name when it is complete."""
    candidate = at_most(tmp_path, 5)
    answered = answers(candidate, History().create("t", 9).events, tmp_path)

    def failing() -> Iterator[pa.RecordBatch]:
        yield from Results().read(answered)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: '.*/page-differences\.(ndjson|parquet)'"):
        write_differences(failing(), Files(tmp_path / "page.html"))
    assert list(tmp_path.glob("*page*")) == [] == list(tmp_path.glob(".*"))


def test_the_summary_is_json(tmp_path: Path) -> None:
    """Differences as NDJSON are one object a line, with the event as it was recorded."""
    candidate = at_most(tmp_path, 5)
    made(tmp_path, candidate, answers(candidate, History().create("t", 9).events, tmp_path))
    [line] = (tmp_path / "page-differences.ndjson").read_text().splitlines()
    difference = json.loads(line)
    assert (difference["kind"], difference["event"]["name"]) == ("newly-denied", "t")
    assert difference["candidate"]["message"] == "9 partitions are more than 5."

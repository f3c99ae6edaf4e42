"""The topics at the begin of slices, and those of today, out of the files of `topic_history`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from minicontroller.audit.event import AuditEvent, Decision, RecordedState
from minicontroller.audit.replay import Replay
from minicontroller.pipeline.backtest.reading import UnreadableTableError
from minicontroller.pipeline.backtest.topics import check_readable, may_have, states_after, topics_today
from minicontroller.pipeline.datafiles import DataFile
from minicontroller.pipeline.ingest.sequence_ranges import Position
from minicontroller.pipeline.schemas import Table
from tests.pipeline.backtest.by_words import History
from tests.pipeline.backtest.test_slices import a_life
from tests.pipeline.ingest.test_topic_history import Ingested

LIVES = {f"life-{seed}": a_life(seed) for seed in range(20)}


@pytest.fixture(name="ingested", scope="module")
def of_all_lives(tmp_path_factory: pytest.TempPathFactory) -> Ingested:
    ingested = Ingested(tmp_path_factory.mktemp("lives"))
    ingested.take(LIVES)
    return ingested


@pytest.fixture(name="folder", scope="module")
def of_the_topic_history(ingested: Ingested) -> Path:
    return ingested.tables.folder(Table.TOPIC_HISTORY).path


@pytest.fixture(name="files", scope="module")
def by_cluster(ingested: Ingested) -> Mapping[str, Sequence[DataFile]]:
    """Return the files of each cluster's topic history."""
    found = ingested.tables.snapshot(Table.TOPIC_HISTORY).of_clusters()
    assert max(map(len, found.values())) > 1
    return found


def replayed(events: Sequence[AuditEvent]) -> Iterator[tuple[Position, Mapping[str, RecordedState]]]:
    """The topics after each event; a gap ends all that was known."""
    replay, last = Replay(), (0, 0)
    for event in events:
        if event.sequence != (last[1] + 1 if event.epoch == last[0] else 1):
            replay = Replay()
        last = event.epoch, event.sequence
        for _ in replay.apply(event):
            pass
        yield last, dict(replay.topics)


def test_slices_begin_with_what_a_replay_has(files: Mapping[str, Sequence[DataFile]], folder: Path) -> None:
    """After any event of any log: the same topics in the same states, whatever was lost, out of the
    files that may tell.
    """
    skipped = 0
    for name, events in LIVES.items():
        for place, topics in list(replayed(events))[::9]:
            telling = [str(folder / file.path) for file in files[name] if may_have(file, place)]
            skipped += len(files[name]) - len(telling)
            assert dict(states_after(telling, place)) == topics, (name, place)
    assert skipped


def test_the_topics_of_today(files: Mapping[str, Sequence[DataFile]], folder: Path) -> None:
    """Those after the last event, each with who created it, if the log tells it of
    this very topic.
    """
    known = 0
    for name, events in LIVES.items():
        *_, (_, topics) = replayed(events)
        made = {
            (event.name, event.after.topic_id): event.principal
            for event in events
            if isinstance(event, Decision) and event.operation == "create_topic" and event.after is not None
        }
        found = {each.topic: each for each in topics_today([str(folder / file.path) for file in files[name]])}
        assert {topic: each.state for topic, each in found.items()} == topics
        principals = {topic: each.principal for topic, each in found.items() if each.principal is not None}
        assert principals == {topic: made[topic, topics[topic].topic_id] for topic in principals}
        known += len(principals)
    assert known > len(LIVES) / 4


def test_a_state_arrives_as_it_was(tmp_path: Path) -> None:
    """Partitions without replicas, configs of any text, a topic that is going: nothing is lost on
    the way.
    """
    history = History().create("a", 3, configs={"retention.ms": "1", "x": "\u00e9\n'"}).create("b").delete("b")
    odd = {"replicas": ((1, 2, 3), (), (2,)), "internal": True, "created_ms": None}
    events = history.observe("c", RecordedState(topic_id="C" * 22, configs={}, marked_for_deletion=False, **odd)).events  # type: ignore[arg-type]
    ingested = Ingested(tmp_path)
    ingested.take({"c": events})
    files = [str(path) for path in ingested.tables.folder(Table.TOPIC_HISTORY).path.glob("*.parquet")]
    assert dict(states_after(files, (events[-1].epoch, events[-1].sequence))) == history.topics


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    """An ingest takes files away; what to do stands in the sentence."""
    for ask in (lambda files: list(topics_today(files)), check_readable):
        with pytest.raises(UnreadableTableError, match=r"changed during the run .*gone\.parquet.*: run it again"):
            ask([str(tmp_path / "gone.parquet")])

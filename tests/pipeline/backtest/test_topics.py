"""The topics at the begin of slices, and those of today, out of the files of `topic_history`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from minicontroller.audit.event import AuditEvent, Decision, RecordedState
from minicontroller.audit.replay import Replay
from minicontroller.pipeline.backtest.existing import Existing
from minicontroller.pipeline.backtest.reading import UnreadableTableError
from minicontroller.pipeline.backtest.replaying import Place
from minicontroller.pipeline.backtest.topics import Lived, Today, existing, states, states_at_begins, states_today
from minicontroller.pipeline.schemas import Table
from tests.pipeline.backtest.by_words import History
from tests.pipeline.backtest.test_slices import a_life
from tests.pipeline.ingest.test_topic_history import Ingested

LIVES = {f"life-{seed}": a_life(seed) for seed in range(60)}


@pytest.fixture(name="files", scope="module")
def of_the_topic_history(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[str]]:
    """Return the files of each cluster's topic history."""
    ingested = Ingested(tmp_path_factory.mktemp("lives"))
    ingested.take(LIVES)
    found = ingested.tables.snapshot(Table.TOPIC_HISTORY).of_clusters()
    folder = ingested.tables.folder(Table.TOPIC_HISTORY)
    assert max(map(len, found.values())) > 1
    return {name: [folder.child(file.path).uri for file in files] for name, files in found.items()}


def replayed(events: Sequence[AuditEvent]) -> Iterator[tuple[Place, Mapping[str, RecordedState]]]:
    """The topics after each event; a gap ends all that was known."""
    replay, last = Replay(), (0, 0)
    for event in events:
        if event.sequence != (last[1] + 1 if event.epoch == last[0] else 1):
            replay = Replay()
        last = event.epoch, event.sequence
        for _ in replay.apply(event):
            pass
        yield last, dict(replay.topics)


def test_slices_begin_with_what_a_replay_has(files: Mapping[str, Sequence[str]]) -> None:
    """After any event of any log: the same topics in the same states, whatever was lost, and
    however many slices ask at once.
    """
    for name, events in LIVES.items():
        expected = list(replayed(events))
        for step in (1, 3):
            begins = tuple((place, 100 + number) for number, (place, _) in enumerate(expected))[::step]
            found: dict[int, dict[str, RecordedState]] = {number: {} for _, number in begins}
            for file in files[name]:
                for number, packed in states_at_begins(Lived(file, begins)):
                    found[number].update(states(packed))
            assert found == {100 + number: expected[number][1] for number in range(0, len(expected), step)}, name


def test_the_topics_of_today(files: Mapping[str, Sequence[str]]) -> None:
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
        found: dict[str, Existing] = {}
        for number, packed in states_today(Today(tuple(files[name]), 7)):
            assert number == 7
            found |= {each.topic: each for each in existing(packed)}
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
    Ingested(tmp_path).take({"c": events})
    last = events[-1].epoch, events[-1].sequence
    found: dict[str, RecordedState] = {}
    for file in (tmp_path / Table.TOPIC_HISTORY.value).rglob("*.parquet"):
        for _, packed in states_at_begins(Lived(str(file), ((last, 0),))):
            found.update(states(packed))
    assert found == history.topics


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    """An ingest takes files away; what to do stands in the sentence."""
    with pytest.raises(UnreadableTableError, match=r"changed meanwhile .*gone\.parquet.*: run it again"):
        list(states_today(Today((str(tmp_path / "gone.parquet"),), 0)))

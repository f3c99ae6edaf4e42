"""The table `topic_history`, held against a replay of the same events."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from minicontroller.audit.event import (
    AuditEvent,
    Effect,
    NamedState,
    Observed,
    RecordedState,
    Removal,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
    encode,
)
from minicontroller.audit.replay import Replay
from minicontroller.pipeline.database import database
from minicontroller.pipeline.datafiles import DataFile, NewFile, dataset
from minicontroller.pipeline.delta import Tables
from minicontroller.pipeline.ingest import topic_history
from minicontroller.pipeline.ingest.columns import event_rows
from minicontroller.pipeline.ingest.sequence_ranges import SequenceRange, add
from minicontroller.pipeline.ingest.staging import markers_in
from minicontroller.pipeline.ingest.state import ClusterLogState, EpochState
from minicontroller.pipeline.ingest.topic_history import MOST_SMALL, Sizes, Stale, changes
from minicontroller.pipeline.location import Location
from minicontroller.pipeline.schemas import Table
from tests.audit.logs import a_creation, a_state, an_empty_snapshot, stamp

HISTORIES = 40
"""Each as a cluster of its own."""
RUNS = 3
"""Of ingest."""
SIZES = Sizes(run_rows=16, portion=8000, least=1000)
"""So small that there are several of each."""

TOPICS = st.sampled_from(["ebi", "euh", "ahq"])
STATES = st.builds(
    a_state,
    topic_id=st.sampled_from(["A" * 22, "B" * 22]),
    replicas=st.sampled_from([((1, 2),), ((2, 1),), ((1, 2), (2, 1)), ()]),
    configs=st.sampled_from([{}, {"x": "1", "y": "2"}, {"y": "2", "x": "1"}, {"x": "2"}]),
    marked_for_deletion=st.booleans(),
    internal=st.just(False),
    created_ms=st.sampled_from([None, 5]),
)
MAYBE = st.one_of(st.none(), STATES)

Log = Sequence[tuple[int, AuditEvent]]
"""Events, each with the number of the run of ingest that finds it."""
Row = Mapping[str, Any]
"""Of the table."""
Maker = Any
"""From a stamp to an event."""


def decision(topic: str, after: RecordedState | None, effect: Effect, operation: str) -> Maker:
    return lambda place: replace(
        a_creation(1, topic, after=after, effect=effect, operation=operation), **{**place, "request": place["sequence"]}
    )


def snapshot(parts: Sequence[Mapping[str, RecordedState]], *, is_whole: bool) -> list[Maker]:
    named = [tuple(NamedState(topic=topic, state=state) for topic, state in part.items()) for part in parts]
    count = len({topic for part in parts for topic in part})
    begin = [lambda place: SnapshotBegin(**place, reason="reread", cluster_size=1, topics=count)]
    topics = [lambda place, each=each: SnapshotTopics(**place, topics=each) for each in named]
    end = [lambda place: SnapshotEnd(**place, topics=count)] if is_whole else []
    return [*begin, *topics, *end]


CHANGES = st.one_of(
    st.builds(
        decision,
        TOPICS,
        MAYBE,
        st.sampled_from([Effect.APPLIED, Effect.APPLIED, Effect.NONE, Effect.UNKNOWN]),
        st.sampled_from(["create_topic", "delete_topic", "alter_configs"]),
    ),
    TOPICS.map(lambda topic: lambda place: Removal(**place, topic=topic, before=None)),
    st.tuples(TOPICS, MAYBE).map(
        lambda each: lambda place: Observed(**place, topic=each[0], before=None, after=each[1])
    ),
).map(lambda maker: [maker])
SNAPSHOTS = st.lists(st.dictionaries(TOPICS, STATES), max_size=3)
EPOCHS = st.tuples(
    SNAPSHOTS.map(lambda parts: snapshot(parts, is_whole=True)),
    st.lists(st.one_of(CHANGES, CHANGES, SNAPSHOTS.map(lambda parts: snapshot(parts, is_whole=True))), max_size=12),
    st.one_of(st.just([]), SNAPSHOTS.map(lambda parts: snapshot(parts, is_whole=False))),
)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """A few epochs, of which some events were lost."""
    found: list[tuple[int, AuditEvent]] = []
    for epoch, (begin, middle, end) in enumerate(draw(st.lists(EPOCHS, min_size=1, max_size=3)), start=1):
        makers = [*begin, *(maker for makers in middle for maker in makers), *end]
        lost = draw(st.sets(st.integers(1, len(makers)), max_size=2)) if draw(st.booleans()) else set()
        only = draw(st.integers(0, RUNS - 1))
        is_mixed = draw(st.booleans())
        runs = draw(st.lists(st.integers(0, RUNS - 1), min_size=len(makers), max_size=len(makers)))
        for sequence, (maker, run) in enumerate(zip(makers, runs, strict=True), start=1):
            if sequence not in lost:
                found.append((run if is_mixed else only, maker(stamp(sequence, epoch))))
    return found


def expected(events: Sequence[AuditEvent]) -> Iterator[tuple[tuple[int, int], dict[str, tuple[Any, ...]]]]:
    """The topics after each event; a gap ends all that was known."""
    replay, epoch, sequence = Replay(), 0, 0
    for event in events:
        if event.sequence != (sequence + 1 if event.epoch == epoch else 1):
            replay = Replay()
        epoch, sequence = event.epoch, event.sequence
        for _ in replay.apply(event):
            pass
        yield (epoch, sequence), {name: plain(state) for name, state in replay.topics.items()}


def plain(state: RecordedState) -> tuple[Any, ...]:
    return state.topic_id, [list(row) for row in state.replicas], state.configs, state.marked_for_deletion


def shown(rows: Sequence[Row], place: tuple[int, int]) -> dict[str, tuple[Any, ...]]:
    assert all(begin(row) < end(row) for row in rows)
    there = [row for row in rows if begin(row) <= place < end(row)]
    assert len({row["topic"] for row in there}) == len(there), place
    return {
        row["topic"]: (row["topic_id"], row["replicas"], dict(row["configs"]), row["marked_for_deletion"])
        for row in there
    }


def begin(row: Row) -> tuple[int, int]:
    return row["from_epoch"], row["from_sequence"]


def end(row: Row) -> tuple[float, float]:
    return (row["until_epoch"], row["until_sequence"]) if row["until_cause"] else (float("inf"), 0)


def places(row: Row) -> Iterator[tuple[tuple[int, int], float]]:
    """Where and when a row begins and ends."""
    for end in ("from", "until"):
        if row[f"{end}_cause"]:
            yield (row[f"{end}_epoch"], row[f"{end}_sequence"]), row[f"{end}_time"].timestamp() * 1000


class Ingested:
    """Events and topic history in tables, and what is known of the clusters."""

    def __init__(self, folder: Path, sizes: Sizes = SIZES) -> None:
        self._sizes = sizes
        self.location = Location.local(folder)
        self.tables = Tables(self.location)
        self.clusters: dict[str, ClusterLogState] = {}

    def take(self, logs: Mapping[str, Sequence[AuditEvent]]) -> None:
        """Bring events of some clusters into the tables, and then the topic history up to date."""
        places = {name: min((each.epoch, each.sequence) for each in log) for name, log in logs.items()}
        self._commit(Table.EVENTS, ([self._written(*each) for each in logs.items()], []))
        self.derive({name: Stale.since(place, self.clusters[name]) for name, place in places.items()})

    def derive(self, stale: Mapping[str, Stale]) -> None:
        events, history = map(self.tables.snapshot, (Table.EVENTS, Table.TOPIC_HISTORY))
        self._commit(
            Table.TOPIC_HISTORY,
            changes(here, 2, self.location, events=events, history=history, stale=stale, sizes=self._sizes),
        )

    def rows(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {name: [] for name in self.clusters}
        history = self.tables.snapshot(Table.TOPIC_HISTORY)
        for row in dataset(self.location, Table.TOPIC_HISTORY, history.files).to_table().to_pylist():
            found[row["cluster_id"]].append(row)
        return found

    def history(self) -> Sequence[DataFile]:
        return self.tables.snapshot(Table.TOPIC_HISTORY).files

    def _written(self, name: str, log: Sequence[AuditEvent]) -> DataFile:
        cluster = self.clusters.setdefault(name, ClusterLogState())
        rows = event_rows([encode(replace(event, cluster_id=name)).strip() for event in log])
        cluster.markers += markers_in(rows)
        for event in log:
            epoch = cluster.epochs.setdefault(event.epoch, EpochState(1))
            add(epoch.ranges, SequenceRange(event.sequence, event.sequence, event.time_ms, event.time_ms))
        file = NewFile(self.location, Table.EVENTS, name)
        file.write(rows.select(Table.EVENTS.in_files.names))
        return file.finish()

    def _commit(self, table: Table, made: tuple[list[DataFile], list[DataFile]]) -> None:
        before = self.tables.snapshot(table)
        self.tables.commit(before, before.change + 1, *made)


def here(work: Any, pieces: Sequence[Any], **_: Any) -> list[Any]:
    """Work without Spark."""
    return [work(piece) for piece in pieces]


def test_the_history_is_what_a_replay_gives(tmp_path: Path) -> None:
    """At each place of any log the table shows the topics that the replay has there, whatever was
    lost, cut into files, or came late: after each run as if all had been made anew (P-2b).
    """
    clusters: dict[str, Log] = {}

    @given(logs())
    @settings(max_examples=HISTORIES, phases=[Phase.generate])
    def collect(log: Log) -> None:
        clusters[f"cluster-{len(clusters)}"] = log

    collect()
    ingested, anew = Ingested(tmp_path / "tables"), Ingested(tmp_path / "anew")
    rows = ingested.rows()
    for number in range(RUNS):
        ingested.take(of_runs(clusters, number, number))
        rows = ingested.rows()
        for cluster, log in of_runs(clusters, 0, number).items():
            for place, topics in expected(log):
                assert shown(rows[cluster], place) == topics, (cluster, place, log, rows[cluster])
            times = {(event.epoch, event.sequence): event.time_ms for event in log}
            assert all(time_ms == times[place] for row in rows[cluster] for place, time_ms in places(row))
    anew.take(of_runs(clusters, 0, RUNS))
    assert {name: in_order(some) for name, some in anew.rows().items()} == {
        name: in_order(some) for name, some in rows.items()
    }


def of_runs(clusters: Mapping[str, Log], first: int, last: int) -> dict[str, list[AuditEvent]]:
    """The events that some runs of ingest find, in the order of the log."""
    found = {name: [event for run, event in log if first <= run <= last] for name, log in clusters.items()}
    return {name: events for name, events in found.items() if events}


def in_order(rows: Sequence[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["topic"], *begin(row)))


def test_a_small_increment_leaves_what_has_ended(tmp_path: Path) -> None:
    """Of a history of two epochs it writes the rows anew that last, and no row that has ended."""
    ingested, states = Ingested(tmp_path), [a_state(1 + number % 3) for number in range(12)]
    log = [
        change
        for epoch in (1, 2)
        for change in (
            *an_empty_snapshot(epoch),
            *(
                a_creation(3 + number, f"t{number % 2}", epoch, before=before, after=after)
                for number, (before, after) in enumerate(pairwise(states[:11]))
            ),
        )
    ]
    ingested.take({"c": log})
    before = {file.path for file in ingested.history() if not file.nulls["until_epoch"]}
    ingested.take({"c": [a_creation(13, "t0", 2, before=states[10], after=states[11])]})
    after = {file.path: file for file in ingested.history()}
    assert before
    assert before < set(after)
    assert sorted(file.rows for path, file in after.items() if path not in before) == [1, 2]


@pytest.mark.parametrize(("size", "rows"), [(10_000, 1_000_000), (1_000_000, 500)], ids=["bytes", "rows"])
def test_small_files_are_merged_and_large_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, rows: int
) -> None:
    """However often something is added behind a history, its large files stay, and the small ones
    do not become many.
    """
    monkeypatch.setattr(topic_history, "SMALL_ROWS", rows)
    ingested, states = Ingested(tmp_path, Sizes(small=size)), [a_state(1), a_state(2)]
    topics = [f"{number:x}".rjust(22, "A") for number in Random(1).sample(range(16**12), 1000)]
    changes_ = enumerate(((topic, state) for state in (None, *states) for topic in topics), start=3)
    log = [
        a_creation(number, topic, before=state, after=states[state in states]) for number, (topic, state) in changes_
    ]
    ingested.take({"c": [*an_empty_snapshot(1), *log]})
    ended = [file for file in ingested.history() if not file.nulls["until_epoch"]]
    large = {file.path for file in ended if file.size >= size or file.rows >= rows}
    assert large
    for number in range(MOST_SMALL + 6):  # more than may be, if they were not merged
        before, after = states[number % 2], states[1 - number % 2]
        ingested.take({"c": [a_creation(3 + len(log) + number, topics[0], before=before, after=after)]})
        files = {file.path for file in ingested.history()}
        assert large <= files
        assert len(files - large) <= MOST_SMALL + 3


@pytest.fixture(name="row_of")
def row_of_fixture(tmp_path: Path) -> Any:
    def rows(events: Sequence[AuditEvent]) -> list[Row]:
        ingested = Ingested(tmp_path)
        ingested.take({"c": events})
        return sorted(ingested.rows()["c"], key=begin)

    return rows


def test_a_snapshot_without_its_begin_tells_nothing(row_of: Any) -> None:
    """What later events show is new, though the rest of such a snapshot showed the same."""
    state = a_state()
    [row] = row_of(
        [
            SnapshotTopics(**stamp(2), topics=(NamedState(topic="t", state=state),)),
            SnapshotEnd(**stamp(3), topics=1),
            *(a_creation(n, "t", before=state, after=state, effect=Effect.NONE) for n in (4, 5)),
        ]
    )
    assert (row["topic"], *begin(row), row["from_cause"]) == ("t", 1, 4, "seen")


def test_who_made_a_state_and_who_ended_it(row_of: Any) -> None:
    """A state begins and ends with an event, its cause and the principal who asked; equal
    neighbours are one row.
    """
    one, two = a_state(created_ms=3), a_state(2, created_ms=3, configs={"retention.ms": "1"})
    gone = replace(two, marked_for_deletion=True)
    [first, second, third] = row_of(
        [
            *an_empty_snapshot(),
            a_creation(3, after=one),
            a_creation(4, before=one, after=one, effect=Effect.NONE, operation="create_topic", principal="User:bob"),
            a_creation(5, before=one, after=two, operation="alter_configs", principal="User:carol"),
            a_creation(6, before=two, after=gone, operation="delete_topic", principal=None),
            SnapshotBegin(**stamp(1, 2), reason="elected", cluster_size=1, topics=1),
            SnapshotTopics(**stamp(2, 2), topics=(NamedState(topic="t", state=gone),)),
            SnapshotEnd(**stamp(3, 2), topics=1),
            Removal(**stamp(4, 2), topic="t", before=gone),
        ]
    )
    assert (first["from_sequence"], first["from_cause"], first["from_principal"]) == (3, "create_topic", "User:alice")
    assert (first["until_sequence"], first["until_cause"], first["until_principal"]) == (
        5,
        "alter_configs",
        "User:carol",
    )
    assert (second["partitions"], second["replication_factor"], second["configs"]) == (2, 1, [("retention.ms", "1")])
    assert (third["marked_for_deletion"], third["from_principal"], third["created"].microsecond) == (True, None, 3000)
    assert (third["until_epoch"], third["until_sequence"], third["until_cause"]) == (2, 4, "removal")
    assert first["until_time"] == second["from_time"]


def test_snapshots_and_gaps_end_what_was_known(row_of: Any) -> None:
    """A topic that a snapshot lacks ends there; what was known ends at a gap, and what an event
    shows later was `seen`.
    """
    state = a_state()
    rows = row_of(
        [
            *an_empty_snapshot(),
            a_creation(3, "vanishes", after=state),
            SnapshotBegin(**stamp(4), reason="reread", cluster_size=1, topics=1),
            SnapshotTopics(**stamp(5), topics=(NamedState(topic="found", state=state),)),
            SnapshotEnd(**stamp(6), topics=1),
            a_creation(8, "shown", before=state, after=state, effect=Effect.NONE),
        ]
    )
    assert [
        (row["topic"], *begin(row), row["from_cause"], row["until_sequence"], row["until_cause"]) for row in rows
    ] == [
        ("vanishes", 1, 3, "create_topic", 6, "snapshot"),
        ("found", 1, 6, "snapshot", 8, "gap"),
        ("shown", 1, 8, "seen", None, None),
    ]


def test_a_topic_that_a_snapshot_tells_twice(row_of: Any) -> None:
    """The state that stands last in the log holds, for each of many topics."""
    names = [f"t{number}" for number in range(24)]
    told = tuple(NamedState(topic=name, state=a_state(partitions)) for partitions in (1, 2) for name in names)
    events = [
        SnapshotBegin(**stamp(1), reason="elected", cluster_size=1, topics=len(told)),
        SnapshotTopics(**stamp(2), topics=told),
        SnapshotEnd(**stamp(3), topics=len(told)),
    ]
    assert sorted((row["topic"], row["partitions"]) for row in row_of(events)) == sorted((name, 2) for name in names)


def test_what_duckdb_cannot_do_is_an_error_of_a_file() -> None:
    """Such as a disk that is full while it sorts: the command makes a sentence of it."""
    with (
        pytest.raises(OSError, match=r"DuckDB cannot work there \(.*too much\): make room") as caught,
        database() as found,
    ):
        found.sql("SELECT error('too much')").fetchall()
    assert "minicontroller-" in caught.value.filename

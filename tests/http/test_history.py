"""The history of topics: from the audit log if there is one, also if it is damaged; otherwise from
memory, which the answer says.
"""

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.audit.event import AuditEvent, Dropped, Observed, PolicyDecision, Removal, RuleFinding
from minicontroller.audit.files import file_name
from minicontroller.controller.http.node_site import ShownNodes
from minicontroller.controller.http.process import Process
from minicontroller.controller.node.app import RunningNode
from minicontroller.network.http.history import (
    MAX_WAITING,
    ROWS,
    BusyError,
    HistoryFilter,
    HistoryReader,
    deleted_topic,
    history_entry,
)
from minicontroller.network.limits import ConnectionLimits
from minicontroller.network.server import Server
from minicontroller.network.serving.context import Routes
from minicontroller.network.serving.dispatcher import Dispatcher
from tests.audit.logs import a_creation, a_log, a_state, stamp
from tests.handlers.ruling import ruling
from tests.http.conftest import POLICY
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.http import ask, create, delete, history, told
from tests.support.waiting import until
from tests.support.wire import Wire

LONG_MS = "3600000"
"""Nothing is in the files because some time has passed."""


@pytest.fixture(name="folder", scope="module")
def of_the_audit_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("audit")


@pytest.fixture(name="recorded", scope="module")
def with_an_audit_log(folder: Path) -> Iterator[MiniCluster]:
    file = folder.parent / "teams.py"
    file.write_text(POLICY)
    settings = {
        "topic.management.policy.class.name": f"{file}:Teams",
        "audit.dir": str(folder),
        "audit.flush.interval.ms": LONG_MS,
        "audit.max.bytes": "100000",
    }
    with running_cluster(settings=settings) as cluster:
        yield cluster


def push_out(cluster: MiniCluster, prefix: str) -> None:
    """More decisions than are remembered."""
    create(cluster, *(f"{prefix}-{number}" for number in range(300)))


def test_it_comes_from_the_audit_log(recorded: MiniCluster) -> None:
    """Newest first and whole, with who and why, though the process has long forgotten it; what was
    refused is in it, too.
    """
    create(recorded, "team-old")
    create(recorded, "team-old")
    create(recorded, "untold")
    push_out(recorded, "nameless")
    assert "team-old" not in ask(recorded, "/api/decisions").text
    page = history(recorded, "team-old")
    assert (page["source"], page["older"], page["problems"]) == ("audit", "", [])
    assert told(page) == ["TOPIC_ALREADY_EXISTS", "NONE"]
    (refused,) = history(recorded, "untold")["entries"]
    assert (refused["reason"], refused["policy"], refused["client"]) == (
        "A topic begins with its team.", "Teams", "wire",
    )  # fmt: skip
    assert history(recorded, "never")["entries"] == []


def test_deleted_topics_are_found(recorded: MiniCluster) -> None:
    """Deleted topics are found by a part of their names, whatever its case; their history tells
    their end; one that is there again is not deleted.
    """
    for name in ("team-Gone-1", "team-Gone-2", "team-gone-again"):
        create(recorded, name)
        delete(recorded, name)
    create(recorded, "team-gone-again")
    push_out(recorded, "noise")
    found = ask(recorded, "/api/deleted?search=gone").json
    assert (found["source"], [row["name"] for row in found["rows"]]) == ("audit", ["team-Gone-2", "team-Gone-1"])
    assert told(history(recorded, "team-Gone-1")) == ["removal", "NONE", "NONE"]


def test_it_is_paged(recorded: MiniCluster) -> None:
    """So many at a time, fewer where the search has taken long enough, each once, across files; the
    refused ones alone where that is asked; nothing later than a time.
    """
    push_out(recorded, "paged")
    create(recorded, *(f"team-paged-{number}" for number in range(20)))
    names: list[str] = []
    sizes: set[int] = set()
    older = ""
    while len(names) < 320:
        page = history(recorded, older=older)
        sizes.add(len(page["entries"]))
        names += [entry["name"] for entry in page["entries"] if entry.get("name", "").find("paged") >= 0]
        older = page["older"]
    assert len(set(names)) == len(names) == 320
    assert max(sizes) == ROWS
    refused = history(recorded, refused=1)["entries"]
    assert {entry["outcome"] for entry in refused} == {"POLICY_VIOLATION"}
    before = int(refused[-1]["time"] * 1000) - 1
    assert all(entry["time"] * 1000 <= before + 1 for entry in history(recorded, until=before)["entries"])


def test_compressed_and_broken_files_are_no_matter(recorded: MiniCluster, folder: Path) -> None:
    """Compressed files are read; truncated and malformed files are reported, and the page works."""
    create(recorded, "team-packed")
    push_out(recorded, "later")  # into the next files
    before = history(recorded, "team-packed")
    files = sorted(folder.glob("*.ndjson"))
    cluster_id = files[0].name.split("-", 1)[1][:22]
    for file in files[:-1]:
        with file.open("rb") as plain, gzip.open(f"{file}.gz", "wb") as packed:
            shutil.copyfileobj(plain, packed)
        file.unlink()
    assert history(recorded, "team-packed") == before
    (folder / file_name(cluster_id, 90, 1, 1)).write_bytes(b'"team-packed"\n\xff\xfe\x00' * 1000)
    (folder / f"{file_name(cluster_id, 91, 1, 1)}.gz").write_bytes(gzip.compress(b"x" * 100_000)[:-50])
    (folder / file_name(cluster_id, 92, 1, 1)).mkdir()
    (folder / file_name(cluster_id, 93, 1, 1)).symlink_to(folder / "nowhere")
    after = history(recorded, "team-packed")
    assert after["entries"] == before["entries"]
    assert any("cannot be read" in problem for problem in after["problems"])
    assert any("is cut, or broken" in problem for problem in after["problems"])
    assert ask(recorded, "/health/ready").status == 200


def test_without_one_it_comes_from_memory(cluster: MiniCluster) -> None:
    """Without an audit log the latest decisions come from memory in pages, and the answer says that
    there are no older ones.
    """
    create(cluster, "team-told")
    create(cluster, "team-told")
    page = history(cluster, "team-told")
    assert (page["source"], told(page)[:2]) == ("memory", ["TOPIC_ALREADY_EXISTS", "NONE"])
    create(cluster, "team-short")
    with Wire(cluster.bootstrap.split(",")[0]) as wire:
        wire.ask("DeleteTopics", 5, {"topic_names": ["team-short"], "timeout_ms": 30_000})
    found = until(lambda: ask(cluster, "/api/deleted?search=SHORT").json, right=lambda found: bool(found["rows"]))
    assert (found["source"], [row["name"] for row in found["rows"]]) == ("memory", ["team-short"])
    push_out(cluster, "refused")
    first = history(cluster, refused=1)
    second = history(cluster, refused=1, older=first["older"])
    assert [len(first["entries"]), len(second["entries"])] == [ROWS, ROWS]
    assert second["entries"][0]["number"] == first["entries"][-1]["number"] - 1
    assert history(cluster, "team-told")["entries"] == []


async def test_few_wait_for_their_turn(tmp_path: Path) -> None:
    """One search runs at a time, a few wait, and further ones are told to try again."""
    async with ruling({"audit.dir": str(tmp_path)}) as world:
        process = Process(1)
        process.add(RunningNode(world.node, "", Server(ConnectionLimits()), Dispatcher(Routes(()))))
        histories = HistoryReader(ShownNodes(process))
        async with trio.open_nursery() as nursery, histories._turn:
            for _ in range(MAX_WAITING):
                nursery.start_soon(histories.history, HistoryFilter("t"), "")
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(BusyError):
                await histories.deleted("t", "")


async def test_what_could_not_be_written_is_told(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    """A search does not wait forever for a blocked disk; the answer has the number of missing
    events.
    """
    async with ruling({"audit.dir": str(tmp_path / "audit"), "audit.flush.interval.ms": LONG_MS}) as world:
        process = Process(1)
        process.add(RunningNode(world.node, "", Server(ConnectionLimits()), Dispatcher(Routes(()))))
        assert world.node.audit is not None
        shutil.rmtree(tmp_path / "audit")
        world.node.audit.append(1, 1, b"{}\n")
        found = await HistoryReader(ShownNodes(process)).history(HistoryFilter("t"), "")
        assert found.problems[-1] == f"events that could not be written yet: {world.node.audit.waiting_events}"


TEXT = st.text(max_size=1000)
NUMBERS = st.integers(-(2**63), 2**64 - 1)


@given(name=st.sampled_from(["t", ""]), epoch=NUMBERS, time_ms=NUMBERS, node=NUMBERS, text=TEXT)
def test_what_a_file_says_is_shown_within_bounds(name: str, epoch: int, time_ms: int, node: int, text: str) -> None:
    """Any numbers and texts of any event become an entry of a bounded size whose time is one."""
    odd = stamp(3, epoch, time_ms=time_ms, decided_node=node)
    finding = RuleFinding(rule=text, action=text, message=text)
    policy = PolicyDecision(
        decision=text, policy=text, policy_hash=text, rule=text, findings=(finding,) * 99, message=text, microseconds=1
    )
    said = {"principal": text, "client_id": text, "software": text, "api": text, "error": text, "message": text}
    events: list[AuditEvent] = [
        a_creation(3, "t", epoch, time_ms=time_ms, decided_node=node, **said, policy=policy),
        Removal(**odd, topic="t", before=None),
        Observed(**odd, topic="t", before=a_state(), after=None),
        Dropped(**odd, first_sequence=time_ms, last_sequence=epoch, reason=text),
    ]
    for event in events:
        entry = history_entry(HistoryFilter(name), event)
        if entry is not None:
            assert len(msgspec.json.encode(entry)) < 50_000
            assert 0 <= entry.time <= 8_640_000_000_000
        deleted_topic("", event)


def test_each_event_has_its_words() -> None:
    """Changes of a topic that no request made, and losses of events, are described in words; events
    of other topics are left out.
    """
    log = a_log(2)
    assert [entry is not None for entry in (history_entry(HistoryFilter("t3"), event) for event in log)] == [
        False, False, True, False,
    ]  # fmt: skip
    seen = [(None, a_state()), (a_state(), a_state(2)), (a_state(), None)]
    words = [
        history_entry(HistoryFilter("t"), Observed(**stamp(3), topic="t", before=before, after=after))
        for before, after in seen
    ]
    assert [word.reason.partition(" without")[0] for word in words if word is not None] == [
        "it was created", "it was changed", "it was removed",
    ]  # fmt: skip
    lost = history_entry(
        HistoryFilter("t"), Dropped(**stamp(9), first_sequence=4, last_sequence=8, reason="No space left")
    )
    assert lost is not None and lost.reason == "5 events of all topics are missing here: No space left"

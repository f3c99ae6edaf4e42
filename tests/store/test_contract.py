"""Tests that every store must pass, run on the memory store and on a real ZooKeeper."""

import contextlib

import pytest
import trio

from minicontroller.store.base import (
    ANY_VERSION,
    Check,
    CommitTooLarge,
    Create,
    Delete,
    Entry,
    NodeExists,
    NodeMissing,
    NodeNotEmpty,
    Operation,
    SetData,
    Stat,
    Store,
    StoreError,
    VersionConflict,
    WatchEvent,
    ZnodeChange,
    weight,
)
from tests.store.worlds import Watcher, World, settle


async def test_null_and_empty_data_are_two_things(store: Store) -> None:
    """Null data is read as None and empty data as empty bytes, because Kafka tells them apart."""
    await store.commit([Create("/null", None), Create("/empty", b""), Create("/full", b"x"), Create("/later", b"x")])
    await store.commit([SetData("/later", None)])
    entries = await store.get_many(["/null", "/empty", "/full", "/later"])
    assert [entry.data for entry in entries if entry] == [None, b"", b"x", None]


async def test_what_is_missing_is_none_or_an_error(store: Store) -> None:
    """A missing znode reads as None; asking for its children is an error that names it."""
    assert await store.get("/missing") is None
    with pytest.raises(NodeMissing) as caught:
        await store.children("/missing")
    assert caught.value.path == "/missing"
    assert caught.value.index is None


async def test_versions_count_the_changes_of_the_data(store: Store) -> None:
    """A znode is born with version 0; each change of its data adds one, and the new stat is the
    result.
    """
    await store.commit([Create("/a", b"0")])
    (second,) = await store.commit([SetData("/a", b"1", 0)])
    (third,) = await store.commit([SetData("/a", b"2", ANY_VERSION)])
    entry = await store.get("/a")
    assert entry is not None
    assert isinstance(second, Stat)
    assert (second.version, entry.stat.version) == (1, 2)
    assert third == entry.stat


async def test_transaction_ids_tell_when(store: Store) -> None:
    """All creations of one commit have one czxid, and a later commit a larger one; a change of data
    raises only the mzxid.
    """
    await store.commit([Create("/a"), Create("/b")])
    await store.commit([Create("/c")])
    await store.commit([SetData("/a", b"x")])
    a, b, c = [entry.stat for entry in await store.get_many(["/a", "/b", "/c"]) if entry]
    assert a.czxid == b.czxid == b.mzxid < c.czxid < a.mzxid
    assert a.ctime_ms == b.ctime_ms <= c.ctime_ms
    assert a.ephemeral_owner == 0


FAILURES: list[tuple[str, list[Operation], type[StoreError], int]] = [
    ("no parent", [Create("/new"), Create("/x/y")], NodeMissing, 1),
    ("exists", [SetData("/a", b"1"), Create("/b"), Create("/new")], NodeExists, 1),
    ("exists since this commit", [Create("/new"), Create("/new")], NodeExists, 1),
    ("set of a missing one", [Delete("/b"), SetData("/x", b"")], NodeMissing, 1),
    ("set of another version", [SetData("/a", b"1", 0), SetData("/a", b"2", 0)], VersionConflict, 1),
    ("delete of a missing one", [Create("/new"), Delete("/x")], NodeMissing, 1),
    ("delete of another version", [Create("/new"), Delete("/b", 3)], VersionConflict, 1),
    ("delete with children", [Delete("/b"), Delete("/a")], NodeNotEmpty, 1),
    ("check of another version", [Check("/a", 1), Create("/new")], VersionConflict, 0),
    ("check of a missing one", [Create("/new"), Check("/x", 0), Delete("/x")], NodeMissing, 1),
    ("undoing all kinds", [Delete("/a/c"), Delete("/a"), Create("/a", b"z"), SetData("/b", b"z"), Check("/b", 7)], VersionConflict, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operations", "kind", "index"), [row[1:] for row in FAILURES], ids=[row[0].replace(" ", "-") for row in FAILURES]
)
async def test_a_commit_happens_whole_or_not_at_all(
    store: Store, operations: list[Operation], kind: type[StoreError], index: int
) -> None:
    """One operation that fails undoes all; the error names it by its index and path."""
    await store.commit([Create("/a", b"0"), Create("/a/c"), Create("/b", b"0")])
    paths = ["/", "/a", "/a/c", "/b"]
    before = await store.get_many(paths), await store.children_many(paths)
    with pytest.raises(kind) as caught:
        await store.commit(operations)
    assert type(caught.value) is kind
    assert (caught.value.index, caught.value.path) == (index, operations[index].path)
    assert (await store.get_many(paths), await store.children_many(paths)) == before


async def test_a_refused_commit_counts_for_nothing(store: Store) -> None:
    """The suffix of a sequential znode skips no number for a commit that was refused."""
    with pytest.raises(NodeMissing):
        await store.commit([Create("/n_", sequential=True), Check("/x", 0)])
    assert await store.commit([Create("/n_", sequential=True)]) == ["/n_0000000000"]


async def test_an_operation_sees_those_before_it(store: Store) -> None:
    """Within a commit a parent may be created before its child, and a znode changed and deleted
    after its creation.
    """
    results = await store.commit(
        [Create("/a"), Create("/a/b"), SetData("/a/b", b"x", 0), Check("/a/b", 1), Delete("/a/b", 1)]
    )
    assert [type(result) for result in results] == [str, str, Stat, type(None), type(None)]
    assert results[:2] == ["/a", "/a/b"]
    assert await store.children("/a") == []


async def test_a_commit_of_nothing_succeeds(store: Store) -> None:
    """Without operations there are no results and no error."""
    assert await store.commit([]) == []


async def test_sequential_names_count_the_children_ever_created(store: Store) -> None:
    """The suffix has ten digits and counts every child that was ever created there, as Kafka's
    notifications rely on.
    """
    await store.commit([Create("/q")])
    names = await store.commit([Create("/q/n_", sequential=True), Create("/q/plain"), Create("/q/n_", sequential=True)])
    await store.commit([Delete("/q/plain"), Delete("/q/n_0000000002")])
    names += await store.commit([Create("/q/n_", b"x", sequential=True)])
    assert names == ["/q/n_0000000000", "/q/plain", "/q/n_0000000002", "/q/n_0000000003"]
    assert await store.children("/q") == ["n_0000000000", "n_0000000003"]


async def test_commits_take_effect_in_the_order_of_their_calls(store: Store) -> None:
    """Many commits can be under way: each sees those before it, however late they are awaited, and
    one refusal stops no other.
    """
    await store.commit([Create("/a", b"")])
    under_way = [store.commit([SetData("/a", str(i).encode(), i)]) for i in range(100)]
    refused = store.commit([Create("/a")])
    last = store.commit([Check("/a", 100), Create("/b")])
    assert await last == [None, "/b"]
    with pytest.raises(NodeExists):
        await refused
    stats = [(await commit)[0] for commit in reversed(under_way)]
    assert [stat.version for stat in stats if isinstance(stat, Stat)] == list(range(100, 0, -1))
    entry = await store.get("/a")
    assert entry is not None and entry.data == b"99"


async def test_what_is_sent_is_answered_by_call(store: Store) -> None:
    """Each commit that is sent without waiting is answered once, in order, by a call with its error
    or its transaction, which is the czxid of what it created.
    """
    answers: list[StoreError | int] = []
    store.send([Create("/a", b"0"), Create("/a/b")], answers.append)
    store.send([Check("/a", 0), Create("/a/c"), Delete("/a")], answers.append)
    store.send([SetData("/a", b"1", 0)], answers.append)
    store.send([], answers.append)
    store.send([Create("/big", bytes(store.max_commit_bytes))], answers.append)
    assert await store.children("/a") == ["b"]
    await settle(store)
    assert {type(answer) for answer in answers} == {int, NodeNotEmpty, CommitTooLarge}
    (refusal,) = [answer for answer in answers if isinstance(answer, NodeNotEmpty)]
    assert (refusal.index, refusal.path) == (2, "/a")
    answered = [answer for answer in answers if not isinstance(answer, CommitTooLarge)]  # which is never on its way
    created, changed = await store.get("/a/b"), await store.get("/a")
    assert created is not None and changed is not None
    assert answered == [created.stat.czxid, refusal, changed.stat.mzxid, answered[-1]]
    assert isinstance(answered[-1], int)


async def test_a_read_sees_the_commits_started_before_it(store: Store) -> None:
    """Reads and commits of a session keep the order of their calls, without waiting
    for each other.
    """
    commit = store.commit([Create("/a", b"x"), Create("/a/b")])
    entry, names = await store.get("/a"), await store.children("/a")
    assert entry is not None and (entry.data, names) == (b"x", ["b"])
    await commit


async def test_children_are_sorted(store: Store) -> None:
    """The list of children has their names only, in order, at the root and below it."""
    await store.commit([Create("/t"), *(Create(f"/t/{name}") for name in ("b", "a", "c", "B", "10", "9"))])
    assert await store.children("/t") == ["10", "9", "B", "a", "b", "c"]
    assert "t" in await store.children("/")
    assert await store.children_many(["/t/a", "/missing", "/t"]) == [[], None, ["10", "9", "B", "a", "b", "c"]]


async def test_thousands_are_read_in_order(store: Store) -> None:
    """get_many and children_many answer in the order of the question, None for what is missing."""
    await store.commit([Create("/m"), *(Create(f"/m/{i}", str(i).encode()) for i in range(0, 3000, 2))])
    await store.commit([Create("/m/0/x")])
    entries = await store.get_many([f"/m/{i}" for i in range(3000)])
    assert [None if entry is None else entry.data for entry in entries] == [
        str(i).encode() if i % 2 == 0 else None for i in range(3000)
    ]
    names = await store.children_many([f"/m/{i}" for i in range(3000)])
    assert names == [["x"]] + [None if i % 2 else [] for i in range(1, 3000)]
    assert await store.get_many([]) == []


async def test_a_commit_too_large_is_refused_unsent(store: Store) -> None:
    """A commit above max_commit_bytes raises an error and is not sent, the session lives on, and a
    commit of just that size succeeds.
    """
    limit = store.max_commit_bytes
    too_large = [Create("/big", bytes(limit))]
    assert weight(too_large[0]) > limit
    with pytest.raises(CommitTooLarge, match=str(limit)):
        await store.commit(too_large)
    await store.commit([Create("/big", bytes(limit - weight(Create("/big"))))])
    many = [Create(f"/{i:05d}") for i in range(limit // weight(Create("/00000")))]
    await store.commit(many)
    assert len(await store.children("/")) == len(many) + 1


async def test_ensure_creates_what_is_missing_with_null_data(store: Store) -> None:
    """The missing parents are made too, all without data, and what exists is left alone."""
    await store.commit([Create("/a", b"kept")])
    await store.ensure("/a/b/c")
    await store.ensure("/a/b/c")
    await store.ensure("/")
    entries = await store.get_many(["/a", "/a/b", "/a/b/c"])
    assert [(entry.data, entry.stat.version) for entry in entries if entry] == [(b"kept", 0), (None, 0), (None, 0)]


async def test_ensure_begins_again_when_a_parent_is_removed(world: World, store: Store) -> None:
    """Another program may remove what was there when it was looked for."""
    other = await world.open()
    path = "/a/b/c"

    async def remove() -> None:
        with contextlib.suppress(StoreError):
            await other.commit([Delete(path), Delete("/a/b"), Delete("/a")])

    for _ in range(100):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(remove)
            nursery.start_soon(store.ensure, path)
        await store.ensure(path)
    assert await store.get(path) is not None


async def test_sync_shows_what_was_acknowledged_to_others(world: World, store: Store) -> None:
    """After sync, a session reads every change that was acknowledged to another one."""
    other = await world.open()
    await other.commit([Create("/a", b"x")])
    await store.sync()
    entry = await store.get("/a")
    assert entry is not None and entry.data == b"x"


async def test_a_data_watch_fires_once(world: World, store: Store) -> None:
    """A watch is called for the first change after the read that set it, and never again."""
    other = await world.open()
    await store.commit([Create("/a", b"0"), Create("/b")])
    watcher = Watcher()
    await store.get("/a", watcher)
    await other.commit([SetData("/b", b"1"), Create("/a/child")])
    await other.commit([SetData("/a", b"1")])
    assert await watcher.next() == WatchEvent("/a", ZnodeChange.DATA)
    await other.commit([SetData("/a", b"2")])
    await settle(store)
    assert len(watcher.events) == 1
    await store.get("/a", watcher)
    await other.commit([Delete("/a/child"), Delete("/a")])
    assert await watcher.next() == WatchEvent("/a", ZnodeChange.DELETED)


async def test_many_are_watched_from_the_read_on(world: World, store: Store) -> None:
    """Znodes that another session changes while they are read show the change or call the watch,
    once; what is missing is not watched.
    """
    other = await world.open()
    paths = [f"/{i}" for i in range(600)]
    await store.commit([Create(path) for path in paths])
    watcher = Watcher()
    entries: list[Entry | None] = []

    async def read() -> None:
        entries.extend(await store.get_many([*paths, "/missing"], watcher))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for path in reversed(paths):
            await other.commit([SetData(path, b"1")])
    await other.commit([Create("/missing")])
    await settle(store)
    told = [event.path for event in watcher.events]
    shown = [path for path, entry in zip(paths, entries, strict=False) if entry and entry.data == b"1"]
    assert sorted(told + shown) == sorted(paths)
    assert {event.change for event in watcher.events} <= {ZnodeChange.DATA}
    await other.commit([Delete(path) for path in paths])
    await settle(store)
    assert [event.path for event in watcher.events[len(told) :]] == shown


async def test_a_watch_on_nothing_fires_at_creation(world: World, store: Store) -> None:
    """Reading a missing znode sets a watch too: that is how a candidate waits for the next
    controller.
    """
    other = await world.open()
    watcher = Watcher()
    assert await store.get("/a", watcher) is None
    await other.commit([Create("/a"), SetData("/a", b"1")])
    assert await watcher.next() == WatchEvent("/a", ZnodeChange.CREATED)
    await settle(store)
    assert len(watcher.events) == 1


async def test_a_watch_on_children_sees_the_list_only(world: World, store: Store) -> None:
    """A watch on children fires when a child is created or deleted or the znode is deleted, not for
    data or grandchildren.
    """
    other = await world.open()
    await store.commit([Create("/t"), Create("/t/a")])
    watcher = Watcher()
    await store.children("/t", watcher)
    await other.commit([SetData("/t", b"1"), SetData("/t/a", b"1"), Create("/t/a/deep")])
    await settle(store)
    assert watcher.events == []
    await other.commit([Create("/t/b")])
    assert await watcher.next() == WatchEvent("/t", ZnodeChange.CHILDREN)
    await store.children("/t", watcher)
    await other.commit([Delete("/t/b")])
    assert await watcher.next() == WatchEvent("/t", ZnodeChange.CHILDREN)
    await other.commit([Delete("/t/a/deep"), Delete("/t/a")])
    await store.children("/t", watcher)
    await other.commit([Delete("/t")])
    assert await watcher.next() == WatchEvent("/t", ZnodeChange.DELETED)
    assert len(watcher.events) == 3


async def test_a_failed_read_of_children_sets_no_watch(world: World, store: Store) -> None:
    """The children of a missing znode cannot be watched."""
    other = await world.open()
    watcher = Watcher()
    with pytest.raises(NodeMissing):
        await store.children("/t", watcher)
    await other.commit([Create("/t"), Create("/t/a")])
    await settle(store)
    assert watcher.events == []


async def test_one_callable_watches_a_znode_once(world: World, store: Store) -> None:
    """Set twice on one znode before it fired, a watch is called once; two callables are called
    each.
    """
    other = await world.open()
    await store.commit([Create("/a"), Create("/b")])
    watcher, second = Watcher(), Watcher()
    for _ in range(2):
        await store.get("/a", watcher)
        await store.children("/a", watcher)
    await store.get("/a", second)
    await other.commit([Delete("/a")])
    await settle(store)
    assert watcher.events == second.events == [WatchEvent("/a", ZnodeChange.DELETED)]


async def test_a_session_watches_its_own_changes_but_not_from_within(store: Store) -> None:
    """The committer's own watches fire, but never inside its call."""
    watcher = Watcher()
    await store.get("/a", watcher)
    commit = store.commit([Create("/a")])
    assert watcher.events == []
    await commit
    assert await watcher.next() == WatchEvent("/a", ZnodeChange.CREATED)


async def test_a_refused_commit_wakes_nobody(world: World, store: Store) -> None:
    """A refused commit fires no watch."""
    other = await world.open()
    watcher = Watcher()
    await store.get("/a", watcher)
    await store.children("/", watcher)
    with pytest.raises(NodeMissing):
        await other.commit([Create("/a"), Delete("/x")])
    await settle(store)
    assert watcher.events == []


async def test_events_come_in_the_order_of_the_changes(world: World, store: Store) -> None:
    """Watches on several znodes fire in the order in which these changed."""
    other = await world.open()
    events: list[str] = []
    for i in range(20):
        await store.get(f"/{i}", lambda event: events.append(event.path))
    await other.commit([Create(f"/{i}") for i in range(10)])
    for i in range(10, 20):
        await other.commit([Create(f"/{i}")])
    await settle(store)
    assert events == [f"/{i}" for i in range(20)]


async def test_an_ephemeral_znode_belongs_to_its_session(world: World, store: Store) -> None:
    """An ephemeral znode has its session's id, is deleted when the session closes, and watches
    fire.
    """
    other = await world.open()
    await other.commit([Create("/e", b"x", ephemeral=True), Create("/p"), Create("/p/e", ephemeral=True)])
    watcher, children = Watcher(), Watcher()
    entry = await store.get("/e", watcher)
    assert entry is not None and entry.stat.ephemeral_owner == other.session_id != store.session_id
    assert await store.children("/p", children) == ["e"]
    await other.close()
    assert await watcher.next() == WatchEvent("/e", ZnodeChange.DELETED)
    assert await children.next() == WatchEvent("/p", ZnodeChange.CHILDREN)
    assert await store.get_many(["/e", "/p/e"]) == [None, None]


async def test_an_ephemeral_znode_can_go_before_its_session(world: World, store: Store) -> None:
    """Deleted by anyone, or never born because its commit was refused, it is not missed at the end
    of its session.
    """
    other = await world.open()
    await other.commit([Create("/e", ephemeral=True), Create("/f_", ephemeral=True, sequential=True)])
    await store.commit([Delete("/e"), Create("/e", b"persistent now")])
    with pytest.raises(NodeExists):
        await other.commit([Create("/g", ephemeral=True), Delete("/f_0000000001"), Create("/e")])
    await other.close()
    await store.sync()
    assert await store.children("/") == ["e"]


async def test_an_ephemeral_znode_has_no_children(store: Store) -> None:
    """An ephemeral znode cannot be a parent."""
    await store.commit([Create("/e", ephemeral=True)])
    with pytest.raises(StoreError) as caught:
        await store.commit([Create("/ok"), Create("/e/child")])
    assert caught.value.index == 1
    assert await store.children("/") == ["e"]


async def test_a_cancelled_wait_disturbs_nobody(store: Store) -> None:
    """A cancelled call does not affect later answers and events."""
    watcher = Watcher()
    with trio.CancelScope() as scope:
        scope.cancel()
        await store.commit([Create("/a")])
        await store.get("/a", watcher)
    with trio.move_on_after(0):
        await store.sync()
    assert await store.commit([Create("/b")]) == ["/b"]
    assert await store.children("/") == ["a", "b"]

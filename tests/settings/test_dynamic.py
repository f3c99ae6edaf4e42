"""Dynamic configs: followed by their notifications, over lost connections and sessions, and never
read more often than needed.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from functools import partial

import pytest
import trio
import trio.testing
from immutables import Map
from trio.testing import MockClock

from minicontroller.clock import Clock
from minicontroller.cluster.cache import MetadataCache
from minicontroller.cluster.entities import EntityConfigs
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.configs import encode_config, encode_config_change
from minicontroller.controller.broker import change_notifications
from minicontroller.controller.broker.change_notifications import KEPT_MS, MAX_KEPT, PAUSE_SECONDS
from minicontroller.controller.broker.dynamic_configs import DynamicConfigs
from minicontroller.controller.broker.image_reader import ImageReader
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.store.base import Create, Entry, SetData, Watch
from minicontroller.store.memory import MemoryStore, MemoryTree

CONFIG = config_from_mapping({"broker.id": "1", "listeners": "PLAINTEXT://127.0.0.1:0"})
THREADS = "log.cleaner.threads"


class CountingStore(MemoryStore):
    """A store that remembers what was read of it."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self.read: list[str] = []
        self.looks = 0
        self.listing_seconds = 0.0

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[Entry | None]:
        self.read += paths
        return await super().get_many(paths, watch)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self.looks += 1
        await trio.sleep(self.listing_seconds)
        return await super().children(path, watch)


class Bench:
    """A node's dynamic configs on a store of their own, and another node that changes things."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self.tree = MemoryTree()
        self.store = CountingStore(self.tree)
        self.cache = MetadataCache()
        self.configs = DynamicConfigs(CONFIG, 1)
        self.cache.on_change(self.configs.publish)
        self.reader = ImageReader(self.cache, 1)
        self.seen: list[str] = []
        self.tidies = False
        self.reader.on_notified(self.seen.extend)
        self._other = MemoryStore(self.tree)
        self._nursery = nursery

    async def start(self) -> None:
        await self._nursery.start(partial(self.reader.run, self.store, tidies=lambda: self.tidies))

    async def write(self, path: str, configs: dict[str, str] | bytes) -> None:
        """A znode below /config, without a notification."""
        full = f"/config/{path}"
        await self._other.ensure(full)
        data = configs if isinstance(configs, bytes) else encode_config(configs)
        await self._other.commit([SetData(full, data)])

    async def notify(self, *notifications: str | bytes) -> None:
        await self._other.ensure(layout.CONFIG_CHANGES)
        for each in notifications:
            data = each if isinstance(each, bytes) else encode_config_change(each)
            await self._other.commit([Create(layout.CONFIG_CHANGE_PREFIX, data, sequential=True)])

    async def change(self, path: str, configs: dict[str, str]) -> None:
        await self.write(path, configs)
        await self.notify(path)

    async def settle(self) -> None:
        """Until nothing is going on any more. The clock jumps, so this takes no time."""
        await trio.sleep(10 * PAUSE_SECONDS)
        await trio.testing.wait_all_tasks_blocked()

    def threads(self) -> int:
        return self.configs.current.integer(THREADS)


@pytest.fixture(name="bench")
async def running_bench() -> AsyncIterator[Bench]:
    async with trio.open_nursery() as nursery:
        yield Bench(nursery)
        nursery.cancel_scope.cancel()


async def test_the_initial_state(bench: Bench, autojump_clock: MockClock) -> None:
    """Once started, what the store says of the node and of all nodes is in force; its own goes
    first.
    """
    await bench.write("brokers/<default>", {THREADS: "3", "background.threads": "4"})
    await bench.write("brokers/1", {THREADS: "5"})
    await bench.write("brokers/2", {THREADS: "7"})
    await bench.start()
    assert (bench.threads(), bench.configs.current.integer("background.threads")) == (5, 4)
    assert (dict(bench.configs.of_node), bench.configs.of_cluster[THREADS]) == ({THREADS: "5"}, "3")


async def test_nothing_there(bench: Bench, autojump_clock: MockClock) -> None:
    """On an empty store the node's file holds, and the path of the notifications is made."""
    await bench.start()
    assert bench.threads() == CONFIG.integer(THREADS)
    assert await bench.store.children(layout.CONFIG_CHANGES) == []


async def test_a_change_is_followed(bench: Bench, autojump_clock: MockClock) -> None:
    """A notified change is in force, and the listeners hear of it when it is."""
    await bench.start()
    found = []
    bench.reader.on_notified(lambda _paths: found.append(bench.threads()))
    await bench.change("brokers/1", {THREADS: "5"})
    await bench.settle()
    await bench.change("brokers/<default>", {THREADS: "3"})
    await bench.settle()
    await bench.change("brokers/1", {})
    await bench.settle()
    assert found == [5, 5, 3]
    assert bench.seen == ["/config/brokers/1", "/config/brokers/<default>", "/config/brokers/1"]


async def test_a_follower_gets_each_configuration_that_is_in_force(bench: Bench, autojump_clock: MockClock) -> None:
    """It gets the present one, each one after a change, one that a controller of this process has
    written, and none twice.
    """
    followed: list[int] = []
    bench.configs.follow(lambda config: followed.append(config.integer(THREADS)))
    await bench.write("brokers/1", {THREADS: "3"})
    await bench.start()
    await bench.change("topics/orders", {})
    await bench.change("brokers/1", {THREADS: "5"})
    await bench.settle()
    bench.cache.read({"/config/brokers/1": EntityConfigs(Map({THREADS: "7"}), 2)})
    await bench.change("brokers/1", {THREADS: "7"})
    await bench.settle()
    assert followed == [CONFIG.integer(THREADS), 3, 5, 7]


async def test_only_what_changed_is_read(bench: Bench, autojump_clock: MockClock) -> None:
    """A notification costs the reading of itself, and of what it names if nodes know that; never of
    everything.
    """
    await bench.start()
    bench.store.read.clear()
    await bench.change("brokers/1", {THREADS: "5"})
    await bench.settle()
    changed = f"{layout.CONFIG_CHANGE_PREFIX}0000000000"
    assert bench.store.read == [changed, "/config/brokers/1"]
    bench.store.read.clear()
    await bench.change("topics/orders", {"retention.ms": "5"})
    await bench.change("brokers/2", {THREADS: "5"})
    await bench.settle()
    notifications = [f"{layout.CONFIG_CHANGE_PREFIX}000000000{number}" for number in (1, 2)]
    assert bench.store.read == [*notifications, "/config/brokers/2"]
    assert bench.seen[1:] == ["/config/topics/orders", "/config/brokers/2"]


async def test_what_came_before_the_start_is_not_replayed(bench: Bench, autojump_clock: MockClock) -> None:
    """The state is loaded after the watch is set, so older notifications say nothing new."""
    await bench.change("brokers/1", {THREADS: "5"})
    await bench.notify("topics/old")
    await bench.start()
    await bench.change("topics/new", {})
    await bench.settle()
    assert bench.seen == ["/config/topics/new"]
    assert f"{layout.CONFIG_CHANGE_PREFIX}0000000000" not in bench.store.read


async def test_a_stream_of_changes_costs_few_looks(bench: Bench, autojump_clock: MockClock) -> None:
    """However many changes there are, the list is read a few times a second; nothing is missed, and
    doubles are one.
    """
    await bench.start()
    bench.store.looks = 0
    for number in range(200):
        await bench.change(f"topics/t{number % 50}", {})
    await bench.settle()
    assert bench.store.looks <= 3
    assert sorted(set(bench.seen)) == sorted(f"/config/topics/t{number}" for number in range(50))
    assert len(bench.seen) <= 100


@pytest.mark.parametrize(
    "notification",
    [
        b'{"version":1,"entity_type":"topics","entity_name":"orders"}',
        b'{"version":2,"entity_path":"topics/orders","more":1}',
    ],
)
async def test_both_versions_of_a_notification(bench: Bench, autojump_clock: MockClock, notification: bytes) -> None:
    """Notifications of old brokers are understood."""
    await bench.start()
    await bench.notify(notification)
    await bench.settle()
    assert bench.seen == ["/config/topics/orders"]


async def test_nonsense_is_passed_over(
    bench: Bench, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An unreadable notification, also an empty one, one without data and one of a version or a
    kind that Kafka does not know, is logged, and does not stop those behind it.
    """
    await bench.start()
    await bench.store.ensure(f"{layout.CONFIG_CHANGES}/stray")
    nonsense = (
        b"\xff",
        b"{}",
        b"",
        b"null",
        b'{"version":3,"entity_path":"topics/a"}',
        b'{"version":0,"entity_path":"topics/a"}',
        b'{"version":"2","entity_path":"topics/a"}',
        b'{"version":2,"entity_path":"things/a"}',
        b'{"version":1,"entity_type":"brokers","entity_name":"1"}',
    )
    await bench.notify(*nonsense, "topics/orders")
    await bench.settle()
    assert bench.seen == ["/config/topics/orders"]
    assert caplog.text.count("is unreadable") == 1 + len(nonsense)


async def test_an_unreadable_config_changes_nothing(
    bench: Bench, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """What was in force stays; the log names the path, and shows nothing of what stands there."""
    await bench.change("brokers/1", {THREADS: "5"})
    await bench.start()
    await bench.write("brokers/1", b'{"secret": "hush"')
    await bench.notify("brokers/1")
    await bench.settle()
    assert bench.threads() == 5
    assert "/config/brokers/1 is unreadable" in caplog.text
    assert "hush" not in caplog.text


async def test_a_limit_that_would_lock_everybody_out_is_not_in_force(
    bench: Bench, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The defaults of all nodes were judged by a node that has the overrides which make 0 possible,
    or they take these overrides from a node that relies on them. What stands beside it holds.
    """
    limit, overrides = "max.connections.per.ip", "max.connections.per.ip.overrides"

    def in_force() -> tuple[int, str, int]:
        current = bench.configs.current
        return current.integer(limit), current.string(overrides), bench.threads()

    await bench.start()
    await bench.change("brokers/<default>", {limit: "0", THREADS: "3"})
    await bench.settle()
    assert in_force() == (2**31 - 1, "", 3)
    assert "max.connections.per.ip can be 0 only where max.connections.per.ip.overrides is set" in caplog.text
    assert (
        f"of the configs in /config/brokers/<default> these are not in force, because a broker cannot follow them: {limit}\n"
        in caplog.text
    )
    assert {record.levelname for record in caplog.records} == {"ERROR"}
    await bench.change("brokers/1", {overrides: "127.0.0.1:5"})
    await bench.settle()
    assert in_force() == (0, "127.0.0.1:5", 3)
    await bench.change("brokers/1", {limit: "0", THREADS: "4"})
    await bench.change("brokers/<default>", {overrides: "127.0.0.1:6"})
    await bench.settle()
    assert in_force() == (0, "127.0.0.1:6", 4)
    bench.cache.read({"/config/brokers/<default>": None})
    assert in_force() == (2**31 - 1, "", 4)


async def test_values_are_not_logged(bench: Bench, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A password that changes leaves no trace in the log, whatever its level."""
    caplog.set_level(logging.DEBUG)
    await bench.start()
    await bench.change("brokers/1", {"listener.name.external.ssl.key.password": "hush", THREADS: "hush"})
    await bench.settle()
    assert "hush" not in caplog.text


async def test_a_lost_connection(bench: Bench, autojump_clock: MockClock) -> None:
    """What changes while the connection is lost is seen when it is back, each change once."""
    await bench.start()
    bench.tree.suspend(bench.store)
    await bench.change("brokers/1", {THREADS: "5"})
    await bench.notify("topics/orders")
    await bench.settle()
    assert bench.seen == []
    bench.tree.resume(bench.store)
    await bench.settle()
    assert (bench.seen, bench.threads()) == (["/config/brokers/1", "/config/topics/orders"], 5)


async def test_a_lost_session(bench: Bench, autojump_clock: MockClock) -> None:
    """A new session looks again and reads its own configs anew: notifications may have been removed
    meanwhile.
    """
    await bench.start()
    await bench.notify("topics/before")
    await bench.settle()
    bench.tree.expire(bench.store)
    await bench.write("brokers/1", {THREADS: "5"})  # its notification is gone
    await bench.notify("topics/meanwhile")
    await bench.settle()
    assert (bench.seen, bench.threads()) == (["/config/topics/before", "/config/topics/meanwhile"], 5)
    await bench.change("brokers/1", {THREADS: "6"})
    await bench.settle()
    assert (bench.seen[2:], bench.threads()) == (["/config/brokers/1"], 6)


async def test_it_starts_when_the_store_comes(bench: Bench, autojump_clock: MockClock) -> None:
    """Without a connection it waits, and is started only when all is loaded."""
    await bench.write("brokers/1", {THREADS: "5"})
    bench.tree.suspend(bench.store)
    started = trio.Event()

    async def start() -> None:
        await bench.start()
        started.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(start)
        await bench.settle()
        assert not started.is_set()
        bench.tree.resume(bench.store)
    assert bench.threads() == 5


async def test_old_notifications_are_removed_by_the_controller(bench: Bench, jumping_clock: Clock) -> None:
    """After a quarter of an hour, and by the one node that writes; younger ones stay for those who
    are slow.
    """
    await bench.notify("topics/old", "topics/older")
    await bench.start()
    jumping_clock.advance(KEPT_MS / 1000 + 1)
    await bench.notify("topics/young")
    await bench.settle()
    assert len(await bench.store.children(layout.CONFIG_CHANGES)) == 3
    bench.tidies = True
    await bench.notify("topics/younger")
    await bench.settle()
    assert await bench.store.children(layout.CONFIG_CHANGES) == ["config_change_0000000002", "config_change_0000000003"]
    assert bench.seen == ["/config/topics/young", "/config/topics/younger"]


async def test_notifications_do_not_pile_up(bench: Bench, autojump_clock: MockClock) -> None:
    """Beyond what Kafka's brokers can list the oldest go, however young they are."""
    assert MAX_KEPT * (len("config_change_") + 10 + 4) < 4 * 1024 * 1024
    store, feed = (
        bench.store,
        change_notifications.ChangeNotifications(layout.CONFIG_CHANGES, lambda _data: ()),
    )
    await bench.notify(*(f"topics/t{number}" for number in range(5)))
    names = await store.children(layout.CONFIG_CHANGES)
    await feed.tidy(store, names, most=3)
    assert await store.children(layout.CONFIG_CHANGES) == names[2:]


async def test_all_that_is_old_is_removed(bench: Bench, jumping_clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many changes come in a second, they are removed as quickly as they came, not so many
    now and then.
    """
    monkeypatch.setattr(change_notifications, "TIDY_BATCH", 3)
    await bench.start()
    await bench.notify(*(f"topics/t{number}" for number in range(20)))
    jumping_clock.advance(KEPT_MS / 1000 + 1)
    bench.tidies = True
    await bench.notify("topics/young")
    await bench.settle()
    assert await bench.store.children(layout.CONFIG_CHANGES) == ["config_change_0000000020"]
    monkeypatch.setattr(change_notifications, "TIDY_BATCHES", 2)
    await bench.notify(*(f"topics/t{number}" for number in range(20)))
    jumping_clock.advance(KEPT_MS / 1000 + 1)
    for number in range(20):  # what one look leaves the next ones remove
        await trio.sleep(change_notifications.TIDY_PAUSE_SECONDS)
        await bench.notify(f"topics/last{number}")
    await bench.settle()
    assert len(await bench.store.children(layout.CONFIG_CHANGES)) == 20


async def test_a_long_list_is_looked_at_seldom(bench: Bench, autojump_clock: MockClock) -> None:
    """However long it takes to list what is there, a stream of changes costs a node no more than a
    small share of its time.
    """
    await bench.start()
    bench.store.listing_seconds, bench.store.looks = 0.1, 0
    ends = trio.current_time() + 60
    while trio.current_time() < ends:
        await bench.notify("topics/t")
        await trio.sleep(0.05)
    assert 0 < bench.store.looks * bench.store.listing_seconds <= 60 / change_notifications.LOOKING_SHARE


async def test_a_store_that_was_slow_once_is_asked_again_soon(bench: Bench, autojump_clock: MockClock) -> None:
    """A look that took long because the store did not answer is followed by the next one as soon as
    after a long list.
    """
    await bench.start()
    bench.store.listing_seconds = 5
    await bench.notify("topics/t")
    await trio.sleep(6)
    bench.store.listing_seconds = 0
    await bench.change("brokers/1", {THREADS: "5"})
    await trio.sleep(change_notifications.MAX_PAUSE_SECONDS + change_notifications.PAUSE_SECONDS)
    assert bench.threads() == 5


async def test_what_cannot_be_removed_stays_alone(bench: Bench, jumping_clock: Clock) -> None:
    """Somebody has put a znode below a notification: that one stays, the others go, and changes are
    followed.
    """
    await bench.notify(*(f"topics/t{number}" for number in range(9)))
    await bench.store.commit([Create(f"{layout.CONFIG_CHANGE_PREFIX}0000000004/child")])
    await bench.start()
    jumping_clock.advance(KEPT_MS / 1000 + 1)
    bench.tidies = True
    await bench.change("brokers/1", {THREADS: "5"})
    await bench.settle()
    assert await bench.store.children(layout.CONFIG_CHANGES) == ["config_change_0000000004", "config_change_0000000009"]
    assert bench.threads() == 5


async def test_a_number_that_was_made_up_hides_nothing(bench: Bench, autojump_clock: MockClock) -> None:
    """A notification with the highest number of all, written by hand: those of ZooKeeper's own
    count are seen all the same.
    """
    await bench.start()
    await bench.store.commit([Create(f"{layout.CONFIG_CHANGE_PREFIX}9999999999", encode_config_change("topics/t"))])
    await bench.settle()
    await bench.change("brokers/1", {THREADS: "5"})
    await bench.settle()
    assert bench.threads() == 5
    assert bench.seen == ["/config/topics/t", "/config/brokers/1"]

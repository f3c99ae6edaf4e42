"""The number of store operations that a change costs: counted, not timed."""

from collections import Counter
from collections.abc import Sequence

import trio

from minicontroller.cluster.znodes import layout
from minicontroller.store.base import Answered, Check, Create, Entry, Operation, SetData, Store, Watch
from minicontroller.store.memory import MemoryStore
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import BROKER, TOPIC, SmallCluster

CHANGES = 20


class CountedStore(MemoryStore):
    """A store that counts the operations it is asked for."""

    def __init__(self, world: "CountedWorld") -> None:
        super().__init__(world.tree)
        self._world = world

    def send(self, operations: Sequence[Operation], answered: Answered) -> None:
        self._world.sent.append(operations)
        super().send(operations, answered)

    async def sync(self) -> None:
        self._world.read.append("sync")
        await super().sync()

    async def get(self, path: str, watch: Watch | None = None) -> Entry | None:
        self._world.read.append(path)
        return await super().get(path, watch)

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[Entry | None]:
        self._world.read += paths
        return await super().get_many(paths, watch)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        self._world.read.append(path)
        return await super().children(path, watch)


class CountedWorld(MemoryWorld):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Sequence[Operation]] = []
        self.read: list[str] = []

    async def open(self) -> Store:
        return CountedStore(self)


async def test_a_change_of_configs_is_one_commit(nursery: trio.Nursery, autojump_clock: object) -> None:
    """Its controller knows the versions, so that nothing is looked up first: the fence, the count,
    the config and the notification are all.
    """
    world = CountedWorld()
    cluster = SmallCluster(nursery, world)
    await cluster.start(1, 2, 3)
    assert await cluster.create("t") == [0]
    for kind, name, key, path in [
        (TOPIC, "t", "retention.ms", layout.topic_config_path("t")),
        (BROKER, "", "log.retention.ms", layout.broker_config_path(layout.DEFAULT_ENTITY)),
    ]:
        assert await cluster.change_config(name, key, "1", resource_type=kind) == 0
        world.sent.clear()
        for number in range(CHANGES):
            assert await cluster.change_config(name, key, str(100_000 + number), resource_type=kind) == 0
        kinds = [[(type(each), each.path) for each in operations] for operations in world.sent]
        fence, count = (Check, layout.CONTROLLER_EPOCH), (SetData, layout.COMMITS)
        assert kinds == [[fence, count, (SetData, path), (Create, layout.CONFIG_CHANGE_PREFIX)]] * CHANGES


async def test_a_stream_of_changes_is_read_in_looks(nursery: trio.Nursery, autojump_clock: object) -> None:
    """Each node reads a notification once, and the controller reads what it names once per batch of
    notifications, and by its watch as often; local nodes need no sync.
    """
    world = CountedWorld()
    cluster = SmallCluster(nursery, world, one_process=True)
    await cluster.start(1, 2, 3)
    assert await cluster.create("t") == [0]
    await trio.sleep(5)
    world.read.clear()
    for number in range(CHANGES):
        assert await cluster.change_config("t", "retention.ms", str(100_000 + number)) == 0
    await trio.sleep(5)
    read = Counter(world.read)
    notifications = [count for path, count in read.items() if path.startswith(layout.CONFIG_CHANGE_PREFIX)]
    assert notifications == [3] * CHANGES
    assert read[layout.CONFIG_CHANGES] <= 3 * (CHANGES // 2)
    assert read[layout.topic_config_path("t")] <= 2 * read[layout.CONFIG_CHANGES] // 3
    assert not read["sync"]

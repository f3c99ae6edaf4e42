"""Where commits meet what others write: in memory, on a store whose answers take their time, and on a real ZooKeeper."""

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from minicontroller.controller.store import layout
from minicontroller.controller.store.base import Operation, Result, Store
from minicontroller.controller.store.memory import MemoryStore
from tests.store.worlds import MemoryWorld, World, zookeeper_world
from tests.support.zookeeper import ZooKeeperServer

KINDS = ["memory", "travelling", "zookeeper"]
LEFTOVER = b'{"version":1,"config":{"segment.ms":"7"}}'


class TravellingStore(MemoryStore):
    """Commits take effect at once, and their answers are on their way for some turns of the loop: two can be in flight."""

    @property
    def commits_at_once(self) -> bool:
        return False

    def commit(self, operations: Sequence[Operation]) -> Coroutine[Any, Any, list[Result]]:
        return self._later(super().commit(operations))

    async def _later(self, answer: Coroutine[Any, Any, list[Result]]) -> list[Result]:
        try:
            for _ in range(5):
                await trio.lowlevel.checkpoint()
        except trio.Cancelled:
            answer.close()
            raise
        return await answer


class TravellingWorld(MemoryWorld):
    async def open(self) -> Store:
        return TravellingStore(self.tree)


@asynccontextmanager
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """The world of the kind that is this fixture's parameter."""
    match request.param:
        case "memory":
            yield MemoryWorld()
        case "travelling":
            yield TravellingWorld()
        case _:
            server: ZooKeeperServer = request.getfixturevalue("zookeeper")
            chroot = "/" + "".join(c if c.isalnum() else "-" for c in request.node.name)
            async with zookeeper_world(server, chroot) as world:
                yield world


async def configs_in(store: Store, path: str) -> dict[str, str]:
    await store.sync()
    entry = await store.get(f"/config/{path}")
    assert entry is not None
    return dict(layout.decode_config(entry.data))

"""Fixtures of a store, a small cluster on it, and a second session that writes to the same tree."""

from collections.abc import AsyncIterator

import pytest
import trio

from minicontroller.store.base import Store
from tests.store.worlds import MemoryWorld, World, world_of
from tests.support.small_cluster import SmallCluster


@pytest.fixture(name="world")
async def world_fixture(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """In memory, unless a mark of `tests/store/worlds.py` says otherwise."""
    async with world_of(getattr(request, "param", "memory"), request) as world:
        yield world


@pytest.fixture(name="memory")
def memory_fixture(world: World) -> MemoryWorld:
    """The world of a test that runs in memory only, whose tree can be looked at."""
    assert isinstance(world, MemoryWorld)
    return world


@pytest.fixture(name="cluster")
async def cluster_fixture(request: pytest.FixtureRequest, world: World, nursery: trio.Nursery) -> SmallCluster:
    """Three nodes, or those that the module names in `BROKER_IDS`; the first of them rules."""
    cluster = SmallCluster(nursery, world)
    await cluster.start_in_turn(*getattr(request.module, "BROKER_IDS", (1, 2, 3)))
    return cluster


@pytest.fixture(name="other")
async def other_fixture(world: World) -> Store:
    """A session of another program, such as a real broker or an operator's tool."""
    return await world.open()

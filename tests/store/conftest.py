"""The worlds in which stores live, and a store in each."""

from collections.abc import AsyncIterator

import pytest

from minicontroller.controller.store.base import Store
from tests.store.worlds import MemoryWorld, World, zookeeper_world
from tests.support.zookeeper import ZooKeeperServer


@pytest.fixture(name="chroot")
def chroot_fixture(request: pytest.FixtureRequest) -> str:
    """A chroot for this test alone."""
    return "/" + "".join(c if c.isalnum() else "-" for c in request.node.name)


@pytest.fixture(params=["memory", "zookeeper"])
async def world(request: pytest.FixtureRequest, chroot: str) -> AsyncIterator[World]:
    """Every test that asks for it runs in both."""
    if request.param == "memory":
        yield MemoryWorld()
    else:
        server: ZooKeeperServer = request.getfixturevalue("zookeeper")
        async with zookeeper_world(server, chroot) as zookeeper:
            yield zookeeper


@pytest.fixture(name="store")
async def store_fixture(world: World) -> Store:
    return await world.open()

"""The worlds in which stores live, and a store in each."""

from collections.abc import AsyncIterator

import pytest

from minicontroller.store.base import Store
from tests.store.worlds import BOTH, World, world_of


@pytest.fixture(name="world", params=BOTH)
async def world_fixture(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Every test that asks for it runs in both."""
    async with world_of(request.param, request) as world:
        yield world


@pytest.fixture(name="store")
async def store_fixture(world: World) -> Store:
    return await world.open()

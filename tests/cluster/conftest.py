"""A world without a server, and a cluster in it."""

import pytest
import trio

from tests.cluster.small_cluster import SmallCluster
from tests.store.worlds import MemoryWorld


@pytest.fixture(name="memory")
def memory_fixture() -> MemoryWorld:
    return MemoryWorld()


@pytest.fixture(name="cluster")
async def cluster_fixture(memory: MemoryWorld, nursery: trio.Nursery) -> SmallCluster:
    """Three nodes, the first of which rules. Time passes when there is nothing else to do."""
    cluster = SmallCluster(nursery, memory)
    await cluster.start(1)
    await cluster.until_quiet()
    await cluster.start(2, 3)
    await cluster.until_quiet()
    return cluster

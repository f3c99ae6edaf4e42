"""What a controller keeps of topics that are gone: nothing."""

import gc
import tracemalloc

import trio

from tests.support.small_cluster import SmallCluster

CYCLES = 30
SLACK_BYTES = 75_000
"""What three rounds may add: what is on its way when it is looked at, and caches with a bound that
are not full yet. A topic that is kept costs 1,000 bytes and more, 90 of them more than this.
"""


async def test_memory_does_not_grow_with_topics_that_are_gone(cluster: SmallCluster, autojump_clock: object) -> None:
    """Topics are made and deleted, again and again: what is held afterwards does not depend on how
    many there were.
    """

    async def cycles(first: int) -> None:
        for number in range(first, first + CYCLES):
            assert await cluster.create(f"topic-{number}", partitions=2, replication_factor=2) == [0]
            assert await cluster.delete(f"topic-{number}") == [0]
        await cluster.until(lambda: not cluster.controller.image.topics)
        await cluster.until_quiet()
        await trio.sleep(3)  # of the mock clock: lists are read again after a second
        gc.collect()

    tracemalloc.start()
    try:
        await cycles(0)
        await cycles(CYCLES)
        before, _ = tracemalloc.get_traced_memory()
        for number in (2, 3, 4):
            await cycles(number * CYCLES)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < SLACK_BYTES
    controller = cluster.controller
    assert not controller.deletions._replicas_left
    assert not controller.writer._begun
    assert all(not len(member.node.cache.waiters) for member in cluster.members.values())

"""A controller holds nothing of topics that are gone."""

import gc
import tracemalloc
from functools import lru_cache

import trio

from tests.support.small_cluster import SmallCluster

CYCLES = 30
SLACK_BYTES = 60_000
"""How many bytes three rounds may add, for what is in progress when memory is measured: up to
46,000 in a process that ran many tests before. A topic that is kept costs 1,000 bytes and more, so
90 of them cost half as much again as this.
"""
BOUNDED_CACHE = type(lru_cache(len))
TRIO = tracemalloc.Filter(inclusive=False, filename_pattern=f"{trio.__path__[0]}/*")
"""trio keeps up to 1,000 deadlines that are over before it tidies them."""


async def test_memory_does_not_grow_with_topics_that_are_gone(cluster: SmallCluster, autojump_clock: object) -> None:
    """After topics are created and deleted again and again, the memory that is held does not depend
    on how many there were.
    """

    async def cycles(first: int) -> None:
        for number in range(first, first + CYCLES):
            assert await cluster.create(f"topic-{number}", partitions=2, replication_factor=2) == [0]
            assert await cluster.delete(f"topic-{number}") == [0]
        await cluster.until(lambda: not cluster.controller.image.topics)
        await cluster.until_quiet()
        await trio.sleep(3)  # of the mock clock: lists are read again after a second

    tracemalloc.start()
    try:
        for number in range(4):  # until the recent decisions are as many as are kept
            await cycles(number * CYCLES)
        before = held_bytes()
        for number in range(4, 7):
            await cycles(number * CYCLES)
        after = held_bytes()
    finally:
        tracemalloc.stop()
    assert after - before < SLACK_BYTES
    controller = cluster.controller
    assert not controller.deletions._replicas_left
    assert not controller.writer._begun
    assert all(not len(member.node.cache.waiters) for member in cluster.members.values())


def held_bytes() -> int:
    """Return the bytes that are in use, without caches that have a bound of their own."""
    gc.unfreeze()  # tests/conftest.py hides from the collector what was imported before the tests began
    for each in gc.get_objects():
        if isinstance(each, BOUNDED_CACHE) and each.__module__.startswith("minicontroller.controller."):
            each.cache_clear()
    gc.collect()
    return sum(each.size for each in tracemalloc.take_snapshot().filter_traces([TRIO]).statistics("filename"))

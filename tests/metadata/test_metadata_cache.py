"""What a node's clients were told, and what its image holds: readers wait for the difference."""

from collections.abc import Callable

import pytest
import trio

from minicontroller.controller.metadata.cache import EXPECTED_UPDATE_SECONDS, MetadataCache, first_update_number


@pytest.fixture(name="cache")
def cache_fixture() -> MetadataCache:
    cache = MetadataCache()
    told(cache, 7)
    return cache


def told(cache: MetadataCache, epoch: int) -> None:
    cache.apply(controller_id=1, controller_epoch=epoch, brokers=None)


async def seconds_behind(
    cache: MetadataCache, nursery: trio.Nursery, happens: Callable[[], None] = lambda: None
) -> float:
    """How long a reader waits, where this happens one second after they came."""
    began = trio.current_time()

    async def happen() -> None:
        await trio.sleep(1)
        happens()

    nursery.start_soon(happen)
    await cache.wait_expected_update()
    return trio.current_time() - began


async def test_nobody_waits_for_what_is_known(cache: MetadataCache) -> None:
    """What a controller told before, or another one before it, holds up no reader; nor does an
    answer that says nothing of it.
    """
    cache.updated_to(first_update_number(7) + 5)
    for number in (-1, first_update_number(7) + 5, first_update_number(6) + 1000):
        cache.expect_update(number)
        assert not cache.is_behind


async def test_readers_wait_for_what_was_answered(
    cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """K4-6: until the image holds it, and not only a part of it."""
    cache.expect_update(first_update_number(7) + 2)
    assert await seconds_behind(cache, nursery, lambda: cache.updated_to(first_update_number(7) + 2)) == 1
    cache.expect_update(first_update_number(7) + 4)
    cache.updated_to(first_update_number(7) + 3)
    assert cache.is_behind


async def test_a_successor_knows_it_too(cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object) -> None:
    """Who follows has read what its predecessor has acknowledged: its first number is larger,
    however often the predecessor had counted.
    """
    cache.expect_update(first_update_number(7) + 1_000_000)
    assert await seconds_behind(cache, nursery, lambda: cache.updated_to(first_update_number(8))) == 1


async def test_an_epoch_alone_says_nothing(cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object) -> None:
    """Kafka's own controllers begin with the brokers, and tell of topics afterwards: what a reader
    waits for may be among those.
    """
    cache.expect_update(first_update_number(7) + 1)
    assert await seconds_behind(cache, nursery, lambda: told(cache, 8)) == EXPECTED_UPDATE_SECONDS


async def test_readers_do_not_wait_for_ever(
    cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A node that nobody tells anything answers what it knows in the end, and from then on at once
    until it is told again.
    """
    cache.expect_update(first_update_number(7) + 2)
    assert await seconds_behind(cache, nursery) == EXPECTED_UPDATE_SECONDS
    assert await seconds_behind(cache, nursery) == 0
    cache.expect_update(first_update_number(7) + 3)
    assert not cache.is_behind
    cache.updated_to(first_update_number(7) + 1)
    assert await seconds_behind(cache, nursery, lambda: cache.updated_to(first_update_number(7) + 3)) == 1


async def test_the_count_of_epochs_may_be_set_back(
    cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Somebody restored /controller_epoch from a backup: what was expected of the lost epochs is
    forgotten, and readers wait again.
    """
    cache.expect_update(first_update_number(7) + 2)
    assert await seconds_behind(cache, nursery, lambda: told(cache, 5)) == 1
    cache.expect_update(first_update_number(5) + 1)
    assert await seconds_behind(cache, nursery, lambda: cache.updated_to(first_update_number(5) + 1)) == 1

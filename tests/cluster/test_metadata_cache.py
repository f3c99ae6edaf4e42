"""Readers at a node wait until its metadata contains the changes that its clients were told of."""

from collections.abc import Callable

import pytest
import trio

from minicontroller.cluster.cache import EXPECTED_UPDATE_SECONDS, MetadataCache, first_update_number


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
    """A reader does not wait for an update that this or an earlier controller has sent, nor for an
    answer without an update number.
    """
    cache.updated_to(first_update_number(7) + 5)
    for number in (-1, first_update_number(7) + 5, first_update_number(6) + 1000):
        cache.expect_update(number)
        assert not cache.is_behind


async def test_readers_wait_for_what_was_answered(
    cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """K4-6a: until the image holds it, and not only a part of it."""
    cache.expect_update(first_update_number(7) + 2)
    assert await seconds_behind(cache, nursery, lambda: cache.updated_to(first_update_number(7) + 2)) == 1
    cache.expect_update(first_update_number(7) + 4)
    cache.updated_to(first_update_number(7) + 3)
    assert cache.is_behind


async def test_a_successor_knows_it_too(cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object) -> None:
    """An update of a later controller satisfies every reader that waits for an earlier one's,
    whatever their numbers.
    """
    cache.expect_update(first_update_number(7) + 1_000_000)
    assert await seconds_behind(cache, nursery, lambda: cache.updated_to(first_update_number(8))) == 1


async def test_an_epoch_alone_says_nothing(cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object) -> None:
    """A new epoch with brokers only does not satisfy readers, because Kafka's controllers send
    topics afterwards.
    """
    cache.expect_update(first_update_number(7) + 1)
    assert await seconds_behind(cache, nursery, lambda: told(cache, 8)) == EXPECTED_UPDATE_SECONDS


async def test_readers_do_not_wait_for_ever(
    cache: MetadataCache, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A reader of a node that gets no updates is answered after a limit, and later readers at once
    until an update arrives.
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
    """If /controller_epoch is restored from a backup, expected updates of the lost epochs are
    dropped, and readers wait for new ones.
    """
    cache.expect_update(first_update_number(7) + 2)
    assert await seconds_behind(cache, nursery, lambda: told(cache, 5)) == 1
    cache.expect_update(first_update_number(5) + 1)
    assert await seconds_behind(cache, nursery, lambda: cache.updated_to(first_update_number(5) + 1)) == 1

"""The finalized features that a node follows in the store."""

import trio

from minicontroller.cluster.cache import MetadataCache
from minicontroller.cluster.entities import FinalizedFeatures
from minicontroller.cluster.znodes import layout
from minicontroller.controller.broker.image_reader import ImageReader
from minicontroller.store.base import Create, Delete, SetData
from tests.store.worlds import World, in_both_worlds

KNOWN = b'{"features":{"f":{"max_version_level":3},"e":{"max_version_level":1}},"version":2,"status":1}'


@in_both_worlds
async def test_the_znode_is_followed(world: World, nursery: trio.Nursery) -> None:
    """From its creation to its deletion; features that are disabled or unreadable are none."""
    store, other, cache = await world.open(), await world.open(), MetadataCache()
    nursery.start_soon(ImageReader(cache, 1).run, store)

    async def until(epoch: int, **levels: int) -> None:
        expected = FinalizedFeatures(epoch, tuple(sorted(levels.items())))
        with trio.fail_after(10):
            while cache.image.features != expected:  # noqa: ASYNC110 - what is looked at has no event of its own
                await trio.sleep(0.01)

    await until(-1)
    await other.commit([Create(layout.FEATURE, KNOWN)])
    await until(0, f=3, e=1)
    for epoch, data in (
        (1, b'{"features":{},"version":2,"status":1}'),
        (2, KNOWN),
        (3, KNOWN.replace(b'status":1', b'status":0')),
    ):
        await other.commit([SetData(layout.FEATURE, data)])
        await until(epoch, **({"f": 3, "e": 1} if epoch == 2 else {}))
    await other.commit([SetData(layout.FEATURE, b"nonsense")])
    await until(4)
    await world.expire(store)
    await other.commit([SetData(layout.FEATURE, KNOWN)])
    await until(5, f=3, e=1)
    await other.commit([Delete(layout.FEATURE)])
    await until(-1)

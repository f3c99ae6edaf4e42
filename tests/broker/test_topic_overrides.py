"""The configs of topics at a node that is not the controller, in memory and on ZooKeeper."""

from collections.abc import Sequence

import pytest
import trio
from immutables import Map

from minicontroller.cluster.entities import Topic
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.controller.broker import topic_overrides
from minicontroller.controller.broker.topic_overrides import TopicOverrides
from minicontroller.store.base import Create, Delete, SetData, Store
from tests.store.worlds import World, in_both_worlds

PATIENCE_SECONDS = 90.0
ONE, OTHER = bytes([1]) * 16, bytes([2]) * 16
pytestmark = in_both_worlds


@pytest.fixture(name="store")
async def store_fixture(world: World) -> Store:
    store = await world.open()
    await store.ensure(layout.TOPIC_CONFIGS)
    return store


async def write(store: Store, name: str, value: str) -> None:
    data = encode_config({"retention.ms": value})
    path = layout.topic_config_path(name)
    await store.commit([Create(path, data) if await store.get(path) is None else SetData(path, data)])


async def until_unknown(overrides: TopicOverrides, topics: Sequence[Topic]) -> None:
    with trio.fail_after(PATIENCE_SECONDS):
        while overrides.known(topics) is not None:  # noqa: ASYNC110 - a cache tells nobody
            await trio.sleep(0.001)


async def test_what_was_read_is_known_until_it_changes(store: Store, other: Store) -> None:
    """Configs are read from the store once, and again only after they changed."""
    overrides, topics = TopicOverrides(store), [Topic("t", ONE)]
    await write(store, "t", "1")
    assert overrides.known(topics) is None
    assert await overrides.read(topics) == overrides.known(topics) == {"t": Map({"retention.ms": "1"})}
    await write(other, "t", "2")
    await until_unknown(overrides, topics)
    assert await overrides.read(topics) == {"t": Map({"retention.ms": "2"})}
    await other.commit([Delete(layout.topic_config_path("t"))])
    await until_unknown(overrides, topics)
    assert await overrides.read(topics) == {"t": Map()}


async def test_what_was_read_is_of_one_topic(store: Store) -> None:
    """A topic of the same name and another id is another one, and what this node has changed it
    does not know.
    """
    overrides = TopicOverrides(store)
    await write(store, "t", "1")
    await overrides.read([Topic("t", ONE)])
    assert overrides.known([Topic("t", OTHER)]) is None
    overrides.forget("t")
    assert overrides.known([Topic("t", ONE)]) is None
    await overrides.read([Topic("t", ONE)])
    overrides.notified(["/config/topics/t"])
    assert overrides.known([Topic("t", ONE)]) is None


async def test_nothing_is_known_without_a_session(store: Store, world: World) -> None:
    """A watch does not fire while the connection is lost."""
    overrides, topics = TopicOverrides(store), [Topic("t", ONE)]
    await write(store, "t", "1")
    await overrides.read(topics)
    await world.suspend(store)
    assert overrides.known(topics) is None
    await world.resume(store)
    await overrides.read(topics)
    await world.expire(store)
    assert overrides.known(topics) is None


async def test_only_so_many_are_kept(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each costs the server a watch: the one that was read first goes first; many at once are read
    and not kept.
    """
    monkeypatch.setattr(topic_overrides, "MAX_KEPT", 2)
    overrides, topics = TopicOverrides(store), [Topic(name, ONE) for name in "abc"]
    for topic in topics:
        await overrides.read([topic])
    assert [overrides.known([topic]) is None for topic in topics] == [True, False, False]
    await write(store, "a", "1")
    assert await overrides.read(topics) == {"a": Map({"retention.ms": "1"}), "b": Map(), "c": Map()}

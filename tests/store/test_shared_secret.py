"""The secret of the nodes in ZooKeeper: all nodes share one, and make a new one if it
is deleted.
"""

import logging
from collections.abc import Callable
from functools import partial

import pytest
import trio

from minicontroller.cluster.errors import ConfigurationError, first_of
from minicontroller.cluster.znodes.membership import MEMBERSHIP, decode_membership
from minicontroller.controller.broker.shared_secret import SharedSecret
from minicontroller.security.zookeeper_access import CREATOR_ONLY, protected
from minicontroller.store.base import AccessDenied, Delete, Entry, SetData, Store, Watch
from minicontroller.store.jute import OPEN, open_to_all
from minicontroller.store.memory import MemoryStore, MemoryTree
from tests.store.worlds import PATIENCE_SECONDS, World


class Follower:
    """A node that follows the secret."""

    def __init__(self) -> None:
        self.changes = 0
        self._changed = trio.Event()
        self.secret = SharedSecret()

    def note(self) -> None:
        self.changes += 1
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, reached: Callable[[bytes | None], bool]) -> bytes | None:
        with trio.fail_after(PATIENCE_SECONDS):
            while not reached(self.secret.current()):
                await self._changed.wait()
        return self.secret.current()


async def following(nursery: trio.Nursery, *stores: Store) -> list[Follower]:
    """Nodes that began at the same time."""
    followers = [Follower() for _ in stores]
    async with trio.open_nursery() as starting:
        for follower, store in zip(followers, stores, strict=True):
            starting.start_soon(nursery.start, partial(follower.secret.run, store, follower.note))
    return followers


async def test_nodes_agree_on_one(world: World, nursery: trio.Nursery) -> None:
    """Nodes that start at once, and one that starts later, share one secret, which is too long to
    guess.
    """
    first, second = await following(nursery, await world.open(), await world.open())
    (third,) = await following(nursery, await world.open())
    known = {follower.secret.current() for follower in (first, second, third)}
    assert len(known) == 1
    assert len(known.pop() or b"") == 32


async def test_whoever_deletes_it_makes_another_one(world: World, store: Store, nursery: trio.Nursery) -> None:
    """All nodes leave the old one and agree on the new one, which is not the old one."""
    followers = await following(nursery, await world.open(), await world.open())
    old = followers[0].secret.current()
    await store.commit([Delete(MEMBERSHIP)])
    new = [await follower.until(lambda now: now not in (None, old)) for follower in followers]
    assert new[0] == new[1]


async def test_it_is_followed_in_a_new_session(world: World, store: Store, nursery: trio.Nursery) -> None:
    """The watch dies with its session: what changed before or after the next one begins is noticed
    all the same.
    """
    mine = await world.open()
    (follower,) = await following(nursery, mine)
    await world.expire(mine)
    old = follower.secret.current()
    await store.commit([Delete(MEMBERSHIP)])
    await follower.until(lambda now: now not in (None, old))


@pytest.mark.parametrize(
    "data",
    [None, b"", b"\xff", b"{}", b'{"version":1,"secret":"QUJD"}', b'{"version":2,"secret":"' + b"A" * 44 + b'"}'],
)
async def test_what_is_no_secret_proves_nothing(
    world: World, store: Store, nursery: trio.Nursery, data: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """With malformed data in its place the nodes have no secret; they keep the data, do not log it,
    and recover.
    """
    caplog.set_level(logging.DEBUG)
    (follower,) = await following(nursery, await world.open())
    await store.commit([SetData(MEMBERSHIP, data)])
    await follower.until(lambda now: now is None)
    entry = await store.get(MEMBERSHIP)
    assert entry is not None
    assert entry.data == data
    assert "cannot prove themselves" in caplog.text
    assert "QUJD" not in caplog.text
    assert "AAAA" not in caplog.text
    await store.commit([Delete(MEMBERSHIP)])
    await follower.until(lambda now: now is not None)


async def test_it_is_in_no_log(world: World, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture) -> None:
    """The secret is not logged when it is made, when it is read, or when it changes."""
    caplog.set_level(logging.DEBUG)
    store = await world.open()
    (follower,) = await following(nursery, store)
    entry = await store.get(MEMBERSHIP)
    old = follower.secret.current()
    await store.commit([Delete(MEMBERSHIP)])
    await follower.until(lambda now: now not in (None, old))
    assert entry is not None
    assert (entry.data or b"").decode() not in caplog.text
    assert decode_membership(entry.data) == old
    assert old is not None
    assert old.hex() not in caplog.text
    assert repr(old) not in caplog.text


class Closed(MemoryStore):
    """A store that may not read the secret, as by an ACL of ZooKeeper."""

    async def get(self, path: str, watch: Watch | None = None) -> Entry | None:
        if path == MEMBERSHIP:
            await trio.lowlevel.checkpoint()
            raise AccessDenied(path=path)
        return await super().get(path, watch)


async def test_a_node_that_may_not_read_it_does_not_start() -> None:
    """A node that may not read the secret ends with a sentence that names the znode."""
    with pytest.raises(ExceptionGroup) as caught:
        async with trio.open_nursery() as nursery:
            await following(nursery, Closed(MemoryTree()))
    error = first_of(caught.value)
    assert isinstance(error, ConfigurationError)
    assert MEMBERSHIP in str(error)


def test_only_who_made_it_may_read_it() -> None:
    """With `zookeeper.set.acl` it is as closed as credentials are; without, as open as the rest of
    the tree.
    """
    assert protected(MEMBERSHIP) == CREATOR_ONLY
    assert open_to_all(MEMBERSHIP) == OPEN

"""Follows notifications of changes in the store: those in `/config/changes`, which every writer of
configs adds to, and those of ACLs, of delegation tokens and of groups.

Rule: a notification only names an entity, so late or repeated ones do no harm, and those from
before the start are ignored: everything is loaded after the watch is set. A notification is new if
its name is, so a sequence number that somebody invented hides none. Each listing returns all
notifications, so a stream of changes causes a few listings a second and not one for each change.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

import trio

from ...clock import now_ms
from ...cluster.znodes.content import MalformedZnodeError
from ...store.base import AccessDenied, Delete, SessionExpired, SessionState, Store, StoreError, StoreUnavailable
from ...store.sessions import wait_connected
from ...store.signal import Signal

log = logging.getLogger("minicontroller.config")

OnChange = Callable[[Store, Sequence[str]], Awaitable[None]]
"""Called with the paths of the entities that notifications name, each once."""

PAUSE_SECONDS = 0.1
"""The pause between two listings; the first one is immediate."""
LOOKING_SHARE = 20
"""A slow listing is followed by a pause this many times as long."""
MAX_PAUSE_SECONDS = 2.0
"""The longest pause, so that changes are seen soon after a time in which the store was slow."""

KEPT_MS = 15 * 60 * 1000  # Kafka: how long a notification waits for those who have not seen it
MAX_KEPT = 100_000
"""How many notifications may stay: the names of more would not fit into a response that Kafka's
brokers accept from ZooKeeper (4 MiB).
"""
TIDY_PAUSE_SECONDS = 30.0
TIDY_BATCH = 1_000
TIDY_BATCHES = 10
"""How many batches are removed after one listing, since new notifications wait meanwhile."""


class ChangeNotifications:
    """Follows the notifications below one znode over any number of sessions."""

    def __init__(self, root: str, decode: Callable[[bytes | None], Iterable[str]]) -> None:
        """Prepare to follow the notifications below `root`. `decode` returns the paths of the
        entities that one of them names, and raises MalformedZnodeError.
        """
        self._root = root
        self._complaint = f"the notification {root}/%s is unreadable and ignored: %s"  # each root is a kind of its own
        self._decode = decode
        self._processing = trio.Lock()
        self._is_denied = False
        """Whether it was logged that ZooKeeper denies the access."""
        self._changed = Signal()
        self._seen: frozenset[str] | None = None
        """The notifications of the last listing that were followed."""
        self._session_lost = False
        self._tidy_at = 0.0

    async def follow(
        self,
        store: Store,
        *,
        load: Callable[[Store], Awaitable[None]],
        on_change: OnChange,
        tidies: Callable[[], bool],
        task_status: trio.TaskStatus[None],
    ) -> None:
        """Follow the notifications until cancelled. `load` is called at the start and after each
        loss of the session or the connection, `on_change` for what changes in between; while
        `tidies()` holds, old ones are removed.
        """
        started = False
        unsubscribe = store.on_session(self._session_changed)
        try:
            while True:
                await wait_connected(store)
                try:
                    names = await self._watch_anew(store)
                    await load(store)
                    if not started:
                        task_status.started()
                        started = True
                    await self._follow_session(store, names, on_change, tidies)
                except AccessDenied as error:
                    if not self._is_denied:
                        self._is_denied = True
                        log.warning("what notifications below %s name cannot be followed: %s", self._root, error)
                    await trio.sleep(PAUSE_SECONDS)
                except StoreError as error:
                    log.debug("the notifications below %s cannot be followed for a moment: %s", self._root, error)
                    await trio.sleep(PAUSE_SECONDS)
        finally:
            unsubscribe()

    async def _watch_anew(self, store: Store) -> list[str]:
        self._session_lost = False
        await store.ensure(self._root)
        names = await store.children(self._root, self._changed.send)
        if self._seen is None:
            self._seen = frozenset(names)
        return names

    async def _follow_session(
        self,
        store: Store,
        names: list[str],
        on_change: OnChange,
        tidies: Callable[[], bool],
    ) -> None:
        began = trio.current_time()
        while True:
            await self._process(store, names, on_change)
            took = trio.current_time() - began
            if tidies() and (began >= self._tidy_at or len(names) > MAX_KEPT):
                is_tidy = await self.tidy(store, names)
                self._tidy_at = began + (TIDY_PAUSE_SECONDS if is_tidy else 0)
            await trio.sleep(min(max(PAUSE_SECONDS, LOOKING_SHARE * took), MAX_PAUSE_SECONDS))
            await self._changed.wait()
            if self._session_lost:
                return
            began = trio.current_time()
            names = await store.children(self._root, self._changed.send)

    async def catch_up(self, store: Store, on_change: OnChange) -> None:
        """Read the notifications that nobody has read yet, and return when `on_change` has. Raises
        StoreError.
        """
        await self._process(store, await store.children(self._root), on_change)

    async def _process(self, store: Store, names: Iterable[str], on_change: OnChange) -> None:
        present = frozenset(names)
        if present.issubset(self._seen or ()):
            self._seen = present
            return
        async with self._processing:
            new = sorted(present.difference(self._seen or ()), key=_number)
            entries = await store.get_many([f"{self._root}/{name}" for name in new])
            paths: dict[str, None] = {}
            for name, entry in zip(new, entries, strict=True):
                if entry is None:
                    continue
                try:
                    paths.update(dict.fromkeys(self._decode(entry.data)))
                except MalformedZnodeError as error:
                    log.warning(self._complaint, name, error)
            if paths:
                await on_change(store, list(paths))
            self._seen = present

    async def tidy(self, store: Store, names: Sequence[str], *, most: int = MAX_KEPT) -> bool:
        """Remove notifications older than KEPT_MS, and the oldest of those beyond `most`. Return
        False if some of them are left.
        """
        oldest = sorted(names, key=_number)
        horizon = now_ms() - KEPT_MS
        for start in range(0, TIDY_BATCHES * TIDY_BATCH, TIDY_BATCH):
            surplus = len(oldest) - start - most
            paths = [f"{self._root}/{name}" for name in oldest[start : start + TIDY_BATCH]]
            entries = await store.get_many(paths)
            doomed = [
                Delete(path)
                for index, (path, entry) in enumerate(zip(paths, entries, strict=True))
                if entry is not None and (index < surplus or entry.stat.ctime_ms < horizon)
            ]
            await _remove(store, doomed)
            if len(doomed) < len(paths) - entries.count(None):
                return True  # those behind are younger
            if start + TIDY_BATCH >= len(oldest):
                return True
        return False

    def _session_changed(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._session_lost = True
            self._changed.send()


async def _remove(store: Store, doomed: Sequence[Delete]) -> None:
    try:
        if doomed:
            await store.commit(doomed)
    except (StoreUnavailable, SessionExpired):
        raise
    except StoreError as error:
        # Others were faster with one of them, have put something below it, or keep it for
        # themselves: that one stays.
        log.debug("%s cannot be removed: %s", error.path, error)
        if len(doomed) > 1:
            half = len(doomed) // 2
            await _remove(store, doomed[:half])
            await _remove(store, doomed[half:])


def _number(name: str) -> int:
    """Return the number that ZooKeeper gave a notification, in the last ten digits of its name, or
    -1 if there is none.
    """
    digits = name[-10:]
    return int(digits) if digits.isascii() and digits.isdigit() else -1

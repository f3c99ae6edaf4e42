"""The notifications in `/config/changes`: who writes a config adds one, and every node follows them.

Rule: a notification only names what changed, so a late or double one does no harm, and what came before the start is not looked at
at all: the state is loaded after the watch is set. Looking is bounded: a stream of changes costs a few looks a second, not one a
change, since every look lists all that is there.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

import trio

from ..cluster.bell import Bell
from ..store import layout
from ..store.base import Delete, NodeMissing, Session, SessionExpired, Store, StoreUnavailable
from ..store.sessions import wait_connected

log = logging.getLogger("minicontroller.config")

EntityChanged = Callable[[str, str], None]
"""(entity type, entity name): ("topics", "orders"), ("brokers", "1"), ("users", "alice/clients/<default>")."""

PAUSE_SECONDS = 0.1
"""Between two looks, the first of which is immediate."""
LOOKING_SHARE = 20
"""A look that took long is followed by a pause this many times as long."""

KEPT_MS = 15 * 60 * 1000  # Kafka: how long a notification waits for those who have not seen it
MAX_KEPT = 100_000
"""More than that and a list of their names would no longer fit into what Kafka's brokers take from ZooKeeper (4 MiB)."""
TIDY_PAUSE_SECONDS = 30.0
TIDY_BATCH = 1_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class ConfigChanges:
    """Follows `/config/changes` over any number of sessions."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._bell = Bell()
        self._last: int | None = None
        """The number of the last notification that was seen."""
        self._session_lost = False
        self._tidy_at = 0.0

    async def follow(
        self,
        store: Store,
        *,
        load: Callable[[Store], Awaitable[None]],
        notice: Callable[[Store, Iterable[tuple[str, str]]], Awaitable[None]],
        tidies: Callable[[], bool],
        task_status: trio.TaskStatus[None],
    ) -> None:
        """Until cancelled. `load` is called at the start and after each loss of the session or the connection, `notice` for
        what changes in between.
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
                    await self._follow_session(store, names, notice, tidies)
                except (StoreUnavailable, SessionExpired, NodeMissing) as error:
                    log.debug("the changes of configs cannot be followed for a moment: %s", error)
                    await trio.sleep(PAUSE_SECONDS)
        finally:
            unsubscribe()

    async def _watch_anew(self, store: Store) -> list[str]:
        self._session_lost = False
        await store.ensure(layout.CONFIG_CHANGES)
        names = await store.children(layout.CONFIG_CHANGES, self._bell.ring)
        if self._last is None:
            self._last = max(map(_number, names), default=-1)
        return names

    async def _follow_session(
        self,
        store: Store,
        names: list[str],
        notice: Callable[[Store, Iterable[tuple[str, str]]], Awaitable[None]],
        tidies: Callable[[], bool],
    ) -> None:
        """Until the session is lost."""
        while True:
            began = trio.current_time()
            await self._process(store, names, notice)
            if tidies() and began >= self._tidy_at:
                self._tidy_at = began + TIDY_PAUSE_SECONDS
                await self.tidy(store, names)
            await trio.sleep(max(PAUSE_SECONDS, LOOKING_SHARE * (trio.current_time() - began)))
            await self._bell.wait()
            if self._session_lost:
                return
            names = await store.children(layout.CONFIG_CHANGES, self._bell.ring)

    async def _process(
        self, store: Store, names: Iterable[str], notice: Callable[[Store, Iterable[tuple[str, str]]], Awaitable[None]]
    ) -> None:
        last = -1 if self._last is None else self._last
        new = sorted((name for name in names if _number(name) > last), key=_number)
        if not new:
            return
        entries = await store.get_many([f"{layout.CONFIG_CHANGES}/{name}" for name in new])
        entities: dict[tuple[str, str], None] = {}
        for name, entry in zip(new, entries, strict=True):
            if entry is None or not entry.data:
                continue
            try:
                entities[layout.decode_config_change(entry.data)] = None
            except layout.LayoutError as error:
                log.warning("the notification %s is unreadable and ignored: %s", name, error)
        await notice(store, entities)
        self._last = _number(new[-1])

    async def tidy(self, store: Store, names: Sequence[str], *, most: int = MAX_KEPT) -> None:
        """Remove the oldest, as far as they have been there long enough, or there are too many."""
        oldest = sorted(names, key=_number)[:TIDY_BATCH]
        paths = [f"{layout.CONFIG_CHANGES}/{name}" for name in oldest]
        horizon = self._clock_ms() - KEPT_MS
        surplus = len(names) - most
        entries = await store.get_many(paths)
        doomed = [
            Delete(path)
            for index, (path, entry) in enumerate(zip(paths, entries, strict=True))
            if entry is not None and (index < surplus or entry.stat.ctime_ms < horizon)
        ]
        if doomed:
            await store.commit(doomed)

    def _session_changed(self, state: Session) -> None:
        if state is Session.EXPIRED:
            self._session_lost = True
            self._bell.ring()


def _number(name: str) -> int:
    """ZooKeeper counts them in the last ten digits."""
    digits = name[-10:]
    return int(digits) if digits.isascii() and digits.isdigit() else -1

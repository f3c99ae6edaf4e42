"""Waiting for the state of a store's session."""

from collections.abc import Awaitable, Callable

import trio

from .base import SessionState, Store


class Absence:
    """Measures for how long a store has not been connected."""

    def __init__(self, store: Store) -> None:
        self._since: float | None = None
        store.on_session(self._look)

    def _look(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._since = None
        elif self._since is None:
            self._since = trio.current_time()

    @property
    def seconds(self) -> float:
        """Seconds since the store lost its connection; 0 while it is connected."""
        return 0.0 if self._since is None else trio.current_time() - self._since


async def wait_connected(store: Store) -> None:
    await _wait(store, lambda state: state is SessionState.CONNECTED)


async def wait_expired(store: Store, session_id: int) -> None:
    await _wait(store, lambda state: state is SessionState.EXPIRED or store.session_id != session_id)


async def wait_within_session(store: Store, session_id: int, wait: Callable[[], Awaitable[None]]) -> None:
    """Wait until `wait` returns or the session ends; with the session go the watches that `wait`
    may depend on.
    """
    async with trio.open_nursery() as nursery:

        async def end_with_session() -> None:
            await wait_expired(store, session_id)
            nursery.cancel_scope.cancel()

        nursery.start_soon(end_with_session)
        await wait()
        nursery.cancel_scope.cancel()


async def _wait(store: Store, reached: Callable[[SessionState], bool]) -> None:
    event = trio.Event()

    def look(state: SessionState) -> None:
        if reached(state):
            event.set()

    unsubscribe = store.on_session(look)
    try:
        look(store.session)
        await event.wait()
    finally:
        unsubscribe()

"""Waiting for a session to be what one needs."""

from collections.abc import Callable

import trio

from .base import Session, Store


async def wait_connected(store: Store) -> None:
    """Return once the session is connected."""
    await _wait(store, lambda state: state is Session.CONNECTED)


async def wait_expired(store: Store, session_id: int) -> None:
    """Return once the session with this id is over."""
    await _wait(store, lambda state: state is Session.EXPIRED or store.session_id != session_id)


async def _wait(store: Store, reached: Callable[[Session], bool]) -> None:
    event = trio.Event()

    def look(state: Session) -> None:
        if reached(state):
            event.set()

    unsubscribe = store.on_session(look)
    try:
        look(store.session)
        await event.wait()
    finally:
        unsubscribe()

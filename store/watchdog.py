"""A watchdog that gives a store's session up when the event loop hangs.

A controller whose event loop hangs is worse than a dead one: it elects no leaders, and while its
session lives no other controller is elected.

Rule: the watchdog is a thread that shares nothing with the loop but the time of its last sign of
life. It acts once each time that the loop hangs. If the whole process was stopped, the watchdog
acts when the process continues, before its loop does.
"""

import logging
import threading
import time

import trio

from .base import Store

log = logging.getLogger("minicontroller.store")

BEATS_PER_TIMEOUT = 4


async def run_watchdog(store: Store, timeout_ms: int) -> None:
    """Abandon the store's session, until cancelled, when this loop gives no sign of life for
    `timeout_ms`; with 0 or less, never.
    """
    if timeout_ms <= 0:
        await trio.sleep_forever()
    watchdog = Watchdog(store, timeout_ms / 1000)
    watchdog.start()
    try:
        while True:
            watchdog.sign_of_life()
            await trio.sleep(timeout_ms / 1000 / BEATS_PER_TIMEOUT)
    finally:
        watchdog.stop()


class Watchdog:
    def __init__(self, store: Store, timeout_seconds: float) -> None:
        self._store = store
        self._timeout = timeout_seconds
        self._last = time.perf_counter()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def sign_of_life(self) -> None:
        self._last = time.perf_counter()

    def _watch(self) -> None:
        given_up_at = 0.0
        while not self._stopped.wait(self._timeout / BEATS_PER_TIMEOUT):
            last = self._last
            silence = time.perf_counter() - last
            if silence > self._timeout and last != given_up_at:
                given_up_at = last
                log.error("The event loop has not turned for %.1f s: the session is given up", silence)
                self._store.abandon()

"""The finalized features of the cluster, as `/feature` has them.

Rule: this program finalizes none and understands none. They are only shown: Kafka's own brokers
would shut down at a feature that they do not know.
"""

import logging

import msgspec
import trio

from ...cluster.znodes import layout
from ...cluster.znodes.cluster import finalized_features
from ...cluster.znodes.content import MalformedZnodeError
from ...store.base import SessionExpired, SessionState, Store, StoreError
from ...store.sessions import wait_connected
from ...store.signal import Signal

log = logging.getLogger("minicontroller.node")

PAUSE_SECONDS = 0.1
"""The pause between two readings, however often the znode changes."""
NO_EPOCH = -1


class FinalizedFeatures(msgspec.Struct, frozen=True):
    """The features at one moment."""

    epoch: int = NO_EPOCH
    """The version of `/feature`; -1 if there is no such znode."""
    levels: tuple[tuple[str, int], ...] = ()


class FollowedFeatures:
    """The features as they are now, kept up to date by `run`."""

    def __init__(self) -> None:
        self.current = FinalizedFeatures()
        self._changed = Signal()

    async def run(self, store: Store) -> None:
        """Follow the features until cancelled."""
        unsubscribe = store.on_session(self._session_changed)
        try:
            while True:
                await wait_connected(store)
                try:
                    await self._read(store)
                except (StoreError, SessionExpired) as error:
                    log.debug("%s cannot be read for a moment: %s", layout.FEATURE, error)
                    self._changed.send()
                await trio.sleep(PAUSE_SECONDS)
                await self._changed.wait()
        finally:
            unsubscribe()

    async def _read(self, store: Store) -> None:
        entry = await store.get(layout.FEATURE, self._changed.send)
        if entry is None:
            self.current = FinalizedFeatures()
            return
        try:
            levels = finalized_features(entry.data)
        except MalformedZnodeError as error:
            log.warning("%s is ignored: %s", layout.FEATURE, error)
            levels = {}
        self.current = FinalizedFeatures(entry.stat.version, tuple(sorted(levels.items())))

    def _session_changed(self, state: SessionState) -> None:
        if state is not SessionState.EXPIRED:
            self._changed.send()

"""The secret by which the nodes of a cluster prove themselves to each other. It is kept in the
cluster's tree: a process that may read and write there counts as a node.

Rule: the first node creates the secret, and all nodes follow its znode. To change a secret that
became known, an operator deletes the znode, and the nodes create another one. While the secret
cannot be read, no proof is accepted. It is neither written elsewhere nor logged.
"""

import logging
import math
import secrets
from collections.abc import Callable

import trio

from ...cluster.errors import ConfigurationError
from ...cluster.znodes.content import MalformedZnodeError
from ...cluster.znodes.membership import MEMBERSHIP, decode_membership, encode_membership
from ...store.base import AccessDenied, Create, Entry, NodeExists, SessionExpired, Store, StoreUnavailable
from ...store.sessions import wait_connected, wait_within_session
from ...store.signal import Signal

log = logging.getLogger("minicontroller.node")

SECRET_BYTES = 32
RETRY_SECONDS = 10.0
"""The pause before a znode that access control hides is read again: no watch can be set on it."""


class SharedSecret:
    """Follows the secret; `current` is None while there is none that can be read."""

    def __init__(self) -> None:
        self._current: bytes | None = None
        self._changed = Signal()

    def current(self) -> bytes | None:
        return self._current

    async def run(
        self, store: Store, on_change: Callable[[], None], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Follow the secret until cancelled; reported as started once it is known. `on_change` is
        called when it changes or is lost, so that connections which were proved by it can be
        closed. Raises ConfigurationError if access control hides it from the node at its start.
        """
        started = False
        while True:
            await wait_connected(store)
            session_id = store.session_id
            before, patience = self._current, math.inf
            try:
                self._take(await self._read_or_make(store))
            except (StoreUnavailable, SessionExpired) as error:
                log.debug("the secret of the nodes is not known yet: %s", error)
                await trio.lowlevel.checkpoint()
                continue
            except AccessDenied as error:
                if not started:
                    raise ConfigurationError(
                        f"ZooKeeper does not let this node read {MEMBERSHIP}, by which the nodes of the cluster know each other: "
                        "all of them need the same rights to the cluster's tree."
                    ) from error
                self._forget(str(error))
                patience = RETRY_SECONDS
            if self._current != before:
                on_change()
            if not started:
                task_status.started()
                started = True
            with trio.move_on_after(patience):
                await wait_within_session(store, session_id, self._changed.wait)

    async def _read_or_make(self, store: Store) -> Entry:
        while True:
            entry = await store.get(MEMBERSHIP, self._changed.send)
            if entry is not None:
                return entry
            await store.ensure(MEMBERSHIP.rpartition("/")[0])
            try:
                data = encode_membership(secrets.token_bytes(SECRET_BYTES))
                await store.commit([Create(MEMBERSHIP, data)])
            except NodeExists:
                log.debug("another node was faster to make the secret of the nodes")

    def _take(self, entry: Entry) -> None:
        try:
            secret = decode_membership(entry.data)
        except MalformedZnodeError as error:
            self._forget(f"{error}: once it is deleted, the nodes make another one")
            return
        if secret != self._current:
            known, self._current = self._current, secret
            if known is not None:
                log.warning("the secret of the nodes is another one: connections between nodes begin anew")

    def _forget(self, reason: str) -> None:
        log.error("the nodes of the cluster cannot prove themselves to this one: %s", reason)
        self._current = None

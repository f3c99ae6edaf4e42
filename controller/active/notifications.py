"""Notifications that brokers leave for the controller in the store, and the znode `/feature`.

Rule: a notification only says what to read. Notifications that exist at an election are removed
unread, since the new controller reads everything.

- `/isr_change_notification`: a broker before Kafka 2.7 has written states of partitions that it
  leads.
- `/log_dir_event_notification`: a broker has lost a log directory. Its response to LeaderAndIsr for
  all its replicas says which replicas are lost.
- `/feature`: the finalized features. There are never any, because a broker of Kafka 3.x shuts down
  if it does not know one.
"""

import logging
from collections.abc import Sequence

import msgspec

from ...cluster.delta import NO_CHANGE
from ...cluster.znodes import broker_notifications, layout
from ...cluster.znodes.cluster import NO_FEATURES, features_are_disabled
from ...cluster.znodes.content import MalformedZnodeError
from ...store.base import (
    Check,
    Create,
    Delete,
    Operation,
    SessionExpired,
    SetData,
    Store,
    StoreError,
    StoreUnavailable,
    Watch,
)
from .jobs import ControllerMoved, Draft

log = logging.getLogger("minicontroller.controller")

DELETES_IN_ONE = 1000
"""The number of notifications that are removed in one commit."""
LISTS = (layout.ISR_CHANGE_NOTIFICATION, layout.LOG_DIR_EVENT_NOTIFICATION)


class BrokerNotifications(msgspec.Struct):
    """The notifications in the store."""

    paths: list[str] = []
    changed_isrs: set[str] = set()
    """The names of topics with partition states that a broker has written."""
    lost_directories: set[int] = set()
    """The ids of brokers that have lost a log directory."""


async def begin(store: Store, fence: Check, watch: Watch) -> None:
    """Remove old notifications after an election, set watches for new ones, and make sure that
    `/feature` names no features. Raises ControllerMoved.
    """
    await _ensure_feature(store, fence)
    paths = [f"{parent}/{name}" for parent in LISTS for name in await store.children(parent, watch)]
    for start in range(0, len(paths), DELETES_IN_ONE):
        await _commit(store, fence, [Delete(path) for path in paths[start : start + DELETES_IN_ONE]])


async def _ensure_feature(store: Store, fence: Check) -> None:
    """Write `/feature` as a controller of Kafka 3.9 does: if it is missing, or if an older one has
    disabled it.
    """
    entry = await store.get(layout.FEATURE)
    if entry is None:
        await _commit(store, fence, [Create(layout.FEATURE, NO_FEATURES)])
    elif _are_disabled(entry.data):
        await _commit(store, fence, [SetData(layout.FEATURE, NO_FEATURES, entry.stat.version)])


def _are_disabled(data: bytes | None) -> bool:
    try:
        return features_are_disabled(data)
    except MalformedZnodeError as error:
        log.warning("%s is not changed: %s", layout.FEATURE, error)
        return False


async def _commit(store: Store, fence: Check, operations: Sequence[Operation]) -> None:
    try:
        await store.commit([fence, *operations])
    except (StoreUnavailable, SessionExpired):
        raise
    except StoreError as error:
        if error.index == 0:
            raise ControllerMoved from error
        log.info("another program has changed it, or this node may not write it: %s", error)


async def read(store: Store, watch: Watch) -> BrokerNotifications:
    """Read the notifications, and set watches for later ones."""
    found = BrokerNotifications()
    for parent in LISTS:
        paths = [f"{parent}/{name}" for name in await store.children(parent, watch)]
        for path, entry in zip(paths, await store.get_many(paths), strict=True):
            if entry is not None:
                found.paths.append(path)
                _understand(found, path, entry.data)
    return found


def _understand(found: BrokerNotifications, path: str, data: bytes | None) -> None:
    try:
        if path.startswith(layout.ISR_CHANGE_NOTIFICATION):
            found.changed_isrs.update(each.topic for each in broker_notifications.decode_isr_change(data))
        else:
            found.lost_directories.add(broker_notifications.decode_log_dir_event(data))
    except MalformedZnodeError as error:
        log.warning("the notification %s is removed: %s", path, error)


async def remove(draft: Draft, paths: Sequence[str]) -> None:
    for path in paths:
        draft.stage(NO_CHANGE, [Delete(path)])

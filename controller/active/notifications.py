"""What brokers tell the controller by way of the store, and what a controller puts in order before
it reads anything.

Rule: a notification only says where to look. Those that lie there at an election are removed
unread: everything is looked at then.

- `/isr_change_notification`: brokers before Kafka 2.7 write the states of what they lead by
  themselves, and say so here.
- `/log_dir_event_notification`: a broker has lost a directory; LeaderAndIsr for all its replicas
  makes it tell which.
- `/feature`: which features are finalized. None, ever: a broker of Kafka 3.x that does not know one
  ends itself.
"""

import logging
from collections.abc import Sequence

import msgspec

from ..store.base import (
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
from ..znodes import broker_notifications, layout
from ..znodes.cluster import NO_FEATURES, features_are_disabled
from ..znodes.content import MalformedZnodeError
from .jobs import ControllerMoved, Draft

log = logging.getLogger("minicontroller.controller")

DELETES_IN_ONE = 1000
LISTS = (layout.ISR_CHANGE_NOTIFICATION, layout.LOG_DIR_EVENT_NOTIFICATION)


class BrokerNotifications(msgspec.Struct):
    """What brokers have told since the last look."""

    paths: list[str] = []
    changed_isrs: set[str] = set()
    """Topics."""
    lost_directories: set[int] = set()
    """Brokers."""


async def begin(store: Store, fence: Check, watch: Watch) -> None:
    """Remove old notifications at an election, with watches for new ones, and see to `/feature`.
    Raises ControllerMoved.
    """
    await _ensure_feature(store, fence)
    paths = [f"{parent}/{name}" for parent in LISTS for name in await store.children(parent, watch)]
    for start in range(0, len(paths), DELETES_IN_ONE):
        await _commit(store, fence, [Delete(path) for path in paths[start : start + DELETES_IN_ONE]])


async def _ensure_feature(store: Store, fence: Check) -> None:
    """Write `/feature` as a controller of Kafka 3.9: where it is missing, or an older one has
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
        log.warning("what somebody wrote to %s is left alone: %s", layout.FEATURE, error)
        return False


async def _commit(store: Store, fence: Check, operations: Sequence[Operation]) -> None:
    try:
        await store.commit([fence, *operations])
    except (StoreUnavailable, SessionExpired):
        raise
    except StoreError as error:
        if error.index == 0:
            raise ControllerMoved from error
        log.info("somebody was faster, or keeps it for themselves: %s", error)


async def read(store: Store, watch: Watch) -> BrokerNotifications:
    """Read the notifications, with watches for those to come."""
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
        log.warning("the notification %s is unreadable and removed: %s", path, error)


async def remove(draft: Draft, paths: Sequence[str]) -> None:
    """Remove notifications that have been acted upon."""
    for path in paths:
        draft.stage(None, [Delete(path)])

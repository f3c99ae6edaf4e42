"""Reads the entities that every node knows into the node's image: configs of brokers, users,
clients and addresses, ACLs, delegation tokens, groups, and features. It follows the notifications
that name what was written, by this cluster's controller, by Kafka's tools, or by other brokers.

Rule: the image is never older than what a controller of this process has written or what another
one waits for. Readings run one after the other, so that none restores what is older. Values may be
secrets, and are never logged.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec
import trio

from ...cluster.cache import ImageChanges, MetadataCache
from ...cluster.entity_paths import (
    CONFIGS,
    GROUPS,
    TOKENS,
    Entity,
    closure,
    is_followed,
    is_unreadable,
    paths_below,
)
from ...cluster.image import Image
from ...cluster.znodes import acls, groups, layout, tokens
from ...cluster.znodes.configs import decode_config_change
from ...cluster.znodes.entity_names import client_entity_at
from ...store.base import SessionExpired, Store, StoreError
from ...store.sessions import wait_connected
from ...store.signal import Signal
from ..active.entity_reading import load_acls, load_configs, load_groups, load_tokens, read_entities
from .change_notifications import PAUSE_SECONDS, ChangeNotifications

log = logging.getLogger("minicontroller.config")

CATCH_UP_SECONDS = 1.0
"""How long a reading may take while the controller waits for it."""

Load = Callable[[Store], Awaitable[Mapping[str, Entity | None]]]
Notified = Callable[[Sequence[str]], None]


class EntitySource(msgspec.Struct, frozen=True, eq=False):
    """Where entities of one kind are written, and how they are read."""

    prefix: str
    load: Load
    notifications: ChangeNotifications


def _sources() -> tuple[EntitySource, ...]:
    def follow(prefix: str, load: Load, root: str, decode: Callable[[bytes | None], Iterable[str]]) -> EntitySource:
        return EntitySource(prefix, load, ChangeNotifications(root, decode))

    return (
        follow(CONFIGS, load_configs, layout.CONFIG_CHANGES, _named_configs),
        *(
            follow(f"{root}/", partial(load_acls, root=root), changes, decode)
            for root, changes, decode in (
                (acls.LITERAL_ROOT, acls.LITERAL_CHANGES, _named_literal),
                (acls.PREFIXED_ROOT, acls.EXTENDED_CHANGES, _named_extended),
            )
        ),
        follow(TOKENS, load_tokens, tokens.CHANGES, _named_token),
        follow(GROUPS, load_groups, groups.CHANGES, _named_in_group),
    )


def _named_configs(data: bytes | None) -> Iterable[str]:
    return (f"{CONFIGS}{layout.entity_path(*decode_config_change(data))}",)


def _named_literal(data: bytes | None) -> Iterable[str]:
    return (acls.acl_path(acls.decode_literal_acl_change(data)),)


def _named_extended(data: bytes | None) -> Iterable[str]:
    return (acls.acl_path(acls.decode_extended_acl_change(data)),)


def _named_token(data: bytes | None) -> Iterable[str]:
    return (tokens.token_path(tokens.decode_token_change(data)),)


def _named_in_group(data: bytes | None) -> Iterable[str]:
    return [f"{GROUPS}{name}" for name in groups.decode_group_change(data)]


class ImageReader:
    """Keeps the entities in one node's image up to date by `run`."""

    def __init__(self, cache: MetadataCache, broker_id: int) -> None:
        self._cache = cache
        self._own_configs = [layout.broker_config_path(name) for name in (str(broker_id), layout.DEFAULT_ENTITY)]
        self._sources = _sources()
        self._notified: list[Notified] = []
        self._reading = trio.Lock()
        self._written: set[str] = set()
        """The paths of entities that a controller of this process has written since the current
        reading began.
        """
        self._loaded: dict[str, int] = {}
        """The session in which everything below a path was read last."""
        self._unreadable: set[str] = set()
        """The paths of entities whose znode cannot be read."""
        cache.on_change(self._image_changed)

    def on_notified(self, listener: Notified) -> None:
        """Call `listener` with the paths that new notifications name, those of topics' configs
        included, when this node's image has what was written there.
        """
        self._notified.append(listener)

    def counts(self) -> Mapping[str, int]:
        """Return the numbers of entities by kind, for the metrics."""
        image = self._cache.image
        return {
            "acls": len(image.acls),
            "configs": sum(client_entity_at(path) is not None for path in image.configs),
            "tokens": len(image.tokens),
            "groups": len(image.groups),
            "unreadable": len(self._unreadable),
        }

    async def run(
        self,
        store: Store,
        *,
        tidies: Callable[[], bool] = lambda: False,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Follow all entities until cancelled; started when all of them are loaded.

        While `tidies()` holds (it should on the controller, which alone writes) old notifications
        are removed.
        """
        async with trio.open_nursery() as nursery:
            for source in self._sources:
                follow = partial(
                    source.notifications.follow,
                    store,
                    load=partial(self._load, source),
                    on_change=self._read_notified,
                    tidies=tidies,
                )
                await nursery.start(follow)
            await nursery.start(self._follow_features, store)
            task_status.started()

    async def _follow_features(self, store: Store, task_status: trio.TaskStatus[None]) -> None:
        """Follow `/feature`, whose changes nobody notifies."""
        changed = Signal()
        unsubscribe = store.on_session(lambda _session: changed.send())
        try:
            while True:
                await wait_connected(store)
                try:
                    await store.get(layout.FEATURE, changed.send)
                    before = self._cache.image.features
                    await self._read(store, [layout.FEATURE])
                    if self._cache.image.features != before:
                        self._notify([layout.FEATURE])
                except (StoreError, SessionExpired) as error:
                    log.debug("%s cannot be read for a moment: %s", layout.FEATURE, error)
                    changed.send()
                task_status.started()
                task_status = trio.TASK_STATUS_IGNORED
                await trio.sleep(PAUSE_SECONDS)
                await changed.wait()
        finally:
            unsubscribe()

    async def catch_up(self, store: Store, paths: Sequence[str] | None) -> bool:
        """Read these entities, or all that new notifications name (None), because the controller
        waits for it. Return False if the store does not respond in time.
        """
        with trio.move_on_after(CATCH_UP_SECONDS):
            try:
                if paths is None:
                    await self.read_notifications(store)
                else:  # a controller of an earlier version names no configs of brokers
                    await self._read(store, [*self._own_configs, *filter(is_followed, paths)])
            except StoreError as error:
                log.debug("what has changed cannot be read now: %s", error)
            else:
                return True
        return False

    async def read_notifications(self, store: Store) -> None:
        """Read what new notifications name, so that all changes are known that were acknowledged
        before this call. In a new session everything is read: notifications may have been removed
        meanwhile. Raises StoreError.
        """
        await store.sync()
        for source in self._sources:
            if self._loaded.get(source.prefix) != store.session_id:
                await self._load(source, store)
        for source in self._sources:
            await source.notifications.catch_up(store, self._read_notified)

    async def _read_notified(self, store: Store, paths: Sequence[str]) -> None:
        followed = sorted(filter(is_followed, closure(paths)))
        if followed:
            await self._read(store, followed)
        self._notify(paths)

    def _notify(self, paths: Sequence[str]) -> None:
        for listener in self._notified:
            listener(paths)

    async def _read(self, store: Store, paths: Sequence[str]) -> None:
        """Read these entities, at least as new as any change acknowledged before this call."""
        async with self._reading:
            await store.sync()  # a server that is behind would take back what a controller here has written
            await self._read_until_current(store, paths)

    async def _load(self, source: EntitySource, store: Store) -> None:
        """Read all entities of a source, and forget those that are gone."""
        async with self._reading:
            await store.sync()
            session_id = store.session_id
            again: Sequence[str] = ()
            began = -1
            while began != self._cache.replacements:
                began = self._begin()
                found = await source.load(store)
                known = paths_below(source.prefix, self._cache.image)
                again = self._take({**dict.fromkeys(known), **found}, began)
            await self._read_until_current(store, again)
            self._loaded[source.prefix] = session_id

    async def _read_until_current(self, store: Store, paths: Sequence[str]) -> None:
        while paths:
            began = self._begin()
            paths = self._take(await read_entities(store, paths), began)

    def _begin(self) -> int:
        self._written.clear()
        return self._cache.replacements

    def _take(self, found: Mapping[str, Entity | None], began: int) -> Sequence[str]:
        """Take what was read since `began` into the image, unless a controller of this process has
        written it meanwhile: what was read may be older. Return the paths to read again.
        """
        if began != self._cache.replacements:
            return list(found)
        again = self._written.intersection(found)
        self._cache.read({path: entity for path, entity in found.items() if path not in again})
        return list(again)

    def _image_changed(self, _before: Image, _after: Image, changes: ImageChanges) -> None:
        if self._reading.locked():
            self._written.update(changes.entities)
        for path, entity in changes.entities.items():
            if is_unreadable(entity):
                self._unreadable.add(path)
            else:
                self._unreadable.discard(path)

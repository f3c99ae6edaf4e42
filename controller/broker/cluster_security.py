"""The knowledge of one node about the users, clients and addresses that have configs, the ACLs, and
the delegation tokens: all that decides who may connect, and what they may do. The groups and their
offsets are followed beside them, in the same way.

Rule: it is the state of the store, and never older than what a controller of this process has
written or what another one waits for. Readings run one after the other, so that none restores what
is older. Values may be secrets, and are never logged.
"""

import logging
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec
import trio

from ...cluster.entities import (
    NO_ACL_ENTRIES,
    NO_ENTITY_CONFIGS,
    UNREADABLE,
    AclEntries,
    DelegationToken,
    EntityConfigs,
)
from ...cluster.entity_paths import (
    CONFIGS,
    GROUPS,
    TOKENS,
    Entity,
    changed_groups,
    closure,
    is_followed,
    is_unreadable,
    paths_of_group,
)
from ...cluster.groups import Group
from ...cluster.znodes import acls, groups, tokens
from ...cluster.znodes.entity_names import USER, client_entity_at, is_clients_parent, user_path
from ...protocol.acls import ResourcePattern
from ...security.acls import NOBODY, AclIndex
from ...security.scram_credentials import HASHES, ScramCredential, parse_credential
from ...store.base import Store, StoreError
from ..active.entity_reading import load_acls, load_clients, load_groups, load_tokens, read_entities
from .change_notifications import ChangeNotifications
from .dynamic_configs import CATCH_UP_SECONDS, DynamicConfigs

LITERAL, PREFIXED = f"{acls.LITERAL_ROOT}/", f"{acls.PREFIXED_ROOT}/"
log = logging.getLogger("minicontroller.security")


class EntityChanges(msgspec.Struct):
    """The entities that have changed at once, each as it is now."""

    acls: dict[ResourcePattern, AclEntries] = {}
    """NO_ACL_ENTRIES where there are none any more."""
    configs: dict[str, EntityConfigs] = {}
    """By path below `/config`; NO_ENTITY_CONFIGS where there are none any more."""
    tokens: dict[str, DelegationToken | None] = {}
    """By id; None for a token that was removed."""


class ClusterSecurity:
    """The entities that every node follows, kept up to date by `run`."""

    def __init__(self, dynamic_configs: DynamicConfigs) -> None:
        """Begin with nothing. The configs of users, clients and addresses are followed together
        with `dynamic_configs`.
        """
        self.acls: dict[ResourcePattern, AclEntries] = {}
        """The ACLs of all resource patterns. Those with the version UNREADABLE are not known."""
        self.acl_state = object()
        """Stands for these ACLs: another object after each change of one."""
        self.acl_index = AclIndex(allow_everyone=dynamic_configs.current.boolean("allow.everyone.if.no.acl.found"))
        """The index of the ACLs. Unreadable ones deny everything."""
        self.configs: dict[str, EntityConfigs] = {}
        """The configs by path below `/config` (`client_entity_at` tells whose they are)."""
        self.tokens: dict[str, DelegationToken] = {}
        """The delegation tokens by id, those that have expired included."""
        self.groups: dict[str, Group] = {}
        """The groups by the name of their znode."""
        self._unreadable: set[str] = set()
        """The paths of ACLs, configs and groups that cannot be read."""
        self._credentials: dict[str, dict[str, ScramCredential]] = {}
        """The SCRAM credentials by mechanism, by path below `/config`."""
        self._listeners: list[Callable[[EntityChanges], None]] = []
        self._notified: list[Callable[[Sequence[str]], None]] = []
        self._dynamic_configs = dynamic_configs
        self._literal = ChangeNotifications(acls.LITERAL_CHANGES, acls.decode_literal_acl_change)
        self._extended = ChangeNotifications(acls.EXTENDED_CHANGES, acls.decode_extended_acl_change)
        self._token_changes = ChangeNotifications(tokens.CHANGES, tokens.decode_token_change)
        self._group_changes = ChangeNotifications(groups.CHANGES, groups.decode_group_change)
        self._reading = trio.Lock()
        self._applied: dict[str, Entity | None] = {}
        """The entities that a controller of this process has changed since the current reading
        began.
        """
        self._everything_applied = 0
        """How often a controller of this process has said everything."""
        self._loaded: dict[str, int] = {}
        """The session in which everything below a path was read last."""
        self._loads = {
            CONFIGS: self._load_clients,
            LITERAL: self._load_literal,
            PREFIXED: self._load_prefixed,
            TOKENS: self._load_tokens,
            GROUPS: self._load_groups,
        }
        dynamic_configs.accompany(self._load_clients, self._configs_notified)

    def on_change(self, listener: Callable[[EntityChanges], None]) -> None:
        """Call `listener` with everything that is known, and then with each change, in the event
        loop's thread and in the time slice in which the change comes into force.
        """
        self._listeners.append(listener)
        listener(EntityChanges(dict(self.acls), dict(self.configs), dict(self.tokens)))

    def on_notified(self, listener: Callable[[Sequence[str]], None]) -> None:
        """Call `listener` with the paths that new notifications name, changed or not."""
        self._notified.append(listener)

    def counts(self) -> Mapping[str, int]:
        """Return the numbers of entities by kind, for the metrics."""
        return {
            "acls": len(self.acls),
            "configs": len(self.configs),
            "tokens": len(self.tokens),
            "groups": len(self.groups),
            "unreadable": len(self._unreadable),
        }

    def scram_credential(self, user: str, mechanism: str) -> ScramCredential | None:
        """Return the credential of a user for a mechanism, or None if there is none."""
        return self.scram_credentials(user).get(mechanism)

    def scram_credentials(self, user: str) -> Mapping[str, ScramCredential]:
        """Return the credentials of a user by mechanism."""
        return self._credentials.get(user_path(user), {})

    def scram_users(self) -> dict[str, Mapping[str, ScramCredential]]:
        """Return the credentials by mechanism of all users that have some."""
        users = {path: client_entity_at(path) or {} for path in self._credentials}
        return {
            user: self._credentials[path]
            for path, names in users.items()
            if len(names) == 1 and (user := names.get(USER)) is not None
        }

    # ------------------------------------------------------------------ from the controller

    def apply(self, changed: Mapping[str, Entity | None]) -> None:
        """Put entities in force that a controller of this process has written, before its client
        gets the response. The paths of others are ignored.
        """
        followed = {path: entity for path, entity in changed.items() if is_followed(path)}
        self._applied.update(followed)
        self._take(followed)

    def become(self, entities: Mapping[str, Entity]) -> None:
        """Put exactly these entities into force."""
        self._everything_applied += 1
        self._take({**dict.fromkeys(self._paths()), **entities})

    async def catch_up(self, store: Store, paths: Sequence[str] | None) -> bool:
        """Read these entities, or all that new notifications name (None), because the controller
        waits for it. Return False if the store does not respond in time.
        """
        with trio.move_on_after(CATCH_UP_SECONDS):
            try:
                if paths is None:
                    await self.read_notifications(store)
                else:
                    await self._read(store, [path for path in paths if is_followed(path)])
            except StoreError as error:
                log.debug("users, ACLs and tokens cannot be read now: %s", error)
            else:
                return True
        return False

    # ------------------------------------------------------------------ from the store

    async def read_notifications(self, store: Store) -> None:
        """Read what new notifications name, so that all changes are known that were acknowledged
        before this call. In a new session everything is read: notifications may have been removed
        meanwhile. Raises StoreError.
        """
        await store.sync()
        for prefix, load in self._loads.items():
            if self._loaded.get(prefix) != store.session_id:
                await load(store)
        await self._dynamic_configs.read_notifications(store)
        await self._literal.catch_up(store, self._acls_notified)
        await self._extended.catch_up(store, self._acls_notified)
        await self._token_changes.catch_up(store, self._tokens_notified)
        await self._group_changes.catch_up(store, self._groups_notified)

    async def run(
        self,
        store: Store,
        *,
        tidies: Callable[[], bool] = lambda: False,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Follow ACLs, tokens and groups until cancelled; started when all of them are loaded. The
        configs are followed by `DynamicConfigs.run`. `tidies` is as there.
        """
        async with trio.open_nursery() as nursery:
            follow = (
                partial(self._literal.follow, load=self._load_literal, on_change=self._acls_notified),
                partial(self._extended.follow, load=self._load_prefixed, on_change=self._acls_notified),
                partial(self._token_changes.follow, load=self._load_tokens, on_change=self._tokens_notified),
                partial(self._group_changes.follow, load=self._load_groups, on_change=self._groups_notified),
            )
            for each in follow:
                await nursery.start(partial(each, store, tidies=tidies))
            task_status.started()

    async def _load_literal(self, store: Store) -> None:
        await self._load(store, partial(load_acls, store, acls.LITERAL_ROOT), LITERAL)

    async def _load_prefixed(self, store: Store) -> None:
        await self._load(store, partial(load_acls, store, acls.PREFIXED_ROOT), PREFIXED)

    async def _load_tokens(self, store: Store) -> None:
        await self._load(store, partial(load_tokens, store), TOKENS)

    async def _load_groups(self, store: Store) -> None:
        await self._load(store, partial(load_groups, store), GROUPS)

    async def _load_clients(self, store: Store) -> None:
        await self._load(store, partial(load_clients, store), CONFIGS)

    async def _acls_notified(self, store: Store, patterns: Iterable[ResourcePattern]) -> None:
        await self._notify(store, [acls.acl_path(pattern) for pattern in patterns])

    async def _tokens_notified(self, store: Store, ids: Iterable[str]) -> None:
        await self._notify(store, [tokens.token_path(token_id) for token_id in ids])

    async def _groups_notified(self, store: Store, changes: Iterable[Sequence[str]]) -> None:
        await self._notify(store, list(dict.fromkeys(f"{GROUPS}{each}" for names in changes for each in names)))

    async def _configs_notified(self, store: Store, entities: Sequence[tuple[str, str]]) -> None:
        paths = {f"{CONFIGS}{kind}/{name}" for kind, name in entities}
        await self._notify(store, sorted(path for path in closure(paths) if is_followed(path)))

    async def _notify(self, store: Store, paths: Sequence[str]) -> None:
        if not paths:
            return
        await self._read(store, paths)
        for listener in list(self._notified):
            listener(paths)

    async def _read(self, store: Store, paths: Sequence[str]) -> None:
        """Read these entities, at least as new as any change acknowledged before this call."""
        async with self._reading:
            await store.sync()  # a server that is behind would take back what a controller here has said
            wanted: Sequence[str] = paths
            while wanted:
                before = self._begin()
                self._take_read(found := await read_entities(store, wanted), before)
                wanted = list(found) if before != self._everything_applied else [p for p in found if p in self._applied]

    async def _load(self, store: Store, load: Callable[[], Awaitable[dict[str, Entity | None]]], prefix: str) -> None:
        """Read all entities below a path, and forget those that are gone."""
        async with self._reading:
            await store.sync()
            session_id = store.session_id
            while True:
                before = self._begin()
                found = await load()
                gone = dict.fromkeys(path for path in self._paths() if path.startswith(prefix) and path not in found)
                self._take_read({**found, **gone}, before)
                if before == self._everything_applied and not any(path.startswith(prefix) for path in self._applied):
                    self._loaded[prefix] = session_id
                    return

    def _begin(self) -> int:
        self._applied.clear()
        return self._everything_applied

    def _take_read(self, found: Mapping[str, Entity | None], before: int) -> None:
        """Take what was read, unless a controller of this process has said meanwhile what it has
        written: what was read may be older.
        """
        if before == self._everything_applied:
            self._take({path: entity for path, entity in found.items() if path not in self._applied})

    # ------------------------------------------------------------------ the state

    def _paths(self) -> Iterator[str]:
        yield from (f"{CONFIGS}{path}" for path in self.configs)
        yield from map(acls.acl_path, self.acls)
        yield from map(tokens.token_path, self.tokens)
        for name, group in self.groups.items():
            yield from paths_of_group(name, group)

    def _take(self, found: Mapping[str, Entity | None]) -> None:
        changes = EntityChanges()
        for path, entity in found.items():
            if is_unreadable(entity):
                self._unreadable.add(path)
            else:
                self._unreadable.discard(path)
            if path.startswith(CONFIGS):
                self._take_configs(path.removeprefix(CONFIGS), entity, changes)
            elif path.startswith(TOKENS):
                self._take_token(path.removeprefix(TOKENS), entity, changes)
            elif not path.startswith(GROUPS):
                self._take_acls(path, entity, changes)
        for name, group in changed_groups(self.groups, found).items():
            self._take_group(name, group)
        if changes.acls or changes.configs or changes.tokens:
            for listener in self._listeners:
                _tell(listener, changes)

    def _take_configs(self, path: str, entity: Entity | None, changes: EntityChanges) -> None:
        assert entity is None or isinstance(entity, EntityConfigs)
        if is_clients_parent(path) or entity == self.configs.get(path):
            return
        changes.configs[path] = entity or NO_ENTITY_CONFIGS
        credentials = {} if entity is None else _scram_credentials(path, entity.configs)
        self._credentials.pop(path, None)
        if credentials:
            self._credentials[path] = credentials
        if entity is None:
            del self.configs[path]
        else:
            self.configs[path] = entity

    def _take_token(self, token_id: str, entity: Entity | None, changes: EntityChanges) -> None:
        assert entity is None or isinstance(entity, DelegationToken)
        if entity == self.tokens.get(token_id):
            return
        changes.tokens[token_id] = entity
        if entity is None:
            del self.tokens[token_id]
        else:
            self.tokens[token_id] = entity

    def _take_group(self, name: str, group: Group | None) -> None:
        if group is None:
            self.groups.pop(name, None)
        else:
            self.groups[name] = group

    def _take_acls(self, path: str, entity: Entity | None, changes: EntityChanges) -> None:
        pattern = acls.pattern_at(path)
        assert pattern is not None and (entity is None or isinstance(entity, AclEntries))
        if entity == self.acls.get(pattern):
            return
        self.acl_state = object()
        changes.acls[pattern] = entity or NO_ACL_ENTRIES
        is_readable = entity is None or entity.version != UNREADABLE
        self.acl_index.set_resource(pattern, changes.acls[pattern].entries if is_readable else NOBODY)
        if entity is None:
            del self.acls[pattern]
        else:
            self.acls[pattern] = entity


def _tell(listener: Callable[[EntityChanges], None], changes: EntityChanges) -> None:
    """Call a listener. If a defect of it raises, that is logged and the node goes on following; the
    text of the exception is left out, since it may quote a secret.
    """
    try:
        listener(changes)
    except Exception as error:  # noqa: BLE001 - what others write must not stop a node
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = type(error).__name__
        log.error("a change is not in force: %s at %s:%d", what, place.filename, place.lineno or 0)  # noqa: TRY400 - the reason is above


def _scram_credentials(path: str, configs: Mapping[str, str]) -> dict[str, ScramCredential]:
    """Parse the credentials among the configs of an entity. An unreadable one is logged, without
    its text, and is none.
    """
    found = {}
    for mechanism in HASHES:
        if mechanism in configs:
            try:
                found[mechanism] = parse_credential(configs[mechanism])
            except ValueError as error:
                log.warning("the %s credential of /config/%s cannot be used: %s", mechanism, path, error)
    return found

"""Reads what every node follows: the configs of users, clients and addresses, ACLs, delegation
tokens, and groups. The controller reads it into its image, each node into its `ClusterSecurity`.

Rule: an entity is named by the path of its znode. A znode that cannot be read is logged and stops
nobody: an unreadable token is none, everything else unreadable is known to be so.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from immutables import Map

from ...protocol.acls import AccessControlEntry
from ..metadata.entities import (
    NO_ACL_ENTRIES,
    NO_ENTITY_CONFIGS,
    UNREADABLE,
    AclEntries,
    DelegationToken,
    EntityConfigs,
)
from ..metadata.groups import Group
from ..metadata.image import Image
from ..store.base import Entry, Store
from ..znodes import acls, groups, layout, tokens
from ..znodes.content import MalformedZnodeError
from ..znodes.entity_names import CLIENT_ROOTS, CLIENTS, USERS, is_clients_parent
from .loading import entity_configs

log = logging.getLogger("minicontroller.controller")

Entity = EntityConfigs | AclEntries | DelegationToken | Group
"""The content of one znode; None where there is no such znode, or no token that can be read."""

Value = Mapping[str, str] | frozenset[AccessControlEntry] | DelegationToken | Group | None
"""The content of an entity without the version of its znode."""

CONFIGS = f"{layout.CONFIG}/"
CLIENT_CONFIGS = tuple(f"{CONFIGS}{root}/" for root in CLIENT_ROOTS)
TOKENS = f"{tokens.ROOT}/"
GROUPS = f"{groups.ROOT}/"


def entity_of(image: Image, path: str) -> Entity | None:
    """Return the entity at this path as an image has it."""
    if path.startswith(CONFIGS):
        return image.configs.get(path.removeprefix(CONFIGS))
    if path.startswith(TOKENS):
        return image.tokens.get(path.removeprefix(TOKENS))
    if path.startswith(GROUPS):
        return image.groups.get(path.removeprefix(GROUPS))
    pattern = acls.pattern_at(path)
    return None if pattern is None else image.acls.get(pattern)


def value_of(image: Image, path: str) -> tuple[Value, int]:
    """Return what the entity at this path says, configs as a new dictionary, and the version of its
    znode; -1 without one.
    """
    entity = entity_of(image, path)
    match entity:
        case EntityConfigs():
            return dict(entity.configs), entity.version
        case AclEntries():
            return entity.entries, entity.version
        case DelegationToken() | Group():
            return entity, entity.version
    if path.startswith(CONFIGS):
        return {}, -1
    return (None if path.startswith((TOKENS, GROUPS)) else frozenset()), -1


def with_entity(image: Image, path: str, entity: Entity | None) -> Image:
    """Return the image with this entity at this path, or without one."""
    if path.startswith(CONFIGS):
        assert entity is None or isinstance(entity, EntityConfigs)
        return image.with_configs(path.removeprefix(CONFIGS), entity or NO_ENTITY_CONFIGS)
    if path.startswith(TOKENS):
        assert entity is None or isinstance(entity, DelegationToken)
        return image.with_token(path.removeprefix(TOKENS), entity)
    if path.startswith(GROUPS):
        assert entity is None or isinstance(entity, Group)
        return image.with_group(path.removeprefix(GROUPS), entity)
    pattern = acls.pattern_at(path)
    assert pattern is not None and (entity is None or isinstance(entity, AclEntries)), path
    return image.with_acls(pattern, entity or NO_ACL_ENTRIES)


def is_followed(path: str) -> bool:
    """Whether an entity that every node follows may lie at this path."""
    if path.startswith(CLIENT_CONFIGS):
        return not is_clients_parent(path.removeprefix(CONFIGS))
    return path.startswith((TOKENS, GROUPS)) or acls.pattern_at(path) is not None


def decoded(path: str, entry: Entry | None) -> Entity | None:
    """Return what a znode says. If it cannot be read, that is logged, without its data, which may
    be a secret.
    """
    if entry is None:
        return None
    if path.startswith(CONFIGS):
        return entity_configs(path.removeprefix(CONFIGS), entry)
    try:
        if path.startswith(TOKENS):
            return tokens.decode_token(path.removeprefix(TOKENS), entry.data, entry.stat.version)
        if path.startswith(GROUPS):
            return groups.decode_group(path.removeprefix(GROUPS), entry.data, entry.stat.version)
        return AclEntries(acls.decode_acls(entry.data), entry.stat.version)
    except MalformedZnodeError as error:
        log.warning("%s is unreadable: %s", path, error)
        if path.startswith(GROUPS):
            return Group("", version=UNREADABLE)
        return None if path.startswith(TOKENS) else AclEntries(version=UNREADABLE)


def closure(paths: Collection[str]) -> set[str]:
    """Return these paths, and for a client of a user the znodes above it, which come and go with
    it.
    """
    found = set(paths)
    for path in paths:
        user, below, _client = path.partition(f"/{CLIENTS}/")
        if below and path.startswith(f"{CONFIGS}{USERS}/"):
            found |= {user, f"{user}/{CLIENTS}"}
    return found


async def read_entities(store: Store, paths: Sequence[str]) -> dict[str, Entity | None]:
    """Read these entities. Raises StoreError."""
    return {path: decoded(path, entry) for path, entry in zip(paths, await store.get_many(paths), strict=True)}


# ------------------------------------------------------------------ everything


async def load_clients(store: Store) -> dict[str, Entity | None]:
    """Read the configs of all users, clients and addresses, in three rounds. Raises StoreError."""
    roots = [f"{CONFIGS}{root}" for root in CLIENT_ROOTS]
    listed = await store.children_many(roots)
    paths = [f"{root}/{name}" for root, names in zip(roots, listed, strict=True) for name in names or ()]
    users = f"{CONFIGS}{USERS}/"
    return await read_entities(
        store, [*paths, *await _below(store, [each for each in paths if each.startswith(users)])]
    )


async def read_user(store: Store, image: Image, name: str) -> dict[str, Entity | None]:
    """Read the configs of a user, given by the name in its path, and of all its clients. What only
    the image has is None. Raises StoreError.
    """
    user = f"{USERS}/{name}"
    paths = [f"{CONFIGS}{user}", *await _below(store, [f"{CONFIGS}{user}"])]
    known = (f"{CONFIGS}{each}" for each in image.configs if each.startswith(f"{user}/"))
    return await read_entities(store, list(dict.fromkeys([*paths, *known])))


async def _below(store: Store, users: Sequence[str]) -> list[str]:
    """List the znodes below those of these users: the parent of the clients, and each client."""
    parents = [f"{path}/{CLIENTS}" for path in users]
    listed = zip(parents, await store.children_many(parents), strict=True)
    return [
        path for parent, names in listed if names is not None for path in (parent, *(f"{parent}/{n}" for n in names))
    ]


async def load_acls(store: Store, root: str) -> dict[str, Entity | None]:
    """Read all ACLs below LITERAL_ROOT or PREFIXED_ROOT, in two rounds. Raises StoreError."""
    parents = [f"{root}/{kind}" for kind in acls.TYPES]
    listed = await store.children_many(parents)
    paths = [f"{parent}/{name}" for parent, names in zip(parents, listed, strict=True) for name in names or ()]
    return await read_entities(store, paths)


async def load_tokens(store: Store) -> dict[str, Entity | None]:
    """Read all delegation tokens, in two rounds. Raises StoreError."""
    (names,) = await store.children_many([tokens.ROOT])
    return await read_entities(store, [f"{TOKENS}{name}" for name in names or ()])


async def load_groups(store: Store) -> dict[str, Entity | None]:
    """Read all groups, in two rounds. Raises StoreError."""
    (names,) = await store.children_many([groups.ROOT])
    return await read_entities(store, [f"{GROUPS}{name}" for name in names or ()])


async def load_entities(store: Store) -> dict[str, Entity | None]:
    """Read everything that nodes follow. Raises StoreError."""
    found = await load_clients(store)
    for root in (acls.LITERAL_ROOT, acls.PREFIXED_ROOT):
        found |= await load_acls(store, root)
    return found | await load_tokens(store) | await load_groups(store)


def with_entities(image: Image, found: Mapping[str, Entity | None]) -> Image:
    """Return the image of a controller that begins, with all that was found."""
    configs, patterns, ids = dict(image.configs), dict(image.acls), dict(image.tokens)
    found_groups: dict[str, Group] = {}
    for path, entity in found.items():
        match entity:
            case EntityConfigs():
                configs[path.removeprefix(CONFIGS)] = entity
            case AclEntries():
                pattern = acls.pattern_at(path)
                assert pattern is not None
                patterns[pattern] = entity
            case DelegationToken():
                ids[entity.token_id] = entity
            case Group():
                found_groups[path.removeprefix(GROUPS)] = entity
    return msgspec.structs.replace(
        image,
        configs=Map(configs),
        acls=Map(patterns),
        tokens=Map(ids),
        groups=Map(found_groups),
        groups_bytes=sum(group.size for group in found_groups.values()),
    )


def followed(image: Image) -> dict[str, Entity]:
    """Return what every node follows, as an image has it, by path."""
    paths: dict[str, Entity] = {f"{CONFIGS}{path}": configs for path, configs in image.configs.items()}
    found = {path: configs for path, configs in paths.items() if is_followed(path)}
    found.update((acls.acl_path(pattern), entries) for pattern, entries in image.acls.items())
    found.update((tokens.token_path(token_id), token) for token_id, token in image.tokens.items())
    found.update((f"{GROUPS}{name}", group) for name, group in image.groups.items())
    return found


def changed_paths(image: Image, found: Mapping[str, Entity | None]) -> Iterable[str]:
    """Yield the paths of what was found to be otherwise than the image has it."""
    return (path for path, entity in found.items() if entity_of(image, path) != entity)

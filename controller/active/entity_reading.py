"""Reads what every node follows: the configs of users, clients and addresses, ACLs, delegation
tokens, and groups. The controller reads it into its image, each node into its `ClusterSecurity`.

Rule: an entity is named by the path of its znode. A znode that cannot be read is logged and stops
nobody: an unreadable token is none, everything else unreadable is known to be so.
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
from immutables import Map

from ...cluster.entities import (
    NO_ACL_ENTRIES,
    NO_ENTITY_CONFIGS,
    UNREADABLE,
    AclEntries,
    DelegationToken,
    EntityConfigs,
)
from ...cluster.groups import NO_ZNODE, CommittedOffset, Group, GroupHeader, Place
from ...cluster.image import Image
from ...cluster.znodes import acls, groups, layout, tokens
from ...cluster.znodes.content import MalformedZnodeError, fits
from ...cluster.znodes.entity_names import CLIENT_ROOTS, CLIENTS, USERS, is_clients_parent, unsanitized
from ...protocol.acls import AccessControlEntry
from ...store.base import HIDDEN, Entry, Store
from ...store.trees import listed_below
from .loading import entity_configs

log = logging.getLogger("minicontroller.controller")

Entity = EntityConfigs | AclEntries | DelegationToken | GroupHeader | CommittedOffset
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
        name, place = group_place(path)
        group = image.groups.get(name)
        return None if group is None else _stored_in(group, place)
    pattern = acls.pattern_at(path)
    return None if pattern is None else image.acls.get(pattern)


def group_place(path: str) -> tuple[str, Place | None]:
    """Return the name of the group's znode at or above this path, and the place of the offset at
    the path; None for the znode of the group, or of nothing that we know.
    """
    name, _, below = path.removeprefix(GROUPS).partition("/")
    return name, groups.place_of(below)


def _stored_in(group: Group, place: Place | None) -> GroupHeader | CommittedOffset | None:
    """Return what the znode of a group, or of an offset, says."""
    if place is None:
        return group.header
    found = group.at(place)
    return None if found is None or found.version == NO_ZNODE else found


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
        case DelegationToken():
            return entity, entity.version
        case GroupHeader():
            return image.groups[path.removeprefix(GROUPS)], entity.version
    if path.startswith(CONFIGS):
        return {}, -1
    return (None if path.startswith((TOKENS, GROUPS)) else frozenset()), -1


def with_changes(image: Image, found: Mapping[str, Entity | None]) -> Image:
    """Return the image with these entities at these paths, or without those that are None."""
    for path, entity in found.items():
        if path.startswith(CONFIGS):
            assert entity is None or isinstance(entity, EntityConfigs)
            image = image.with_configs(path.removeprefix(CONFIGS), entity or NO_ENTITY_CONFIGS)
        elif path.startswith(TOKENS):
            assert entity is None or isinstance(entity, DelegationToken)
            image = image.with_token(path.removeprefix(TOKENS), entity)
        elif not path.startswith(GROUPS):
            pattern = acls.pattern_at(path)
            assert pattern is not None and (entity is None or isinstance(entity, AclEntries)), path
            image = image.with_acls(pattern, entity or NO_ACL_ENTRIES)
    for name, group in changed_groups(image.groups, found).items():
        image = image.with_group(name, group)
    return image


def changed_groups(known: Mapping[str, Group], found: Mapping[str, Entity | None]) -> dict[str, Group | None]:
    """Return the groups, by the names of their znodes, of which something was found among these
    entities, as they are now; None for one that is gone.
    """
    headers: dict[str, GroupHeader | None] = {}
    offsets: dict[str, dict[Place, CommittedOffset | None]] = {}
    for path, entity in found.items():
        if not path.startswith(GROUPS):
            continue
        name, place = group_place(path)
        of_group = offsets.setdefault(name, {})
        if place is None:
            assert entity is None or isinstance(entity, GroupHeader)
            headers[name] = entity
        else:
            assert entity is None or isinstance(entity, CommittedOffset)
            of_group[place] = entity
    return {name: _changed_group(known.get(name), headers, name, changed) for name, changed in offsets.items()}


def _changed_group(
    group: Group | None,
    headers: Mapping[str, GroupHeader | None],
    name: str,
    changed: Mapping[Place, CommittedOffset | None],
) -> Group | None:
    header = headers.get(name, None if group is None else group.header)
    if header is None:
        return None
    if group is None:
        return Group.of(header, changed)
    if not header.is_readable:  # what is known of the group stays
        header = msgspec.structs.replace(header, group_id=group.header.group_id, owner=group.header.owner)
    if header == group.header:
        return group.with_stored(changed)
    stored = {place: each for place, each in group.placed() if each.version != NO_ZNODE}
    return Group.of(header, {**stored, **changed})


def is_followed(path: str) -> bool:
    """Whether an entity that every node follows may lie at this path."""
    if path.startswith(CLIENT_CONFIGS):
        return not is_clients_parent(path.removeprefix(CONFIGS))
    if path.startswith(GROUPS):
        name, below, offset = path.removeprefix(GROUPS).partition("/")
        return bool(name) and (not below or groups.place_of(offset) is not None)
    return path.startswith(TOKENS) or acls.pattern_at(path) is not None


def decoded(path: str, entry: Entry | None) -> Entity | None:
    """Return what a znode says. If it cannot be read, that is logged, without its data, which may
    be a secret.
    """
    if entry is None:
        return None
    if not _fits(path):
        log.warning("%.100s... is ignored: Kafka's messages cannot carry its name", path)
        return None
    if path.startswith(CONFIGS):
        return entity_configs(path.removeprefix(CONFIGS), entry)
    try:
        if path.startswith(TOKENS):
            return tokens.decode_token(path.removeprefix(TOKENS), entry.data, entry.stat.version)
        if path.startswith(GROUPS):
            name, place = group_place(path)
            if place is not None:
                return groups.decode_offset(entry.data, entry.stat.version)
            return groups.decode_header(name, entry.data, entry.stat.version)
        return AclEntries(acls.decode_acls(entry.data), entry.stat.version)
    except MalformedZnodeError as error:
        log.warning("%s is unreadable: %s", path, error)
        if path.startswith(GROUPS):
            return _unreadable_in_group(path, entry)
        return None if path.startswith(TOKENS) else AclEntries(version=UNREADABLE)


def _unreadable_in_group(path: str, entry: Entry) -> GroupHeader | CommittedOffset | None:
    """Return what stands for a znode of a group that cannot be read. This program alone has these
    znodes, so it may write them over, but not where it may not even read.
    """
    if entry is HIDDEN:
        return None
    name, place = group_place(path)
    if place is None:
        return GroupHeader(groups.id_at(name), version=entry.stat.version, is_readable=False)
    return CommittedOffset(0, version=entry.stat.version, is_readable=False)


def is_unreadable(entity: Entity | None) -> bool:
    """Whether there is a znode of the entity that cannot be read, as far as that is known."""
    if isinstance(entity, GroupHeader | CommittedOffset):
        return not entity.is_readable
    return entity is not None and entity.version == UNREADABLE


def _fits(path: str) -> bool:
    """Whether Kafka's messages can carry the names in a path."""
    names = path.split("/")
    return all(map(fits, map(unsanitized, names) if path.startswith(CONFIGS) else names))


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
    """Read the configs of all users, clients and addresses, in four rounds. Raises StoreError."""
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
    listed = await listed_below(store, [f"{path}/{CLIENTS}" for path in users])
    return [path for parent, below in listed.items() for path in (parent, *below)]


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
    """Read all groups, in four rounds. Raises StoreError."""
    (names,) = await store.children_many([groups.ROOT])
    return await _read_groups(store, names or ())


async def read_group(store: Store, image: Image, name: str) -> dict[str, Entity | None]:
    """Read a group, given by the name of its znode, and all of its offsets. What only the image has
    is None. Raises StoreError.
    """
    group = image.groups.get(name)
    known = () if group is None else paths_of_group(name, group)
    return {**dict.fromkeys(known), **await _read_groups(store, [name])}


async def _read_groups(store: Store, names: Sequence[str]) -> dict[str, Entity | None]:
    parents = [f"{GROUPS}{name}" for name in names]
    listed = await listed_below(store, parents)
    return await read_entities(
        store, [*parents, *(each for below in listed.values() for each in below if is_followed(each))]
    )


def paths_of_group(name: str, group: Group) -> Iterator[str]:
    """Yield the paths of a group's znode, and of the znodes of its offsets."""
    yield f"{GROUPS}{name}"
    for place, each in group.placed():
        if each.version != NO_ZNODE:
            yield f"{GROUPS}{name}/{groups.offset_name(place)}"


async def load_entities(store: Store) -> dict[str, Entity | None]:
    """Read everything that nodes follow. Raises StoreError."""
    found = await load_clients(store)
    for root in (acls.LITERAL_ROOT, acls.PREFIXED_ROOT):
        found |= await load_acls(store, root)
    return found | await load_tokens(store) | await load_groups(store)


def with_entities(image: Image, found: Mapping[str, Entity | None]) -> Image:
    """Return the image of a controller that begins, with all that was found."""
    configs, patterns, ids = dict(image.configs), dict(image.acls), dict(image.tokens)
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
    image = msgspec.structs.replace(image, configs=Map(configs), acls=Map(patterns), tokens=Map(ids))
    return with_changes(image, {path: entity for path, entity in found.items() if path.startswith(GROUPS)})


def followed(image: Image) -> dict[str, Entity]:
    """Return what every node follows, as an image has it, by path."""
    paths: dict[str, Entity] = {f"{CONFIGS}{path}": configs for path, configs in image.configs.items()}
    found = {path: configs for path, configs in paths.items() if is_followed(path)}
    found.update((acls.acl_path(pattern), entries) for pattern, entries in image.acls.items())
    found.update((tokens.token_path(token_id), token) for token_id, token in image.tokens.items())
    for name, group in image.groups.items():
        for path in paths_of_group(name, group):
            entity = _stored_in(group, group_place(path)[1])
            assert entity is not None
            found[path] = entity
    return found


def changed_paths(image: Image, found: Mapping[str, Entity | None]) -> Iterable[str]:
    """Yield the paths of what was found to be otherwise than the image has it."""
    return (path for path, entity in found.items() if entity_of(image, path) != entity)

"""The entities that have a znode each: configs of brokers, users, clients and addresses, ACLs,
delegation tokens, finalized features, groups and their offsets. An entity is named by the path of
its znode.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

import msgspec
from immutables import Map

from ..protocol.acls import AccessControlEntry
from .entities import (
    NO_ACL_ENTRIES,
    NO_ENTITY_CONFIGS,
    NO_FEATURES,
    UNREADABLE,
    AclEntries,
    EntityConfigs,
    FinalizedFeatures,
    TokenInformation,
)
from .groups import NO_ZNODE, CommittedOffset, Group, GroupHeader, Place
from .image import Image
from .znodes import acls, groups, layout, tokens
from .znodes.entity_names import CLIENT_ROOTS, CLIENTS, USERS

Entity = EntityConfigs | AclEntries | TokenInformation | FinalizedFeatures | GroupHeader | CommittedOffset
"""The content of one znode; None where there is no such znode, or no token that can be read."""
Value = Mapping[str, str] | frozenset[AccessControlEntry] | TokenInformation | Group | None
"""The content of an entity without the version of its znode."""
CONFIGS = f"{layout.CONFIG}/"
CONFIG_ROOTS = tuple(f"{CONFIGS}{root}" for root in (layout.BROKERS_ENTITY, *CLIENT_ROOTS))
"""Below these paths lie the configs that are entities; those of a topic belong to the topic."""
TOKENS = f"{tokens.ROOT}/"
GROUPS = f"{groups.ROOT}/"
Key = TypeVar("Key")


def entity_of(image: Image, path: str) -> Entity | None:
    if path.startswith(CONFIGS):
        return image.configs.get(path.removeprefix(CONFIGS))
    if path.startswith(TOKENS):
        return image.tokens.get(path.removeprefix(TOKENS))
    if path.startswith(GROUPS):
        name, place = group_place(path)
        group = image.groups.get(name)
        return None if group is None else _stored_in(group, place)
    if path == layout.FEATURE:
        return None if image.features == NO_FEATURES else image.features
    pattern = acls.pattern_at(path)
    return None if pattern is None else image.acls.get(pattern)


def group_place(path: str) -> tuple[str, Place | None]:
    """Return the name of the group's znode at or above this path, and the place of the offset at
    the path; None for the znode of the group, or of nothing that we know.
    """
    name, _, below = path.removeprefix(GROUPS).partition("/")
    return name, groups.place_of(below)


def _stored_in(group: Group, place: Place | None) -> GroupHeader | CommittedOffset | None:
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
        case TokenInformation():
            return entity, entity.version
        case GroupHeader():
            return image.groups[path.removeprefix(GROUPS)], entity.version
    if path.startswith(CONFIGS):
        return {}, -1
    return (None if path.startswith((TOKENS, GROUPS)) else frozenset()), -1


def with_changes(image: Image, found: Mapping[str, Entity | None]) -> Image:
    for path, entity in found.items():
        if path.startswith(CONFIGS):
            assert entity is None or isinstance(entity, EntityConfigs)
            image = image.with_configs(path.removeprefix(CONFIGS), entity or NO_ENTITY_CONFIGS)
        elif path.startswith(TOKENS):
            assert entity is None or isinstance(entity, TokenInformation)
            image = image.with_token(path.removeprefix(TOKENS), entity)
        elif path == layout.FEATURE:
            assert entity is None or isinstance(entity, FinalizedFeatures)
            image = image.with_features(entity or NO_FEATURES)
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
    if path.startswith(CONFIGS):
        return path.startswith(tuple(f"{root}/" for root in CONFIG_ROOTS))
    if path.startswith(GROUPS):
        name, below, offset = path.removeprefix(GROUPS).partition("/")
        return bool(name) and (not below or groups.place_of(offset) is not None)
    return path.startswith(TOKENS) or path == layout.FEATURE or acls.pattern_at(path) is not None


def is_unreadable(entity: Entity | None) -> bool:
    """Whether there is a znode of the entity that cannot be read, as far as that is known."""
    if isinstance(entity, GroupHeader | CommittedOffset):
        return not entity.is_readable
    return entity is not None and entity.version == UNREADABLE


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


def paths_of_group(name: str, group: Group) -> Iterator[str]:
    yield f"{GROUPS}{name}"
    for place, each in group.placed():
        if each.version != NO_ZNODE:
            yield f"{GROUPS}{name}/{groups.offset_name(place)}"


def with_entities(image: Image, found: Mapping[str, Entity | None]) -> Image:
    configs, patterns, ids = dict(image.configs), dict(image.acls), dict(image.tokens)
    others: dict[str, Entity | None] = {}
    for path, entity in found.items():
        match entity:
            case EntityConfigs():
                configs[path.removeprefix(CONFIGS)] = entity
            case AclEntries():
                pattern = acls.pattern_at(path)
                assert pattern is not None
                patterns[pattern] = entity
            case TokenInformation():
                ids[entity.token_id] = entity
            case _:
                others[path] = entity
    image = msgspec.structs.replace(image, configs=Map(configs), acls=Map(patterns), tokens=Map(ids))
    return with_changes(image, others)


def paths_below(prefix: str, image: Image) -> Iterator[str]:
    """Yield the paths of an image's entities of one kind: CONFIGS, TOKENS, GROUPS, or those below
    one of the two roots of ACLs.
    """
    if prefix == CONFIGS:
        yield from (f"{CONFIGS}{path}" for path in image.configs)
    elif prefix == TOKENS:
        yield from map(tokens.token_path, image.tokens)
    elif prefix == GROUPS:
        for name, group in image.groups.items():
            yield from paths_of_group(name, group)
    else:
        yield from (path for path in map(acls.acl_path, image.acls) if path.startswith(prefix))


def changed_paths(image: Image, found: Mapping[str, Entity | None]) -> Iterable[str]:
    return (path for path, entity in found.items() if entity_of(image, path) != entity)


def differences(before: Image, after: Image) -> dict[str, Entity | None]:
    """Return the entities that two images have not in common, as the second one has them."""
    found = {f"{CONFIGS}{path}" for path in _differing(before.configs, after.configs)}
    found.update(map(acls.acl_path, _differing(before.acls, after.acls)))
    found.update(map(tokens.token_path, _differing(before.tokens, after.tokens)))
    found.update([layout.FEATURE] if before.features != after.features else [])
    for name in _differing(before.groups, after.groups):
        for group in (before.groups.get(name), after.groups.get(name)):
            found.update(() if group is None else paths_of_group(name, group))
    return {path: entity_of(after, path) for path in found}


def _differing(before: Mapping[Key, object], after: Mapping[Key, object]) -> Iterable[Key]:
    if before is after:
        return ()
    return [key for key in {**before, **after} if before.get(key) != after.get(key)]

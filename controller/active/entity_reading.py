"""Reads what every node follows: the configs of brokers, users, clients and addresses, ACLs,
delegation tokens, and groups. The controller and each node read it into their images.

Rule: a znode that cannot be read is logged and stops nobody: an unreadable token is none,
everything else unreadable is known to be so.
"""

import logging
from collections.abc import Sequence

from ...cluster.entities import (
    UNREADABLE,
    AclEntries,
    FinalizedFeatures,
)
from ...cluster.entity_paths import (
    CONFIG_ROOTS,
    CONFIGS,
    GROUPS,
    TOKENS,
    Entity,
    group_place,
    is_followed,
    paths_of_group,
)
from ...cluster.groups import CommittedOffset, GroupHeader
from ...cluster.image import Image
from ...cluster.znodes import acls, groups, layout, tokens
from ...cluster.znodes.cluster import finalized_features
from ...cluster.znodes.content import MalformedZnodeError, fits
from ...cluster.znodes.entity_names import CLIENTS, USERS, unsanitized
from ...store.base import HIDDEN, Entry, Store, listed_below
from .loading import entity_configs

log = logging.getLogger("minicontroller.controller")


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
    if path == layout.FEATURE:
        return _features(entry)
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


def _features(entry: Entry) -> FinalizedFeatures:
    try:
        levels = finalized_features(entry.data)
    except MalformedZnodeError as error:
        log.warning("%s is ignored: %s", layout.FEATURE, error)
        levels = {}
    return FinalizedFeatures(entry.stat.version, tuple(sorted(levels.items())))


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


def _fits(path: str) -> bool:
    """Whether Kafka's messages can carry the names in a path."""
    names = path.split("/")
    return all(map(fits, map(unsanitized, names) if path.startswith(CONFIGS) else names))


async def read_entities(store: Store, paths: Sequence[str]) -> dict[str, Entity | None]:
    return {path: decoded(path, entry) for path, entry in zip(paths, await store.get_many(paths), strict=True)}


# ------------------------------------------------------------------ everything


async def load_configs(store: Store) -> dict[str, Entity | None]:
    """Read the configs of all brokers, users, clients and addresses, in four rounds. Raises
    StoreError.
    """
    listed = await store.children_many(CONFIG_ROOTS)
    paths = [f"{root}/{name}" for root, names in zip(CONFIG_ROOTS, listed, strict=True) for name in names or ()]
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


async def load_entities(store: Store) -> dict[str, Entity | None]:
    """Read everything that nodes follow. Raises StoreError."""
    found = await load_configs(store)
    for root in (acls.LITERAL_ROOT, acls.PREFIXED_ROOT):
        found |= await load_acls(store, root)
    found |= await read_entities(store, [layout.FEATURE])
    return found | await load_tokens(store) | await load_groups(store)

"""Stages changes of what every node follows: configs of users, clients and addresses, ACLs,
delegation tokens, and groups.

Rule: a znode is written in the version that the draft shows, together with a notification of the
change. What has become empty is deleted, as Kafka deletes it.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from immutables import Map

from ...cluster.delta import EntitiesChanged
from ...cluster.entities import (
    NO_ACL_ENTRIES,
    NO_CONFIGS,
    NO_ENTITY_CONFIGS,
    AclEntries,
    EntityConfigs,
    TokenInformation,
    refuse_unreadable,
)
from ...cluster.entity_paths import CONFIGS, GROUPS, TOKENS, Entity, Value, entity_of
from ...cluster.groups import NO_ZNODE, CommittedOffset, Group, GroupHeader, Place
from ...cluster.znodes import acls, groups, layout, tokens
from ...cluster.znodes.configs import encode_config, encode_config_change
from ...cluster.znodes.entity_names import CLIENTS
from ...protocol.acls import AccessControlEntry, ResourcePattern
from ...store.base import Check, Create, Delete, Operation, SetData
from .jobs import Draft, StagedElement

Written = tuple[list[Operation], dict[str, Entity | None]]
"""Operations, and the entities that they leave, by path."""


def stage_value(draft: Draft, path: str, value: Value) -> StagedElement:
    """Stage what the entity at this path is to say. Raises Refusal."""
    if path.startswith(CONFIGS):
        assert isinstance(value, Mapping)
        return stage_client_configs(draft, path.removeprefix(CONFIGS), value)
    if path.startswith(TOKENS):
        assert value is None or isinstance(value, TokenInformation)
        return stage_token(draft, path.removeprefix(TOKENS), value)
    if path.startswith(GROUPS):
        assert value is None or isinstance(value, Group)
        return stage_group(draft, path.removeprefix(GROUPS), value)
    pattern = acls.pattern_at(path)
    assert pattern is not None and isinstance(value, frozenset), path
    return stage_acls(draft, pattern, value)


def stage_confirmation(draft: Draft, path: str) -> StagedElement:
    """Stage that the entity at this path is still as the draft shows it. Another program may have
    changed or deleted its znode without a notification; then the commit meets a conflict, and the
    change is planned again on what is there. Raises Refusal.
    """
    entity = entity_of(draft.image, path)
    assert entity is not None, path
    return draft.stage(EntitiesChanged({path: entity}), [Check(path, entity.version)], key=path)


def stage_client_configs(draft: Draft, path: str, configs: Mapping[str, str]) -> StagedElement:
    """Stage all configs of a user, a client or an address, given by their path below `/config`
    (`client_entity_path`). Raises Refusal.
    """
    refuse_unreadable(f"{layout.CONFIG}/{path}", draft.image.configs.get(path, NO_ENTITY_CONFIGS).version)
    operations, after = _client_configs(draft, path, configs)
    operations.append(Create(layout.CONFIG_CHANGE_PREFIX, encode_config_change(path), sequential=True))
    return draft.stage(EntitiesChanged(after), operations, key=_at(path))


def stage_acls(draft: Draft, pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> StagedElement:
    """Stage all ACLs of a resource pattern. Raises Refusal."""
    path, wanted = acls.acl_path(pattern), frozenset(entries)
    before = draft.image.acls.get(pattern, NO_ACL_ENTRIES)
    refuse_unreadable(path, before.version)
    if before.entries == wanted:
        return draft.decide()
    operation = _write(path, acls.encode_acls(wanted) if wanted else None, before.version)
    prefix, notice = acls.encode_acl_change(pattern)
    after = AclEntries(wanted, before.version + 1) if wanted else None
    return draft.stage(EntitiesChanged({path: after}), [operation, Create(prefix, notice, sequential=True)], key=path)


def stage_token(draft: Draft, token_id: str, token: TokenInformation | None) -> StagedElement:
    """Stage a delegation token that is created or changed, or one that is removed (None). Raises
    Refusal.
    """
    path, known = tokens.token_path(token_id), draft.image.tokens.get(token_id)
    version = -1 if known is None else known.version
    if known is None and token is None:
        return draft.decide()
    after = None if token is None else msgspec.structs.replace(token, version=version + 1)
    operation = _write(path, None if token is None else tokens.encode_token(token), version)
    notice = Create(tokens.CHANGE_PREFIX, tokens.encode_token_change(token_id), sequential=True)
    return draft.stage(EntitiesChanged({path: after}), [operation, notice], key=path)


def stage_group(draft: Draft, name: str, group: Group | None) -> StagedElement:
    """Stage the offsets of a group that an edit has touched, given by the name of the group's
    znode, or the removal of the group (None). What an earlier version kept in that znode moves to
    znodes of its own. Raises Refusal.
    """
    known = draft.image.groups.get(name)
    if known is None and group is None:
        return draft.decide()
    writes = _Writes(f"{GROUPS}{name}", draft.below)
    if group is None:
        assert known is not None
        for place, each in known.placed():
            writes.offset(place, each, None)
        writes.header(known.header, None)
        changed = [place for place, _ in known.placed()]
    else:
        changed = sorted(group.touched | _in_header(group))
        if known is None:
            writes.header(None, group.header)
        for place in changed:
            writes.offset(place, None if known is None else known.at(place), group.at(place))
        header = msgspec.structs.replace(group.header, older=None)
        if known is not None and header.is_readable and header != known.header:
            writes.header(known.header, header)
    for notice in groups.encode_group_changes(name, changed):
        writes.operations.append(Create(groups.CHANGE_PREFIX, notice, sequential=True))
    return draft.stage(EntitiesChanged(writes.after), writes.operations, key=writes.path)


def _in_header(group: Group) -> frozenset[Place]:
    """Return the places of the offsets that are in the group's znode itself."""
    if group.header.older is None:
        return frozenset()
    return frozenset(place for place, each in group.placed() if each.version == NO_ZNODE)


class _Writes:
    """The operations that write a group, and the entities that they leave, by path."""

    def __init__(self, path: str, below: Mapping[str, Sequence[str]]) -> None:
        self.path = path
        self.operations: list[Operation] = []
        self.after: dict[str, Entity | None] = {}
        self._below = below
        self._deleted: set[str] = set()

    def header(self, before: GroupHeader | None, after: GroupHeader | None) -> None:
        version = NO_ZNODE if before is None else before.version
        self._write(self.path, None if after is None else groups.encode_header(after), version)
        self.after[self.path] = None if after is None else msgspec.structs.replace(after, version=version + 1)

    def offset(self, place: Place, before: CommittedOffset | None, after: CommittedOffset | None) -> None:
        path, version = f"{self.path}/{groups.offset_name(place)}", NO_ZNODE if before is None else before.version
        if after is not None or version != NO_ZNODE:
            self._write(path, None if after is None else groups.encode_offset(after), version)
            self.after[path] = None if after is None else msgspec.structs.replace(after, version=version + 1)

    def _write(self, path: str, data: bytes | None, version: int) -> None:
        """Write a znode, or delete it with all that others have put below it."""
        if data is None:
            foreign = [each for each in reversed(self._below.get(path, ())) if each not in self._deleted]
            self.operations += map(Delete, foreign)
            self._deleted.update(foreign, [path])
        self.operations.append(_write(path, data, version))


def _write(path: str, data: bytes | None, version: int) -> Operation:
    """Return the operation that creates, sets or, without data, deletes a znode of this version."""
    if data is None:
        return Delete(path, version)
    return Create(path, data) if version < 0 else SetData(path, data, version)


def _client_configs(draft: Draft, path: str, configs: Mapping[str, str]) -> Written:
    """Return what writes the configs, and the znodes above and below them: a znode stands as long
    as it has configs, clients or what others have put there (Kafka:
    AdminZkClient.tryCleanQuotaNodes).
    """
    image = draft.image
    before = image.configs.get(path, NO_ENTITY_CONFIGS)
    user, is_of_user, _client = path.partition(f"/{CLIENTS}/")
    parent = f"{user}/{CLIENTS}"
    if configs or draft.below.get(_at(path)) or (not is_of_user and f"{path}/{CLIENTS}" in image.configs):
        operations: list[Operation] = []
        after: dict[str, Entity | None] = {}
        for above in (user, parent) if is_of_user else ():
            if above not in image.configs:
                operations.append(Create(_at(above)))
                after[_at(above)] = EntityConfigs(NO_CONFIGS, 0)
        operations.append(_write(_at(path), encode_config(configs), before.version))
        after[_at(path)] = EntityConfigs(Map(configs), before.version + 1)
        return operations, after
    if before.version < 0:
        return [], {}
    doomed = [path]
    if is_of_user and not any(each.startswith(f"{parent}/") and each != path for each in image.configs):
        doomed.append(parent)
        if user in image.configs and not image.configs[user].configs and not draft.below.get(_at(user)):
            doomed.append(user)
    return [Delete(_at(each), image.configs[each].version) for each in doomed], dict.fromkeys(map(_at, doomed))


def _at(path: str) -> str:
    return f"{layout.CONFIG}/{path}"

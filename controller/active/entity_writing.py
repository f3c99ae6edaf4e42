"""Stages changes of what every node follows: configs of users, clients and addresses, ACLs,
delegation tokens, and groups.

Rule: a znode is written in the version that the draft shows, together with a notification of the
change. What has become empty is deleted, as Kafka deletes it.
"""

from collections.abc import Iterable, Mapping

import msgspec
from immutables import Map

from ...protocol.acls import AccessControlEntry, ResourcePattern
from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..metadata.entities import (
    NO_ACL_ENTRIES,
    NO_CONFIGS,
    NO_ENTITY_CONFIGS,
    UNREADABLE,
    AclEntries,
    DelegationToken,
    EntityConfigs,
)
from ..metadata.groups import Group
from ..metadata.image import Image
from ..store.base import Check, Create, Delete, Operation, SetData
from ..znodes import acls, groups, layout, tokens
from ..znodes.configs import encode_config, encode_config_change
from ..znodes.entity_names import CLIENTS
from .entity_reading import CONFIGS, GROUPS, TOKENS, Entity, Value, entity_of
from .jobs import Draft, Element

Written = tuple[list[Operation], dict[str, Entity | None]]
"""Operations, and the entities that they leave, by path."""


def stage_value(draft: Draft, path: str, value: Value) -> Element:
    """Stage what the entity at this path is to say. Raises Refusal."""
    if path.startswith(CONFIGS):
        assert isinstance(value, Mapping)
        return stage_client_configs(draft, path.removeprefix(CONFIGS), value)
    if path.startswith(TOKENS):
        assert value is None or isinstance(value, DelegationToken)
        return stage_token(draft, path.removeprefix(TOKENS), value)
    if path.startswith(GROUPS):
        assert value is None or isinstance(value, Group)
        return stage_group(draft, path.removeprefix(GROUPS), value)
    pattern = acls.pattern_at(path)
    assert pattern is not None and isinstance(value, frozenset), path
    return stage_acls(draft, pattern, value)


def stage_confirmation(draft: Draft, path: str) -> Element:
    """Stage that the entity at this path is still as the draft shows it. Another program may have
    changed or deleted its znode without a notification; then the commit meets a conflict, and the
    change is planned again on what is there. Raises Refusal.
    """
    entity = entity_of(draft.image, path)
    assert entity is not None, path
    return draft.stage_entities(path, [Check(path, entity.version)], {path: entity})


def stage_client_configs(draft: Draft, path: str, configs: Mapping[str, str]) -> Element:
    """Stage all configs of a user, a client or an address, given by their path below `/config`
    (`client_entity_path`). Raises Refusal.
    """
    refuse_unreadable(f"{layout.CONFIG}/{path}", draft.image.configs.get(path, NO_ENTITY_CONFIGS).version)
    operations, after = _client_configs(draft.image, path, configs)
    operations.append(Create(layout.CONFIG_CHANGE_PREFIX, encode_config_change(path), sequential=True))
    return draft.stage_entities(_at(path), operations, after)


def stage_acls(draft: Draft, pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> Element:
    """Stage all ACLs of a resource pattern. Raises Refusal."""
    path, wanted = acls.acl_path(pattern), frozenset(entries)
    before = draft.image.acls.get(pattern, NO_ACL_ENTRIES)
    refuse_unreadable(path, before.version)
    if before.entries == wanted:
        return draft.decide()
    operation = _write(path, acls.encode_acls(wanted) if wanted else None, before.version)
    prefix, notice = acls.encode_acl_change(pattern)
    after = AclEntries(wanted, before.version + 1) if wanted else None
    return draft.stage_entities(path, [operation, Create(prefix, notice, sequential=True)], {path: after})


def stage_token(draft: Draft, token_id: str, token: DelegationToken | None) -> Element:
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
    return draft.stage_entities(path, [operation, notice], {path: after})


def stage_group(draft: Draft, name: str, group: Group | None) -> Element:
    """Stage the offsets of a group, given by the name of its znode, or its removal (None). Raises
    INVALID_COMMIT_OFFSET_SIZE if one group or all of them would become too large.
    """
    path, known = f"{GROUPS}{name}", draft.image.groups.get(name)
    version, size = (-1, 0) if known is None else (known.version, known.size)
    if group is None:
        data, after = None, None
    else:
        data = groups.encode_group(group)
        after = msgspec.structs.replace(group, size=len(data), version=version + 1)
        _check_size(draft.image, len(data), grown=len(data) - size, is_new=known is None)
    notice = Create(groups.CHANGE_PREFIX, name.encode(), sequential=True)
    return draft.stage_entities(path, [_write(path, data, version), notice], {path: after})


def _check_size(image: Image, size: int, *, grown: int, is_new: bool) -> None:
    if size > groups.MAX_GROUP_BYTES:
        problem = f"the offsets of a group may need {groups.MAX_GROUP_BYTES} bytes; these need {size}"
    elif grown > 0 and image.groups_bytes + grown > groups.MAX_BYTES:
        problem = f"the offsets of all groups may need {groups.MAX_BYTES} bytes, and are as many already"
    elif is_new and len(image.groups) >= groups.MAX_GROUPS:
        problem = f"there may be {groups.MAX_GROUPS} groups, and are as many already"
    else:
        return
    raise Refusal(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, f"The offsets are not kept: {problem}.")


def refuse_unreadable(path: str, version: int) -> None:
    """Refuse to change what cannot be read, because that would erase what others wrote. Raises
    INVALID_CONFIG.
    """
    if version == UNREADABLE:
        raise Refusal(ErrorCode.INVALID_CONFIG, f"{path} in ZooKeeper cannot be read: mend or delete it first.")


def _write(path: str, data: bytes | None, version: int) -> Operation:
    """Return the operation that creates, sets or, without data, deletes a znode of this version."""
    if data is None:
        return Delete(path, version)
    return Create(path, data) if version < 0 else SetData(path, data, version)


def _client_configs(image: Image, path: str, configs: Mapping[str, str]) -> Written:
    """Return what writes the configs, and the znodes above and below them: a user's znode stands as
    long as it has configs or clients (Kafka: AdminZkClient.tryCleanQuotaNodes).
    """
    before = image.configs.get(path, NO_ENTITY_CONFIGS)
    user, is_of_user, _client = path.partition(f"/{CLIENTS}/")
    parent = f"{user}/{CLIENTS}"
    if configs or (not is_of_user and f"{path}/{CLIENTS}" in image.configs):
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
        if user in image.configs and not image.configs[user].configs:
            doomed.append(user)
    return [Delete(_at(each), image.configs[each].version) for each in doomed], dict.fromkeys(map(_at, doomed))


def _at(path: str) -> str:
    return f"{layout.CONFIG}/{path}"

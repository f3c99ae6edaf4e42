"""AlterClientQuotas (49) sets and removes the quotas of users, clients and addresses.

The checks and their order are Kafka's (ZkAdminManager.alterClientQuotas): an entry takes effect as
a whole or not at all, and an entity that the request names twice has one row. Only quotas can be
removed: Kafka would also remove the SCRAM credentials of a user here, without the permission that
they need.
"""

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredClientQuotas,
    ClientQuotaAlteration,
    ClientQuotaOperation,
)
from ...protocol.messages.describe_client_quotas import ClientQuotaEntity
from ..errors import Refusal
from ..quotas.quota_keys import keys_of, quota_text
from ..requests.changes import RequestedChange
from ..requests.context import RequestContext
from ..requests.permissions import Permission
from ..requests.spec import Changes, Rows, Spec, copied
from ..znodes import layout
from ..znodes.entity_names import CLIENT_ID, IP, USER, Entity, client_entity_path, is_node_name, sanitized
from .entity_changes import EntityEdit, change_entities
from .node import Node

ALTER_CONFIGS = Permission(
    AclOperation.ALTER_CONFIGS, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each entity"
)
KIND = "client_quota"
"""The kind of these changes in the audit log."""
TYPES = (USER, CLIENT_ID, IP)

Configs = Mapping[str, str]
NamedEntity = tuple[tuple[str, str | None], ...]


async def handle(node: Node, context: RequestContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    may = context.may(ALTER_CONFIGS)
    edits = [_edit(alteration) if may else _refused(alteration, _unauthorized()) for alteration in request.entries]
    changes = await change_entities(node, context, request, edits, validate_only=request.validate_only)
    rows = list(zip((_entity(each.entity) for each in request.entries), changes, strict=True))
    if may:  # as in Kafka, an entity that is named twice has one row then
        rows = list(dict(rows).items())
    return AlterClientQuotasResponse(
        entries=[
            AlteredClientQuotas(
                error_code=change.code,
                error_message=change.message,
                entity=[ClientQuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity],
            )
            for entity, change in rows
        ]
    )


def _entity(entity: Iterable[ClientQuotaEntity]) -> NamedEntity:
    """Return the types and names of an entity. If a type is named twice, the last one counts."""
    return tuple({each.entity_type: each.entity_name for each in entity}.items())


def _edit(alteration: ClientQuotaAlteration) -> EntityEdit:
    try:
        entity = _checked(_entity(alteration.entity))
        change = _change(frozenset(entity), alteration.ops)
    except Refusal as refusal:
        return _refused(alteration, refusal)
    path = f"{layout.CONFIG}/{client_entity_path(entity)}"
    return EntityEdit(KIND, entity_name(alteration.entity), path, change, _operands(alteration), _kinds(alteration))


def _refused(alteration: ClientQuotaAlteration, refusal: Refusal) -> EntityEdit:
    def refuse(_configs: object) -> object:
        raise refusal

    return EntityEdit(KIND, entity_name(alteration.entity), "", refuse, _operands(alteration), _kinds(alteration))


def _unauthorized() -> Refusal:
    return Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")


def _checked(named: NamedEntity) -> Entity:
    """Check that there can be such an entity, and return it. Raises INVALID_REQUEST."""
    if not named:
        raise _invalid("Invalid empty client quota entity")
    for kind, name in named:
        if kind not in TYPES:
            raise _invalid(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _invalid(f"Empty {kind} not supported")
        if name is not None and not is_node_name(sanitized(name)):
            raise _invalid(f"No {kind} can have the name {name}, because no znode can")
    entity = dict(named)
    if IP in entity:
        if len(entity) > 1:
            raise _invalid("Invalid quota entity combination, IP entity should not be used with user/client ID entity.")
        if not _is_address(entity[IP]):
            raise _invalid(f"{sanitized(entity[IP] or '')} is not a valid IP or resolvable host.")
    return entity


def _is_address(name: str | None) -> bool:
    """Return whether a quota can hold for this address. As in Kafka's stores, only those of IPv4
    can be named; and host names are not resolved here.
    """
    try:
        return name is None or bool(ipaddress.IPv4Address(name))
    except ValueError:
        return False


def _change(types: frozenset[str], ops: Iterable[ClientQuotaOperation]) -> Callable[[Configs], Configs]:
    """Return what the operations of an entry make of the configs of an entity. Raises
    INVALID_REQUEST.
    """
    keys = keys_of(types)
    texts: dict[str, str | None] = {}
    for op in ops:
        if op.remove:
            texts[op.key] = None
        elif op.key in keys:
            texts[op.key] = quota_text(op.key, keys[op.key], op.value)
        else:
            raise _invalid(f"Invalid configuration key {op.key}")

    def change(configs: Configs) -> Configs:
        after = dict(configs)
        for key, text in texts.items():
            if text is not None:
                after[key] = text
            elif key in keys:
                after.pop(key, None)
        return after

    return change


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)


# ------------------------------------------------------------------ for the audit log


def entity_name(entity: Iterable[ClientQuotaEntity]) -> str:
    """Return the name of an entity, whatever it holds: `user=alice,client-id=<default>`."""
    return ",".join(
        f"{kind}={layout.DEFAULT_ENTITY if name is None else sanitized(name)}" for kind, name in _entity(entity)
    )


def _operands(alteration: ClientQuotaAlteration) -> dict[str, str | None]:
    return {op.key: None if op.remove else repr(op.value) for op in alteration.ops}


def _kinds(alteration: ClientQuotaAlteration) -> dict[str, str]:
    return {op.key: "delete" if op.remove else "set" for op in alteration.ops}


def _requested(request: AlterClientQuotasRequest) -> Iterator[RequestedChange]:
    for each in request.entries:
        yield RequestedChange(entity_name(each.entity), KIND, _operands(each), _kinds(each))


API = Spec(
    key=ApiKey.ALTER_CLIENT_QUOTAS,
    handler=handle,
    at_controller=True,
    rows=Rows("entries", AlteredClientQuotas, {"entries": copied("entity")}),
    changes=Changes("alter_client_quotas", _requested),
    permissions=(ALTER_CONFIGS,),
)

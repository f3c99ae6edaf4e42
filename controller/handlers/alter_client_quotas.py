"""AlterClientQuotas (49) sets and removes the quotas of users, clients and addresses.

The checks and their order are Kafka's (ZkAdminManager.alterClientQuotas): an entry takes effect as
a whole or not at all, and an entity that the request names twice has one row. Only quotas can be
removed: Kafka would also remove the SCRAM credentials of a user here, without the permission that
they need.
"""

import ipaddress
from collections.abc import Callable, Iterable, Mapping

from ...admin.alter_client_quotas import ALTER_CONFIGS, SPEC, NamedEntity, entity_of, requested_change
from ...cluster.errors import Refusal
from ...cluster.quotas.quota_keys import keys_of, quota_text
from ...cluster.znodes import layout
from ...cluster.znodes.entity_names import CLIENT_ID, IP, USER, Entity, client_entity_path, is_node_name, sanitized
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredClientQuotas,
    ClientQuotaAlteration,
    ClientQuotaOperation,
)
from ...protocol.messages.describe_client_quotas import DescribedQuotaEntity
from .controller_port import ControllerPort
from .entity_changes import EntityEdit, change_entities

TYPES = (USER, CLIENT_ID, IP)

Configs = Mapping[str, str]


async def handle(
    port: ControllerPort, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    may = context.may(ALTER_CONFIGS)
    edits = [_edit(alteration) if may else _refused(alteration, _unauthorized()) for alteration in request.entries]
    outcomes = await change_entities(port, context, request, edits, validate_only=request.validate_only)
    rows = list(zip((entity_of(each.entity) for each in request.entries), outcomes, strict=True))
    if may:  # as in Kafka, an entity that is named twice has one row then
        rows = list(dict(rows).items())
    return AlterClientQuotasResponse(
        entries=[
            AlteredClientQuotas(
                error_code=outcome.code,
                error_message=outcome.message,
                entity=[DescribedQuotaEntity(entity_type=kind, entity_name=name) for kind, name in entity],
            )
            for entity, outcome in rows
        ]
    )


def _edit(alteration: ClientQuotaAlteration) -> EntityEdit:
    try:
        entity = _checked(entity_of(alteration.entity))
        edit = _change(frozenset(entity), alteration.ops)
    except Refusal as refusal:
        return _refused(alteration, refusal)
    path = f"{layout.CONFIG}/{client_entity_path(entity)}"
    return EntityEdit(requested_change(alteration), path, edit)


def _refused(alteration: ClientQuotaAlteration, refusal: Refusal) -> EntityEdit:
    def refuse(_configs: object) -> object:
        raise refusal

    return EntityEdit(requested_change(alteration), "", refuse)


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

    def outcome(configs: Configs) -> Configs:
        after = dict(configs)
        for key, text in texts.items():
            if text is not None:
                after[key] = text
            elif key in keys:
                after.pop(key, None)
        return after

    return outcome


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)


# ------------------------------------------------------------------ for the audit log


API = served(SPEC, handle)

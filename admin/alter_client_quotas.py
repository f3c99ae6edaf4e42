"""AlterClientQuotas (49) sets and removes the quotas of users, clients and addresses.

The checks and their order are Kafka's (ZkAdminManager.alterClientQuotas): an entry takes effect as
a whole or not at all, and an entity that the request names twice has one row. Only quotas can be
removed: Kafka would also remove the SCRAM credentials of a user here, without the permission that
they need.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping

from ..cluster.entities import NO_ENTITY_CONFIGS, refuse_unreadable
from ..cluster.errors import Refusal
from ..cluster.image import Image
from ..cluster.quotas.quota_keys import keys_of, quota_text
from ..cluster.znodes import layout
from ..cluster.znodes.entity_names import CLIENT_ID, IP, USER, Entity, client_entity_path, is_node_name, sanitized
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlteredClientQuotas,
    ClientQuotaAlteration,
    ClientQuotaOperation,
)
from ..protocol.messages.describe_client_quotas import DescribedQuotaEntity
from .changes import Change
from .permissions import Permission
from .spec import Changes, Rows, Spec, copied

ALTER_CONFIGS = Permission(
    AclOperation.ALTER_CONFIGS, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for each entity"
)
KIND = "client_quota"
"""The kind of these changes in the audit log."""
TYPES = (USER, CLIENT_ID, IP)
NamedEntity = tuple[tuple[str, str | None], ...]


def entity_of(entity: Iterable[DescribedQuotaEntity]) -> NamedEntity:
    """Return the types and names of an entity. If a type is named twice, the last one counts."""
    return tuple({each.entity_type: each.entity_name for each in entity}.items())


def entity_name(entity: Iterable[DescribedQuotaEntity]) -> str:
    """Return the name of an entity, whatever it holds: `user=alice,client-id=<default>`."""
    return ",".join(
        f"{kind}={layout.DEFAULT_ENTITY if name is None else sanitized(name)}" for kind, name in entity_of(entity)
    )


def requested_change(alteration: ClientQuotaAlteration) -> Change:
    return Change(
        entity_name(alteration.entity),
        KIND,
        {op.key: None if op.remove else repr(op.value) for op in alteration.ops},
        {op.key: "delete" if op.remove else "set" for op in alteration.ops},
    )


def with_quotas(image: Image, alteration: ClientQuotaAlteration) -> tuple[str, dict[str, str]]:
    """Return the path of the configs of an entity, and all of them after an entry of a request.
    Raises Refusal.
    """
    entity = _checked(entity_of(alteration.entity))
    texts = _texts(frozenset(entity), alteration.ops)
    path = client_entity_path(entity)
    before = image.configs.get(path, NO_ENTITY_CONFIGS)
    refuse_unreadable(f"{layout.CONFIG}/{path}", before.version)
    after = dict(before.configs)
    for key, text in texts.items():
        if text is None:
            after.pop(key, None)
        else:
            after[key] = text
    return f"{layout.CONFIG}/{path}", after


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


def _texts(types: frozenset[str], ops: Iterable[ClientQuotaOperation]) -> Mapping[str, str | None]:
    """Return the quotas that the operations of an entry set, None for those that they remove.
    Raises INVALID_REQUEST.
    """
    keys = keys_of(types)
    texts: dict[str, str | None] = {}
    for op in ops:
        if op.key in keys:
            texts[op.key] = None if op.remove else quota_text(op.key, keys[op.key], op.value)
        elif not op.remove:
            raise _invalid(f"Invalid configuration key {op.key}")
    return texts


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, text)


def _requested(request: AlterClientQuotasRequest) -> Iterator[Change]:
    return map(requested_change, request.entries)


SPEC = Spec(
    key=ApiKey.ALTER_CLIENT_QUOTAS,
    at_controller=True,
    rows=Rows("entries", AlteredClientQuotas, {"entries": copied("entity")}),
    changes=Changes("alter_client_quotas", _requested),
    permissions=(ALTER_CONFIGS,),
)

"""AlterClientQuotas (49) sets and removes the quotas of users, clients and addresses."""

from collections.abc import Iterable, Iterator

from ..cluster.znodes import layout
from ..cluster.znodes.entity_names import sanitized
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlteredClientQuotas,
    ClientQuotaAlteration,
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


def _requested(request: AlterClientQuotasRequest) -> Iterator[Change]:
    return map(requested_change, request.entries)


SPEC = Spec(
    key=ApiKey.ALTER_CLIENT_QUOTAS,
    at_controller=True,
    rows=Rows("entries", AlteredClientQuotas, {"entries": copied("entity")}),
    changes=Changes("alter_client_quotas", _requested),
    permissions=(ALTER_CONFIGS,),
)

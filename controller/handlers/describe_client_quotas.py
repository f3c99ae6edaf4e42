"""DescribeClientQuotas (48): the quotas in force at this node, of the entities that match a filter.

The checks are Kafka's (ZkAdminManager.describeClientQuotas). A component without a type that Kafka
knows, or an exact match without a name, is refused with INVALID_REQUEST; Kafka fails there with
UNKNOWN_SERVER_ERROR.
"""

from collections.abc import Mapping
from enum import IntEnum

from ...admin.permissions import Permission
from ...cluster.errors import Refusal
from ...cluster.quotas.client_quotas import ClientQuotas, EntityKey
from ...cluster.znodes.entity_names import CLIENT_ID, IP, USER
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_client_quotas import (
    ClientQuotaComponent,
    ClientQuotaEntry,
    ClientQuotaValue,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedQuotaEntity,
)

DESCRIBE_CONFIGS = Permission(
    AclOperation.DESCRIBE_CONFIGS, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED, and no quotas"
)
WORDS = {USER: "user", CLIENT_ID: "client", IP: "ip"}
"""Kafka's words in the message about a duplicate."""


class Match(IntEnum):
    """How a component matches the name of an entity (Kafka: `ClientQuotaFilterComponent`)."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


def handle(
    quotas: ClientQuotas, context: RequestContext, request: DescribeClientQuotasRequest
) -> Steps[DescribeClientQuotasResponse]:
    context.check_cluster(DESCRIBE_CONFIGS)
    components = _components(request)
    matching = [key for key in quotas.all if _matches(dict(key), components, strict=request.strict)]
    entries = yield from one_by_one(_entry(key, quotas.all[key]) for key in sorted(matching, key=_order))
    return DescribeClientQuotasResponse(error_message="", entries=entries)


def _components(request: DescribeClientQuotasRequest) -> dict[str, ClientQuotaComponent]:
    """Return the components of the filter by type. Raises Refusal."""
    found: dict[str, ClientQuotaComponent] = {}
    for component in request.components:
        kind = component.entity_type
        if not kind:
            raise Refusal(ErrorCode.INVALID_REQUEST, "Unexpected empty filter component entity type")
        if kind not in WORDS:
            raise Refusal(ErrorCode.UNSUPPORTED_VERSION, f"Custom entity type '{kind}' not supported")
        if kind in found:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"Duplicate {WORDS[kind]} filter component entity type")
        if component.match_type not in list(Match):
            text = f"Unknown match type {component.match_type} of the {WORDS[kind]} filter component"
            raise Refusal(ErrorCode.INVALID_REQUEST, text)
        if component.match_type == Match.EXACT and component.match is None:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"The {WORDS[kind]} filter component names nobody")
        found[kind] = component
    if IP in found and len(found) > 1:
        raise Refusal(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination, IP filter component should not be used with "
            "user or clientId filter component.",
        )
    _check_names(found, strict=request.strict)
    return found


def _check_names(components: Mapping[str, ClientQuotaComponent], *, strict: bool) -> None:
    """Raise Refusal if the components ask for one entity, and it has an empty name; among several
    entities nothing is found by one.
    """
    one = strict or IP in components or len(components) > 1
    if not one or any(component.match_type == Match.ANY for component in components.values()):
        return
    for kind, component in components.items():
        if component.match_type == Match.EXACT and not component.match:
            raise Refusal(ErrorCode.INVALID_REQUEST, f"The {WORDS[kind]} filter component names nobody")


def _matches(entity: Mapping[str, str | None], components: Mapping[str, ClientQuotaComponent], *, strict: bool) -> bool:
    """Return whether an entity has what the components ask for and, if they are strict, nothing
    else.
    """
    if not components.keys() <= entity.keys() or (strict and len(entity) != len(components)):
        return False
    return all(_names(component, entity[kind]) for kind, component in components.items())


def _names(component: ClientQuotaComponent, name: str | None) -> bool:
    match component.match_type:
        case Match.EXACT:
            return name == component.match
        case Match.DEFAULT:
            return name is None
    return True


def _order(key: EntityKey) -> list[tuple[str, bool, str]]:
    return [(kind, name is not None, name or "") for kind, name in key]


def _entry(key: EntityKey, quotas: Mapping[str, float]) -> ClientQuotaEntry:
    return ClientQuotaEntry(
        entity=[DescribedQuotaEntity(entity_type=kind, entity_name=name) for kind, name in key],
        values=[ClientQuotaValue(key=name, value=value) for name, value in sorted(quotas.items())],
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
    handler=handle,
    waits_for_update=True,
    permissions=(DESCRIBE_CONFIGS,),
)

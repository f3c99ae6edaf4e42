"""AlterClientQuotas (49) sets and removes the quotas of users, clients and addresses. As in Kafka,
an entity that the request names twice has one row.
"""

from ...admin.alter_client_quotas import ALTER_CONFIGS, SPEC, entity_of, requested_change, with_quotas
from ...cluster.errors import Refusal
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlteredClientQuotas,
)
from ...protocol.messages.describe_client_quotas import DescribedQuotaEntity
from .controller_port import ControllerPort
from .entity_changes import change_entities, refusing


async def handle(
    port: ControllerPort, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    may = context.may(ALTER_CONFIGS)
    denial = Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    plan = with_quotas if may else refusing(denial)
    outcomes = await change_entities(
        port,
        context,
        request,
        request.entries,
        change_of=requested_change,
        plan=plan,
        validate_only=request.validate_only,
    )
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


API = served(SPEC, handle)

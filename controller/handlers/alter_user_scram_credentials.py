"""AlterUserScramCredentials (51) sets and removes the credentials with which users log in by
SCRAM.
"""

from ...admin.alter_user_scram_credentials import ALTER_CLUSTER, SPEC, by_user, requested_change, with_credentials
from ...cluster.errors import Refusal
from ...network.serving.api import served
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from .controller_port import ControllerPort
from .entity_changes import change_entities


async def handle(
    port: ControllerPort, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    if not context.may(ALTER_CLUSTER):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    altered = by_user(request)
    outcomes = await change_entities(
        port, context, request, list(altered.items()), change_of=requested_change, plan=with_credentials
    )
    results = [
        AlterUserScramCredentialsResult(
            user=user, error_code=outcome.code, error_message="" if outcome.refusal is None else outcome.message
        )
        for user, outcome in zip(altered, outcomes, strict=True)
    ]
    return AlterUserScramCredentialsResponse(results=sorted(results, key=lambda result: result.error_code == 0))


API = served(SPEC, handle)

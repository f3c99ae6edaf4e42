"""DescribeUserScramCredentials (50) returns which users can log in by SCRAM, with which mechanisms
and iterations. Salts and keys are never shown.

Every node answers from what it follows, as in Kafka. The texts are Kafka's.
"""

from collections import Counter
from collections.abc import Mapping

from ...admin.permissions import Permission
from ...cluster.errors import Refusal
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ...security.scram_credentials import MECHANISM_NUMBERS, ScramCredential
from ..broker.node_security import NodeSecurity

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request"
)


def handle(
    security: NodeSecurity, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    if not context.may(DESCRIBE_CLUSTER):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not request.users:
        users = security.scram_users()
        return DescribeUserScramCredentialsResponse(results=[_described(name, users[name]) for name in sorted(users)])
    times = Counter(user.name for user in request.users)
    return DescribeUserScramCredentialsResponse(results=[_result(security, name, times[name]) for name in times])


def _result(security: NodeSecurity, name: str, times: int) -> DescribeUserScramCredentialsResult:
    """Return the row of a user that the request names so many times."""
    credentials = security.scram_credentials(name)
    if not name:
        error = ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty"
    elif times > 1:
        error = (
            ErrorCode.DUPLICATE_RESOURCE,
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}",
        )
    elif not credentials:
        error = (
            ErrorCode.RESOURCE_NOT_FOUND,
            f"Attempt to describe a user credential that does not exist: {name}",
        )
    else:
        return _described(name, credentials)
    return DescribeUserScramCredentialsResult(user=name, error_code=error[0], error_message=error[1])


def _described(name: str, credentials: Mapping[str, ScramCredential]) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=name,
        credential_infos=[
            CredentialInfo(mechanism=number, iterations=credentials[mechanism].iterations)
            for number, mechanism in MECHANISM_NUMBERS.items()
            if mechanism in credentials
        ],
    )


API = ServedApi(
    key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    handler=handle,
    permissions=(DESCRIBE_CLUSTER,),
    waits_for_update=True,
)

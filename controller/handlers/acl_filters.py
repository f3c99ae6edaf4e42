"""The filters of DescribeAcls and DeleteAcls, and the checks that all requests about ACLs share.

Rule: numbers that Kafka does not know match nothing.
"""

from ...admin.permissions import Permission
from ...cluster.errors import Refusal
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode


def check_request(
    context: RequestContext, permission: Permission, no_authorizer: str = "No Authorizer is configured."
) -> None:
    """Raise CLUSTER_AUTHORIZATION_FAILED if the client lacks the permission, and SECURITY_DISABLED
    if no authorizer follows ACLs.
    """
    if not context.may(permission):
        raise Refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    authorization = context.dispatcher.authorization
    if authorization is None:
        raise Refusal(ErrorCode.SECURITY_DISABLED, no_authorizer)
    if not authorization.follows_acls:
        raise Refusal(ErrorCode.SECURITY_DISABLED, "The authorizer of this cluster does not follow ACLs.")

"""Pure judgement on frozen snapshots. What the author of a policy or of an authorizer needs is
importable from here; `interface.py` and `authorizer.py` explain it.
"""

from ..protocol.acls import AclOperation, AclResourceType
from .authorizer import (
    Action,
    Authorizer,
    AuthorizerError,
    ClusterAuthorizationError,
    GroupAuthorizationError,
    Requester,
    SecurityDisabledError,
    TopicAuthorizationError,
    UndecidedError,
)
from .interface import (
    AdminRequest,
    AlterBrokerConfigsRequest,
    AlterLoggersRequest,
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyRequest,
    PolicyViolation,
    RequestedTopicState,
    TopicManagementPolicy,
    TopicState,
)

__all__ = [
    "AclOperation",
    "AclResourceType",
    "Action",
    "AdminRequest",
    "AlterBrokerConfigsRequest",
    "AlterLoggersRequest",
    "AlterTopicRequest",
    "Authorizer",
    "AuthorizerError",
    "ClusterAuthorizationError",
    "ClusterState",
    "CreateTopicRequest",
    "DeleteRecordsRequest",
    "DeleteTopicRequest",
    "GroupAuthorizationError",
    "PolicyRequest",
    "PolicyViolation",
    "RequestedTopicState",
    "Requester",
    "SecurityDisabledError",
    "TopicAuthorizationError",
    "TopicManagementPolicy",
    "TopicState",
    "UndecidedError",
]

"""Pure judgement on frozen snapshots. What the author of a policy needs is importable from here;
`interface.py` explains it.
"""

from .interface import (
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
    "AlterBrokerConfigsRequest",
    "AlterLoggersRequest",
    "AlterTopicRequest",
    "ClusterState",
    "CreateTopicRequest",
    "DeleteRecordsRequest",
    "DeleteTopicRequest",
    "PolicyRequest",
    "PolicyViolation",
    "RequestedTopicState",
    "TopicManagementPolicy",
    "TopicState",
]

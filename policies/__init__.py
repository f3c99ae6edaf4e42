"""Pure judgement on frozen snapshots. What the author of a policy needs is importable from here; `interface.py` explains it."""

from .interface import (
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

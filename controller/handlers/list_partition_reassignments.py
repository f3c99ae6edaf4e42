"""ListPartitionReassignments (46): nothing here moves replicas, so the list is always empty,
whichever topics the request names.

The active controller answers, as in Kafka, and every other node forwards the request to it.
"""

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    PartitionReassignment,
    RequestedTopic,
    TopicReassignment,
)
from ..requests.context import RequestContext
from ..requests.permissions import Permission
from ..requests.spec import Spec
from .node import Node

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request"
)


def handle(
    _node: Node, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    if context.may(DESCRIBE_CLUSTER):
        return ListPartitionReassignmentsResponse()
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        error_message="Cluster authorization failed.",
        topics=[_named(topic) for topic in request.topics or ()],
    )


def _named(topic: RequestedTopic) -> TopicReassignment:
    """Return the row of a topic as a refused request has it: Kafka repeats what was asked for."""
    partitions = [PartitionReassignment(partition_index=index) for index in topic.partition_indexes]
    return TopicReassignment(name=topic.name, partitions=partitions)


API = Spec(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    handler=handle,
    permissions=(DESCRIBE_CLUSTER,),
    at_controller=True,
)

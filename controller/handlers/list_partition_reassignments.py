"""ListPartitionReassignments (46): nothing here moves replicas, so the list is always empty,
whichever topics the request names.

The active controller answers, as in Kafka, and every other node forwards the request to it.
"""

from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from ..requests.context import RequestContext
from ..requests.permissions import Permission
from ..requests.spec import Spec
from .node import Node

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request"
)


def handle(
    _node: Node, context: RequestContext, _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    context.check_cluster(DESCRIBE_CLUSTER)
    return ListPartitionReassignmentsResponse()


API = Spec(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    handler=handle,
    permissions=(DESCRIBE_CLUSTER,),
    at_controller=True,
)

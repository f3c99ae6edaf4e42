"""ListPartitionReassignments (46): nothing here moves replicas, so the list is always empty,
whichever topics the request names.

The active controller answers, as in Kafka, and every other node forwards the request to it.
"""

from ...protocol.api_keys import ApiKey
from ...protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from ..requests.context import RequestContext
from ..requests.spec import Spec
from .node import Node


def handle(
    _node: Node, _context: RequestContext, _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse()


API = Spec(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    handler=handle,
    at_controller=True,
)

"""ListGroups (16): nodes without logs coordinate no groups, so the list is always empty."""

from ...protocol.api_keys import ApiKey
from ...protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ..requests.context import RequestContext
from ..requests.spec import Spec
from .node import Node


def handle(_node: Node, _context: RequestContext, _request: ListGroupsRequest) -> ListGroupsResponse:
    return ListGroupsResponse()


API = Spec(
    key=ApiKey.LIST_GROUPS,
    handler=handle,
)

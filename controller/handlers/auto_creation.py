"""Creates missing topics automatically, for the handlers of requests that name them."""

from collections.abc import Sequence
from functools import partial

from ...cluster.errors import Refusal
from ...network.serving.api import Handler, response_of
from ...network.serving.context import RequestContext
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from .node import Node


async def create_missing_topics(node: Node, context: RequestContext, names: Sequence[str]) -> dict[str, ErrorCode]:
    """Create these topics on behalf of the client, and return an error code for each:
    LEADER_NOT_AVAILABLE if the topic was created.
    """
    return await node.auto_creation.create(context, names, node.config, partial(_create_topics, node))


async def _create_topics(
    node: Node, handler: Handler, context: RequestContext, request: CreateTopicsRequest
) -> CreateTopicsResponse:
    try:
        response: CreateTopicsResponse = await response_of(handler(node, context, request))
    except Refusal as refusal:
        node.decisions.refused(context, request, refusal)
        raise
    return response

"""ConsumerGroupDescribe (69): groups of KIP-848 need KRaft. Clients such as Kafka's AdminClient ask
here first; they describe the group by DescribeGroups after UNSUPPORTED_VERSION.
"""

from collections.abc import Awaitable

from ...admin.spec import Rows, called
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...network.serving.long_answers import are_few, noted, rows_in_time_slices
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from .node import Node


def handle(
    _node: Node, context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | Awaitable[ConsumerGroupDescribeResponse]:
    rows = (
        DescribedConsumerGroup(group_id=group, error_code=ErrorCode.UNSUPPORTED_VERSION) for group in request.group_ids
    )
    if are_few(request.group_ids):
        return ConsumerGroupDescribeResponse(groups=list(noted(rows, context)))

    async def in_time_slices() -> ConsumerGroupDescribeResponse:
        return ConsumerGroupDescribeResponse(groups=await rows_in_time_slices(rows, context))

    return in_time_slices()


API = ServedApi(
    key=ApiKey.CONSUMER_GROUP_DESCRIBE,
    handler=handle,
    rows=Rows("groups", DescribedConsumerGroup, {"group_ids": called("group_id")}),
)

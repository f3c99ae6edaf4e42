"""ConsumerGroupDescribe (69): groups of KIP-848 need KRaft. Clients such as Kafka's AdminClient ask
here first; they describe the group by DescribeGroups after UNSUPPORTED_VERSION.
"""

from ...admin.spec import Rows, called
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...process.steps import Steps, one_by_one
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)


def handle(_context: RequestContext, request: ConsumerGroupDescribeRequest) -> Steps[ConsumerGroupDescribeResponse]:
    rows = (
        DescribedConsumerGroup(group_id=group, error_code=ErrorCode.UNSUPPORTED_VERSION) for group in request.group_ids
    )
    return ConsumerGroupDescribeResponse(groups=(yield from one_by_one(rows)))


API = ServedApi(
    key=ApiKey.CONSUMER_GROUP_DESCRIBE,
    handler=handle,
    rows=Rows("groups", DescribedConsumerGroup, {"group_ids": called("group_id")}),
)

"""ConsumerGroupHeartbeat (68): groups of KIP-848 need KRaft. Kafka in ZooKeeper mode offers the
request and answers UNSUPPORTED_VERSION, and so does every node here.
"""

from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def handle(_context: RequestContext, _request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)


API = ServedApi(
    key=ApiKey.CONSUMER_GROUP_HEARTBEAT,
    handler=handle,
)

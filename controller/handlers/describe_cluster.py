"""DescribeCluster (60): the brokers that a client can reach, the controller among them, and the
cluster's id (K4-X1).
"""

from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from ..errors import Refusal
from ..metadata.operations import cluster_operations
from ..metadata.partition_view import endpoints_at
from ..requests.context import RequestContext
from ..requests.spec import Spec
from .node import Node

BROKERS, CONTROLLERS = 1, 2
"""The types of endpoints that a client may ask for. In ZooKeeper mode there are only those of
brokers.
"""


def handle(node: Node, context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    _check_endpoint_type(request.endpoint_type)
    image = node.cache.image
    reachable = endpoints_at(image.brokers, context.listener)
    return DescribeClusterResponse(
        cluster_id=node.cluster_id,
        # Never one that is not in the list: clients would look for it.
        controller_id=image.controller_id if image.controller_id in reachable else -1,
        brokers=[
            DescribeClusterBroker(broker_id=broker_id, host=at.host, port=at.port, rack=image.brokers[broker_id].rack)
            for broker_id, at in reachable.items()
        ],
        cluster_authorized_operations=cluster_operations(asked=request.include_cluster_authorized_operations),
    )


def _check_endpoint_type(kind: int) -> None:
    """Refuse an endpoint type that this node does not serve. v0 lacks the field, so its default is
    always served.
    """
    if kind == CONTROLLERS:
        raise Refusal(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "An endpoint of type CONTROLLER was asked for, and this is one of type BROKER.",
        )
    if kind != BROKERS:
        raise Refusal(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}")


API = Spec(
    key=ApiKey.DESCRIBE_CLUSTER,
    handler=handle,
)

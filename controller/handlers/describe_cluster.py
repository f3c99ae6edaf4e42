"""DescribeCluster (60) returns the cluster's id, the brokers that a client can reach, and which of
them is the controller (K4-X1).
"""

from ...admin.permissions import Permission
from ...cluster.errors import Refusal
from ...cluster.partition_view import endpoints_at
from ...network.serving.api import ServedApi
from ...network.serving.context import RequestContext
from ...protocol.acls import AclOperation, AclResourceType
from ...protocol.api_keys import ApiKey
from ...protocol.error_codes import ErrorCode
from ...protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from ..broker.view import BrokerView
from .authorized_operations import cluster_operations

BROKERS, CONTROLLERS = 1, 2
"""The endpoint types of KIP-919. In ZooKeeper mode only brokers have endpoints."""
DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, "no authorized operations of the cluster; everything else is shown"
)


def handle(view: BrokerView, context: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    _check_endpoint_type(request.endpoint_type)
    image = view.cache.image
    reachable = endpoints_at(image.brokers, context.listener)
    return DescribeClusterResponse(
        cluster_id=view.cluster_id,
        # A controller that is not in the list is not named, because clients would search for it.
        controller_id=image.controller_id if image.controller_id in reachable else -1,
        brokers=[
            DescribeClusterBroker(broker_id=broker_id, host=at.host, port=at.port, rack=image.brokers[broker_id].rack)
            for broker_id, at in reachable.items()
        ],
        cluster_authorized_operations=cluster_operations(
            context, DESCRIBE_CLUSTER, asked=request.include_cluster_authorized_operations
        ),
    )


def _check_endpoint_type(kind: int) -> None:
    """Raise Refusal for an endpoint type that this node does not serve. Version 0 lacks the field,
    and its default is always served.
    """
    if kind == CONTROLLERS:
        raise Refusal(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if kind != BROKERS:
        raise Refusal(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {kind}")


API = ServedApi(
    key=ApiKey.DESCRIBE_CLUSTER,
    handler=handle,
    permissions=(DESCRIBE_CLUSTER,),
)

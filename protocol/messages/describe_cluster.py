"""DescribeCluster (60) returns the brokers of the cluster and its id."""

from typing import Annotated

from ..acls import NO_OPERATIONS
from ..schema import Int8, Int16, Int32, WireStruct, message, since


@message(60, "request", versions=(0, 1), flexible=0)
class DescribeClusterRequest(WireStruct):
    include_cluster_authorized_operations: bool = False
    endpoint_type: Annotated[Int8, since(1)] = 1


class DescribeClusterBroker(WireStruct):
    broker_id: Int32 = 0
    host: str = ""
    port: Int32 = 0
    rack: str | None = None


@message(60, "response", versions=(0, 1), flexible=0)
class DescribeClusterResponse(WireStruct):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: str | None = None
    endpoint_type: Annotated[Int8, since(1)] = 1
    cluster_id: str = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = NO_OPERATIONS

"""DescribeCluster: brokers, controller, cluster id, and who asks for the endpoints of
controllers.
"""

import pytest

from minicontroller.cluster.image import Image
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.describe_cluster import DescribeClusterRequest
from tests.handlers.asking import CLUSTER_ID, Client, broker, image, node_with

CLUSTER = image([broker(3), broker(1, rack="r1"), broker(2, "INTERNAL")], controller_id=3)


@pytest.mark.parametrize("version", [0, 1])
async def test_the_brokers_of_a_listener(version: int) -> None:
    """K4-X1a: those that the client can reach, by id, with the controller, and no operations unless
    asked.
    """
    answer = Client(node_with(CLUSTER)).ask_at_once(DescribeClusterRequest(), version)
    assert (answer.error_code, answer.error_message, answer.endpoint_type) == (0, None, 1)
    assert (answer.cluster_id, answer.controller_id) == (CLUSTER_ID, 3)
    assert [(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers] == [
        (1, "plaintext.host", 9100, "r1"),
        (3, "plaintext.host", 9300, None),
    ]
    assert answer.cluster_authorized_operations == -(2**31)


@pytest.mark.parametrize("version", [0, 1])
async def test_operations(version: int) -> None:
    """If asked for, the answer has all seven operations on a cluster."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    answer = Client(node_with(CLUSTER)).ask_at_once(request, version)
    told = [bit for bit in range(31) if answer.cluster_authorized_operations >> bit & 1]
    assert told == [5, 7, 8, 9, 10, 11, 12]


@pytest.mark.parametrize("version", [0, 1])
async def test_a_controller_out_of_reach(version: int) -> None:
    """A controller that is unknown, or not among the brokers, is -1, and the answer still has the
    cluster id.
    """
    for seen in (Image(), image([broker(1)], controller_id=2)):
        answer = Client(node_with(seen)).ask_at_once(DescribeClusterRequest(), version)
        assert (answer.controller_id, answer.cluster_id) == (-1, CLUSTER_ID)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (-1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
async def test_endpoint_types(kind: int, code: ErrorCode) -> None:
    """A node is a broker: controllers' endpoints are somewhere else, and other types nowhere."""
    answer = Client(node_with(CLUSTER)).ask_at_once(DescribeClusterRequest(endpoint_type=kind), 1)
    assert (answer.error_code, answer.brokers, answer.controller_id) == (code, [], -1)
    assert ("CONTROLLER" if kind == 2 else str(kind)) in answer.error_message

"""Puts the addresses of the gateway in the place of those of brokers, by node id only: in Metadata,
DescribeCluster and FindCoordinator.
"""

from collections.abc import Iterable
from typing import Any

from ..client.configuration import Address
from ..protocol.error_codes import ErrorCode
from ..protocol.messages.describe_cluster import DescribeClusterResponse
from ..protocol.messages.find_coordinator import FindCoordinatorResponse
from ..protocol.messages.metadata import MetadataResponse
from .cluster import UpstreamCluster

NO_ADDRESS = Address("", -1)
"""How Kafka writes that there is no broker."""
NOBODY = -1
BROKERS = 1
"""The endpoint type of DescribeCluster that names brokers; another one names controllers."""


async def rewrite_metadata(brokers: UpstreamCluster, response: MetadataResponse) -> None:
    await brokers.learn({each.node_id: Address(each.host, each.port) for each in response.brokers})
    response.brokers = [each for each in response.brokers if _readdressed(each, brokers.advertised(each.node_id))]


async def rewrite_cluster(brokers: UpstreamCluster, response: DescribeClusterResponse) -> None:
    if response.endpoint_type != BROKERS:
        response.brokers = []  # controllers have no listener at the gateway
        return
    await brokers.learn({each.broker_id: Address(each.host, each.port) for each in response.brokers})
    response.brokers = [each for each in response.brokers if _readdressed(each, brokers.advertised(each.broker_id))]


async def rewrite_coordinators(brokers: UpstreamCluster, response: FindCoordinatorResponse) -> None:
    """A coordinator may be a broker that no Metadata has named yet: its address is learned here."""
    found: Iterable[Any] = (response, *response.coordinators)
    named = [each for each in found if each.host and each.node_id >= 0]
    await brokers.learn({each.node_id: Address(each.host, each.port) for each in named})
    for each in named:
        if not _readdressed(each, brokers.advertised(each.node_id)):
            each.error_code, each.node_id = ErrorCode.COORDINATOR_NOT_AVAILABLE, NOBODY


def _readdressed(row: Any, address: Address | None) -> bool:
    """Put the gateway's address into a row. Return whether there is one: a broker without is not
    told of, and cannot be reached.
    """
    row.host, row.port = (address or NO_ADDRESS).host, (address or NO_ADDRESS).port
    return address is not None

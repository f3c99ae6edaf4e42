"""Whatever a cluster answers or does not, at any moment, the gateway waits and says why: what it
asks itself ends in an answer, or in the error that it waits for.
"""

import math
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import product

import pytest
import trio

from minicontroller.client.configuration import Address, ClientConfig
from minicontroller.client.network import Network
from minicontroller.gateway.cluster import UpstreamCluster
from minicontroller.gateway.identity.controllers import Controllers, envelope
from minicontroller.gateway.judging.cluster_reader import NotKnownError
from minicontroller.gateway.judging.mirror import Mirror
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.frame import FrameBuffer
from minicontroller.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from minicontroller.protocol.messages.envelope import EnvelopeResponse
from minicontroller.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingReassignment,
    TopicReassignment,
)
from minicontroller.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from tests.client.fake_node import MAX_BYTES, FakeNode, metadata, with_nodes

SECONDS = 0.05
"""How long the gateway waits for an answer here."""
Ask = Callable[[Network], Awaitable[bool]]
Fault = Callable[[bytes], bytes | None]
"""What becomes of an answer: other bytes instead, none to close, and no bytes for silence."""
RANDOM = random.Random(9)


class Cluster(FakeNode):
    """A broker, also a controller, of a cluster with a topic that is being moved. One of its
    answers, by its number, is met by a fault.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                ApiKey.METADATA: self._metadata,
                ApiKey.DESCRIBE_CONFIGS: self._configs,
                ApiKey.LIST_PARTITION_REASSIGNMENTS: self._moves,
                ApiKey.ENVELOPE: lambda _: EnvelopeResponse(response_data=b"done"),
            }
        )
        self.answered = 0
        self.faulty_from: float = math.inf
        self.fault: Fault = bytes

    def _metadata(self, _request: object) -> MetadataResponse:
        partition = MetadataResponsePartition(leader_id=1, replica_nodes=[1], isr_nodes=[1])
        return metadata(1, {1: self}, topics=[MetadataResponseTopic(name="t", partitions=[partition])])

    def _configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        row = DescribeConfigsResourceResult(name="retention.ms", value="5", config_source=1)
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name, configs=[row])
                for each in request.resources
            ]
        )

    def _moves(self, _request: object) -> ListPartitionReassignmentsResponse:
        row = OngoingReassignment(replicas=[1], adding_replicas=[1])
        return ListPartitionReassignmentsResponse(topics=[TopicReassignment(name="t", partitions=[row])])

    async def _serve(self, stream: trio.abc.Stream) -> None:
        frames = FrameBuffer(MAX_BYTES)
        while data := await stream.receive_some():
            frames.feed(bytes(data))
            while (frame := frames.next_frame()) is not None:
                header, message, _ = KAFKA.decode_request(frame)
                answer = self.answers[ApiKey(header.api_key)](message)
                assert isinstance(answer, WireStruct)
                sent: bytes | None = KAFKA.encode_response(
                    header.api_key, header.api_version, header.correlation_id, answer
                )
                assert sent is not None
                if self.answered >= self.faulty_from:
                    sent = self.fault(sent)
                self.answered += 1
                if sent is None:
                    return
                await stream.send_all(sent)


def _damaged(frame: bytes) -> bytes:
    """Change some bytes behind the correlation id."""
    data = bytearray(frame)
    for _ in range(RANDOM.randint(1, 4)):
        data[RANDOM.randrange(8, len(data))] = RANDOM.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
    return bytes(data)


FAULTS: tuple[Fault, ...] = (
    lambda _: None,
    lambda _: b"",
    lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    lambda _: b"\x15\x03\x03\x00\x02\x02\x50",  # an alert of TLS
    lambda frame: (4).to_bytes(4) + frame[4:8],
    lambda frame: (len(frame) // 2).to_bytes(4) + frame[4 : 4 + len(frame) // 2],
    lambda frame: frame[:8] + bytes(len(frame) - 8),
    lambda frame: frame[:8] + b"\xff" * (len(frame) - 8),
    lambda frame: frame[:4] + bytes(4) + frame[8:],  # the answer to another request
    *[_damaged] * 8,
)


async def _nowhere(_: int) -> Address | None:
    await trio.lowlevel.checkpoint()
    return None


async def _asked(cluster: Cluster, ask: Ask, seconds: float = SECONDS) -> bool:
    """Ask a cluster what a gateway asks, on connections of its own; return whether it told."""
    is_known = False
    async with trio.open_nursery() as nursery:
        config = ClientConfig((cluster.address,), request_timeout_seconds=seconds)
        with suppress(NotKnownError):
            is_known = await ask(Network(nursery, config))
        nursery.cancel_scope.cancel()
    return is_known


async def _read(network: Network) -> bool:
    await Mirror(network, NodeConfig({}), is_busy=lambda _: False).read()
    return True


async def _look(network: Network) -> bool:
    return await UpstreamCluster(network, _nowhere)._look()


async def _forward(network: Network) -> bool:
    request = envelope(b"request", "User:alice", "127.0.0.1")
    return (await Controllers(network).ask(request, 2 * SECONDS)).response == b"done"


@pytest.mark.parametrize("ask", [_read, _look, _forward])
async def test_no_fault_of_the_cluster_is_a_defect(ask: Ask) -> None:
    """A cluster that goes wrong in any way, from any of its answers on, leaves the gateway without
    what it asked for, and nothing else is raised; it is told everything once the cluster is well.
    """
    cluster = Cluster()

    async def faults() -> None:
        await _asked(cluster, ask)
        for number, fault in product(range(cluster.answered), FAULTS):
            cluster.answered, cluster.faulty_from, cluster.fault = 0, number, fault
            await _asked(cluster, ask)
        cluster.faulty_from = math.inf
        assert await _asked(cluster, ask, 20.0)

    await with_nodes([cluster], faults)


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "x" * 300, "a\0b", "\x7f", "300.1.1.1"])
async def test_an_address_that_is_none(host: str) -> None:
    """Bootstrap servers whose names do not resolve are waited for."""
    async with trio.open_nursery() as nursery:
        cluster = UpstreamCluster(Network(nursery, ClientConfig((Address(host, 9092),))), _nowhere)
        assert not await cluster._look()
        assert cluster.failure

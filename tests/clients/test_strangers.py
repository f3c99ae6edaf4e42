"""Clients at a listener that nodes share: requests that only nodes may send are refused and change
nothing (K590-6).
"""

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestHeader, RequestOrigin
from minicontroller.protocol.messages.alter_partition import AlterPartitionRequest
from minicontroller.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from minicontroller.protocol.messages.stop_replica import StopReplicaRequest
from minicontroller.protocol.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from tests.support.cluster import Cluster, controller_id, unlike_kafka
from tests.support.wire import Wire

pytestmark = unlike_kafka("a Kafka without ACLs believes whoever connects")

LARGEST = 2**31 - 1
FAR_OUT = UpdateMetadataTopicState(
    topic_name="far-out", partition_states=[UpdateMetadataPartitionState(partition_index=20_000_000, leader=1)]
)
CLAIMS: dict[ApiKey, tuple[int, WireStruct]] = {
    ApiKey.UPDATE_METADATA: (
        8,
        UpdateMetadataRequest(controller_id=1, controller_epoch=LARGEST, topic_states=[FAR_OUT]),
    ),
    ApiKey.LEADER_AND_ISR: (7, LeaderAndIsrRequest(controller_id=1, controller_epoch=LARGEST)),
    ApiKey.STOP_REPLICA: (4, StopReplicaRequest(controller_id=1, controller_epoch=LARGEST)),
    ApiKey.CONTROLLED_SHUTDOWN: (3, ControlledShutdownRequest(broker_id=1, broker_epoch=-1)),
    ApiKey.ALTER_PARTITION: (3, AlterPartitionRequest(broker_id=1, broker_epoch=-1)),
}


class Stranger:
    """A client that sends requests of nodes, in our own codec."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)

    def ask(self, key: ApiKey, version: int, message: WireStruct, **tags: Any) -> Any:
        self._socket.sendall(KAFKA.encode_request(RequestHeader(int(key), version, 1, "stranger", **tags), message))
        size = int.from_bytes(self._exactly(4))
        return KAFKA.decode_response(key, version, self._exactly(size))[1]

    def close(self) -> None:
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the connection was closed"
            data += part
        return data


@pytest.fixture(params=[1, 2, 3], ids=lambda node: f"node-{node}")
def stranger(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Stranger]:
    """At each node in turn."""
    connection = Stranger(cluster.addresses[request.param])
    yield connection
    connection.close()


@pytest.mark.parametrize("key", CLAIMS, ids=lambda key: key.name.lower())
def test_an_unproven_client_is_no_controller_and_no_broker(
    cluster: Cluster, stranger: Stranger, topic: str, key: ApiKey
) -> None:
    """A client that claims the largest epoch deposes nobody, and the next topic is created by the
    same controller.
    """
    before = controller_id(cluster)
    version, claim = CLAIMS[key]
    assert stranger.ask(key, version, claim).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    for address in cluster.addresses.values():
        with Wire(address) as wire:
            assert wire.ask("Metadata", 1, {"topics": []})["controller_id"] == before
    made = stranger.ask(ApiKey.CREATE_TOPICS, 7, creation(topic))
    assert [row.error_code for row in made.topics] == [ErrorCode.NONE]


def test_he_speaks_for_nobody(stranger: Stranger, topic: str) -> None:
    """A creation in the name of an administrator is refused, whichever node is asked, and makes
    nothing.
    """
    answer = stranger.ask(ApiKey.CREATE_TOPICS, 7, creation(topic), origin=RequestOrigin("User:admin", "10.0.0.1"))
    assert [row.error_code for row in answer.topics] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    made = stranger.ask(ApiKey.CREATE_TOPICS, 7, creation(topic))
    assert [row.error_code for row in made.topics] == [ErrorCode.NONE]


def creation(topic: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=topic, num_partitions=1, replication_factor=1)], timeout_ms=10_000
    )

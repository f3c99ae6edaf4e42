"""A client without permissions is refused by each API of records, groups and transactions, before
it learns what there is.
"""

import socket
import struct
from collections.abc import Iterator

import msgspec
import pytest

from minicontroller.protocol.header import RequestHeader
from minicontroller.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from minicontroller.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from minicontroller.protocol.messages.end_txn import EndTxnRequest
from minicontroller.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minicontroller.protocol.messages.heartbeat import HeartbeatRequest
from minicontroller.protocol.messages.join_group import JoinGroupRequest
from minicontroller.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from minicontroller.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from minicontroller.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from minicontroller.protocol.messages.sync_group import SyncGroupRequest
from minicontroller.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from minicontroller.protocol.registry import KAFKA
from minicontroller.protocol.schema import WireStruct
from tests.records.made import made
from tests.support.cluster import MiniCluster, running_cluster

TOPIC, GROUP, TRANSACTIONAL_ID = 29, 30, 53
"""The codes of what is denied."""
REQUESTS: list[tuple[WireStruct, int, int]] = [
    (ProduceRequest(acks=1, topic_data=[TopicProduceData("t", [PartitionProduceData(0, made())])]), 9, TOPIC),
    (FetchRequest(topics=[FetchTopic(topic="t", partitions=[FetchPartition()])]), 12, TOPIC),
    (
        OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic("t", [OffsetForLeaderPartition()])]),
        4,
        TOPIC,
    ),
    (JoinGroupRequest(group_id="g", protocol_type="consumer"), 9, GROUP),
    (SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"), 5, GROUP),
    (HeartbeatRequest(group_id="g", member_id="m"), 4, GROUP),
    (OffsetCommitRequest("g", topics=[OffsetCommitTopic("t", [OffsetCommitPartition()])]), 8, GROUP),
    (
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x", v3_and_below_topics=[AddPartitionsToTxnTopic("t", [0])]
        ),
        3,
        TRANSACTIONAL_ID,
    ),
    (AddOffsetsToTxnRequest("x", group_id="g"), 3, TRANSACTIONAL_ID),
    (EndTxnRequest("x"), 3, TRANSACTIONAL_ID),
    (
        TxnOffsetCommitRequest(
            "x", "g", topics=[TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition()])]
        ),
        3,
        TRANSACTIONAL_ID,
    ),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    settings = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}
    with running_cluster(brokers=1, settings=settings, options=["--records"]) as cluster:
        yield cluster


@pytest.mark.parametrize(("request_", "version", "code"), REQUESTS, ids=lambda each: type(each).__name__)
def test_is_refused(cluster: MiniCluster, request_: WireStruct, version: int, code: int) -> None:
    """Every code of the response is the one of the permission that is missing."""
    codes = codes_in(ask(cluster.bootstrap, request_, version))
    assert codes and set(codes) <= {0, code}
    assert code in codes


def ask(bootstrap: str, request: WireStruct, version: int) -> WireStruct:
    (key,) = (key for key, api in KAFKA.items() if api.request is type(request))
    host, _, port = bootstrap.partition(":")
    with socket.create_connection((host, int(port)), 10) as connection, connection.makefile("rb") as answers:
        connection.sendall(KAFKA.encode_request(RequestHeader(key, version, 1, "me"), request))
        (size,) = struct.unpack(">i", answers.read(4))
        _, response = KAFKA.decode_response(key, version, answers.read(size))
    return response


def codes_in(value: object) -> list[int]:
    """The error codes of a response, at any depth."""
    if isinstance(value, list):
        return [code for each in value for code in codes_in(each)]
    if not isinstance(value, msgspec.Struct):
        return []
    own = [getattr(value, name) for name in value.__struct_fields__ if name.endswith("error_code")]
    return own + [code for name in value.__struct_fields__ for code in codes_in(getattr(value, name))]

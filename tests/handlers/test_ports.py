"""Handlers show what a node's logs and its coordinator answer, whatever these keep."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from minicontroller.cluster.entities import Topic
from minicontroller.cluster.groups import CommittedOffset
from minicontroller.controller.broker.coordinator import CommittedOffsets, CoordinatedGroup, Coordinator
from minicontroller.controller.broker.data import NodeData
from minicontroller.controller.broker.logs import FoundOffset, LogBounds, Logs
from minicontroller.controller.node.node import Node
from minicontroller.process.steps import Steps
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from minicontroller.protocol.messages.describe_groups import DescribedGroupMember, DescribeGroupsRequest
from minicontroller.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from minicontroller.protocol.messages.describe_producers import (
    ActiveProducer,
    DescribeProducersRequest,
    DescribeProducersTopic,
)
from minicontroller.protocol.messages.describe_transactions import DescribedTransaction, DescribeTransactionsRequest
from minicontroller.protocol.messages.leave_group import LeaveGroupRequest, LeavingMember
from minicontroller.protocol.messages.list_groups import ListGroupsRequest
from minicontroller.protocol.messages.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from minicontroller.protocol.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
)
from minicontroller.protocol.messages.offset_fetch import OffsetFetchGroup, OffsetFetchRequest
from minicontroller.protocol.messages.write_txn_markers import MarkerTopic, TransactionMarker, WriteTxnMarkersRequest
from tests.handlers.asking import Client, broker, image, led, node_with, topic
from tests.handlers.ruling import ruling, wanted
from tests.support.specs import APIS

TIME, MEMBER, STABLE = 1_000, "m-1", "Stable"
SEEN = image([broker(1)], [topic(name, led(1)) for name in ("t", "__consumer_offsets", "__transaction_state")])


class TenRecords(Logs):
    """Each log has ten records of ten bytes, the oldest of which can be deleted."""

    first = 0

    def log_of(self, _topic: Topic, _index: int) -> LogBounds:
        return LogBounds(start=self.first, high_watermark=10, end=8, size=10 * (10 - self.first))

    def find(self, _topic: Topic, _index: int, timestamp: int, *, committed: bool = False) -> Steps[FoundOffset | None]:
        yield
        assert not committed
        ends = {EARLIEST_TIMESTAMP: FoundOffset(self.first, 1), LATEST_TIMESTAMP: FoundOffset(10, 3)}
        return ends.get(timestamp, FoundOffset(5, 2, TIME) if timestamp == TIME else None)

    def delete_records(self, _topic: Topic, _index: int, offset: int) -> int:
        self.first = offset
        self.revision += 1
        return offset

    def producers(self, _topic: Topic, _index: int) -> Sequence[ActiveProducer]:
        return [ActiveProducer(producer_id=7, last_sequence=9)]

    def write_marker(self, topic: Topic, index: int, marker: TransactionMarker) -> ErrorCode:
        self.delete_records(topic, index, marker.producer_id)
        return ErrorCode.NONE


class OneOfEach(Coordinator):
    """There is a group with a member, and a transaction."""

    def groups(self) -> Iterator[CoordinatedGroup | None]:
        yield None
        yield self.group("g")

    def group(self, group_id: str) -> CoordinatedGroup | None:
        member = DescribedGroupMember(member_id=MEMBER)
        return CoordinatedGroup("g", STABLE, "consumer", "range", [member]) if group_id == "g" else None

    def offsets(self, _group_id: str) -> CommittedOffsets:
        return CommittedOffsets({"t": {0: CommittedOffset(4)}}, 100)

    def remove_member(self, _group_id: str, member_id: str, _instance_id: str | None) -> ErrorCode:
        return ErrorCode.NONE if member_id == MEMBER else ErrorCode.UNKNOWN_MEMBER_ID

    def transactions(self, _request: ListTransactionsRequest) -> Sequence[ListedTransaction]:
        return [ListedTransaction(transactional_id="x", producer_id=7, transaction_state="Ongoing")]

    def transaction(self, transactional_id: str) -> DescribedTransaction | None:
        return DescribedTransaction(transactional_id="x", producer_id=7) if transactional_id == "x" else None


def node() -> Node:
    """Return a node that leads each partition of its cluster, with these logs and coordinator."""
    made = node_with(SEEN)
    made.data = NodeData(TenRecords(made.config), OneOfEach(1, made.cache, made.producer_ids))
    return made


def offsets(*timestamps: int) -> ListOffsetsRequest:
    rows = [ListOffsetsPartition(partition_index=0, timestamp=each) for each in timestamps]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=rows)])


async def found(client: Client, timestamp: int) -> tuple[int, int, int]:
    ((row,),) = ((each.partitions for each in (await client.ask(offsets(timestamp), 9)).topics),)
    return row[0].offset, row[0].leader_epoch, row[0].timestamp


async def replica(client: Client) -> tuple[int, int]:
    (directory,) = (await client.ask(DescribeLogDirsRequest(topics=None), 4)).results
    row = next(each.partitions[0] for each in directory.topics if each.name == "t")
    return row.partition_size, row.offset_lag


async def test_logs_with_records() -> None:
    """Offsets, times, sizes and producers are those of the logs, also once a log has changed that
    was described before.
    """
    client = Client(node(), handlers=APIS)
    assert [await found(client, each) for each in (LATEST_TIMESTAMP, TIME, 1)] == [
        (10, 3, -1),
        (5, 2, TIME),
        (-1, -1, -1),
    ]
    assert (await found(client, EARLIEST_TIMESTAMP), await replica(client)) == ((0, 1, -1), (100, 2))
    topics = [DescribeProducersTopic(name="t", partition_indexes=[0])]
    described = (await client.ask(DescribeProducersRequest(topics=topics), 0)).topics[0].partitions[0]
    assert [each.producer_id for each in described.active_producers] == [7]
    marker = TransactionMarker(producer_id=3, topics=[MarkerTopic(name="t", partition_indexes=[0])])
    written = await client.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
    assert written.markers[0].topics[0].partitions[0].error_code == 0
    assert (await found(client, EARLIEST_TIMESTAMP), await replica(client)) == ((3, 1, -1), (70, 2))


@pytest.mark.parametrize(("offset", "answered"), [(10, (0, 10)), (0, (0, 0)), (11, (1, -1)), (-2, (1, -1))])
async def test_records_are_deleted_up_to_the_high_watermark(
    offset: int, answered: tuple[int, int], autojump_clock: object
) -> None:
    """The leader deletes what the controller allows, and answers its log's low watermark."""
    async with ruling() as cluster:
        await cluster.make(wanted("t", placed={0: [1]}))
        cluster.node.data = NodeData(TenRecords(cluster.node.config), cluster.node.data.coordinator)
        partitions = [DeleteRecordsPartition(partition_index=0, offset=offset)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=partitions)], timeout_ms=1000)
        row = (await cluster.ask(request, 2)).topics[0].partitions[0]
        assert (row.error_code, row.low_watermark) == answered


async def test_a_group_with_a_member() -> None:
    """The member, the state and the offsets are the coordinator's; filters compare with its
    state.
    """
    client = Client(node(), handlers=APIS)
    for states, count in (([], 1), (["stable"], 1), (["Empty"], 0)):
        listed = (await client.ask(ListGroupsRequest(states_filter=states), 5)).groups
        assert [(each.group_id, each.group_state, each.protocol_type) for each in listed] == [
            ("g", STABLE, "consumer")
        ] * count
    rows = (await client.ask(DescribeGroupsRequest(groups=["g", "h"]), 5)).groups
    assert [(row.group_state, row.protocol_data, len(row.members)) for row in rows] == [
        (STABLE, "range", 1),
        ("Dead", "", 0),
    ]
    left = LeaveGroupRequest(group_id="g", members=[LeavingMember(member_id=each) for each in (MEMBER, "m-2")])
    codes = [row.error_code for row in (await client.ask(left, 5)).members]
    assert codes == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    wants = OffsetFetchRequest(groups=[OffsetFetchGroup(group_id="g", topics=None)])
    assert (await client.ask(wants, 9)).groups[0].topics[0].partitions[0].committed_offset == 4


async def test_a_transaction() -> None:
    """Transactions are listed and described as the coordinator has them."""
    client = Client(node(), handlers=APIS)
    listed = (await client.ask(ListTransactionsRequest(), 1)).transaction_states
    assert [each.transactional_id for each in listed] == ["x"]
    described = (await client.ask(DescribeTransactionsRequest(transactional_ids=["x", "y"]), 0)).transaction_states
    assert [(row.producer_id, row.error_code) for row in described] == [
        (7, 0),
        (0, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
    ]


async def test_a_coordinator_of_nothing() -> None:
    """`Coordinator` itself has no groups, members, offsets or transactions."""
    made = node_with(SEEN)
    made.data = NodeData(made.data.logs, Coordinator(1, made.cache, made.producer_ids))
    client = Client(made, handlers=APIS)
    answers: list[Any] = [
        (await client.ask(ListGroupsRequest(), 5)).groups,
        (await client.ask(ListTransactionsRequest(), 1)).transaction_states,
        (await client.ask(OffsetFetchRequest(groups=[OffsetFetchGroup(group_id="g", topics=None)]), 9))
        .groups[0]
        .topics,
    ]
    assert answers == [[], [], []]
    assert (await client.ask(DescribeGroupsRequest(groups=["g"]), 5)).groups[0].group_state == "Dead"

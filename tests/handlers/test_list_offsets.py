"""ListOffsets: the ends of empty logs, by who leads them and in which leader epoch."""

from typing import Any

import pytest

from minicontroller.protocol.acls import AclOperation, AclResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.list_offsets import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.handlers.asking import Client, broker, image, led, node_with, see, topic
from tests.handlers.test_authorization import ALICE, allowing
from tests.support.specs import APIS

CONSUMER, DEBUGGING = -1, -2
EPOCH = 3
CLUSTER = image([broker(1), broker(2)], [topic("t", led(1, 2), led(2, 1), led(2)), topic("other", led(1))])
NONE, FENCED, UNKNOWN_EPOCH = ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def asking(*rows: ListOffsetsPartition, replica_id: int = CONSUMER, name: str = "t") -> ListOffsetsRequest:
    return ListOffsetsRequest(replica_id=replica_id, topics=[ListOffsetsTopic(name=name, partitions=list(rows))])


def row(index: int, timestamp: int = LATEST_TIMESTAMP, **more: Any) -> ListOffsetsPartition:
    return ListOffsetsPartition(partition_index=index, timestamp=timestamp, **more)


async def codes(request: ListOffsetsRequest, version: int = 9, **how: Any) -> list[int]:
    answer = await Client(node_with(CLUSTER), handlers=APIS, **how).ask(request, version)
    return [row.error_code for topic in answer.topics for row in topic.partitions]


@pytest.mark.parametrize("version", range(1, 10))
async def test_both_ends_of_an_empty_log_are_0(version: int) -> None:
    """The first and the next offset of a log without records are 0, in the epoch of its leader."""
    request = asking(row(0, EARLIEST_TIMESTAMP))
    answer = await Client(node_with(CLUSTER), handlers=APIS).ask(request, version)
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.offset, found.timestamp) == (NONE, 0, -1)
    assert found.leader_epoch == (EPOCH if version >= 4 else -1)


@pytest.mark.parametrize(
    ("epoch", "code"), [(-1, NONE), (EPOCH - 1, FENCED), (EPOCH, NONE), (EPOCH + 1, UNKNOWN_EPOCH)]
)
async def test_the_leader_epoch_is_checked(epoch: int, code: ErrorCode) -> None:
    """A client that names another leader epoch than the present one learns so (KIP-320)."""
    assert await codes(asking(row(0, current_leader_epoch=epoch))) == [code]


async def test_the_leader_answers() -> None:
    """A replica that does not lead answers for debugging only, and a node without one never."""
    rows = (row(0), row(1), row(2))
    assert await codes(asking(*rows)) == [NONE, NOT_LEADER, NOT_LEADER]
    assert await codes(asking(*rows, replica_id=DEBUGGING)) == [NONE, NONE, NOT_LEADER]


async def test_who_may_not_describe_a_topic() -> None:
    """Without Describe on a topic its rows are refused, and stand after those of other topics."""
    both = [ListOffsetsTopic(name=name, partitions=[row(0)]) for name in ("other", "t")]
    request = ListOffsetsRequest(replica_id=CONSUMER, topics=both)
    rights = allowing((AclResourceType.TOPIC, "t", AclOperation.DESCRIBE))
    client = Client(node_with(CLUSTER), handlers=APIS, principal=ALICE, authorization=rights)
    answer = await client.ask(request, 9)
    assert [(each.name, each.partitions[0].error_code) for each in answer.topics] == [
        ("t", NONE),
        ("other", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]


async def test_an_answer_that_is_kept_is_that_of_the_topic_and_of_the_question() -> None:
    """A client that asks again gets the present leader and epoch, and what it asks for now."""
    node = node_with(CLUSTER)
    client = Client(node, handlers=APIS)

    async def answered(request: ListOffsetsRequest) -> list[tuple[int, int]]:
        answer = await client.ask(request, 9)
        return [(row.error_code, row.leader_epoch) for each in answer.topics for row in each.partitions]

    both, one = asking(row(0), row(1)), asking(row(0))
    for _ in range(2):
        assert await answered(both) == [(NONE, EPOCH), (NOT_LEADER, -1)]
        assert await answered(one) == [(NONE, EPOCH)]
        assert await answered(asking(row(0), row(1), replica_id=DEBUGGING)) == [(NONE, EPOCH)] * 2
        assert await answered(asking(row(0, current_leader_epoch=EPOCH - 1))) == [(FENCED, -1)]
    moved = topic("t", led(1, 2, leader=2), led(2, 1, leader=1, leader_epoch=EPOCH + 1), led(2))
    see(node, image([broker(1), broker(2)], [moved]))
    assert await answered(both) == [(NOT_LEADER, -1), (NONE, EPOCH + 1)]
    see(node, image([broker(1), broker(2)]))
    assert await answered(one) == [(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)]


async def test_a_partition_named_twice_is_refused_however_often_it_was_answered() -> None:
    """INVALID_REQUEST for a partition that stands twice, in one row of a topic or in two."""
    client = Client(node_with(CLUSTER), handlers=APIS)
    twice = ListOffsetsTopic(name="t", partitions=[row(0)])
    for request in (asking(row(0)), asking(row(0), row(0)), ListOffsetsRequest(topics=[twice, twice]), asking(row(0))):
        answer = await client.ask(request, 9)
        found = [each.error_code for topic in answer.topics for each in topic.partitions]
        assert found == ([NONE] if len(found) == 1 else [ErrorCode.INVALID_REQUEST] * 2)

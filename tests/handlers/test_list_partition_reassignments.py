"""ListPartitionReassignments while no replicas are being moved, whatever is asked for."""

from collections.abc import AsyncIterator

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    RequestedTopic,
)
from tests.handlers.asking import Client
from tests.handlers.ruling import Ruling, ruling, wanted
from tests.support.specs import APIS


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> AsyncIterator[Ruling]:
    async with ruling() as cluster:
        await cluster.make(wanted("t", placed={0: [1, 2], 1: [2, 3]}))
        yield cluster


def listing(topic: str, *partitions: int) -> ListPartitionReassignmentsRequest:
    return ListPartitionReassignmentsRequest(topics=[RequestedTopic(name=topic, partition_indexes=list(partitions))])


@pytest.mark.parametrize(
    "request_",
    [
        ListPartitionReassignmentsRequest(),
        ListPartitionReassignmentsRequest(topics=[]),
        ListPartitionReassignmentsRequest(timeout_ms=-1),
        listing("t", 0, 1, 1),
        listing("t", 2, -1),
        listing("unknown", 0),
        listing("bad name!", 0),
    ],
    ids=["all topics", "no topics", "negative timeout", "known", "out of range", "unknown", "impossible name"],
)
async def test_no_reassignments(cluster: Ruling, request_: ListPartitionReassignmentsRequest) -> None:
    """The controller answers with an empty list and an empty text, without an error, also for
    topics and partitions that do not exist (K4-4b).
    """
    answer = await cluster.ask(request_, 0)
    assert (answer.error_code, answer.error_message, answer.topics, answer.throttle_time_ms) == (0, "", [], 0)


async def test_not_at_the_controller(cluster: Ruling) -> None:
    """A node that is not the controller and cannot forward refuses the request as a whole."""
    answer = await Client(cluster.nodes[2], handlers=APIS).ask(ListPartitionReassignmentsRequest(), 0)
    assert (answer.error_code, answer.topics) == (ErrorCode.NOT_CONTROLLER, [])

"""LeaderAndIsr at a node without logs: it agrees to be a replica, in the form of every version,
unless it is asked by the past.
"""

from typing import Any

import pytest

from minicontroller.controller.node.node import Node
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicState,
)
from tests.handlers.asking import BROKER_EPOCH, Client, told_node
from tests.support.specs import APIS

VERSIONS = range(8)
ID = b"\5" * 16


@pytest.fixture(name="node")
def node_fixture() -> Node:
    return told_node()


def telling(version: int, **how: Any) -> LeaderAndIsrRequest:
    """Build a request for partition 0 on nodes 1 and 2, and partition 1 on node 2 alone."""
    states = [LeaderAndIsrPartitionState(partition_index=i, replicas=on) for i, on in enumerate([[1, 2], [2]])]
    if version < 2:
        for state in states:
            state.topic_name = "t"
        return LeaderAndIsrRequest(ungrouped_partition_states=states, **how)
    topic = LeaderAndIsrTopicState(topic_name="t", topic_id=ID if version >= 5 else bytes(16), partition_states=states)
    return LeaderAndIsrRequest(topic_states=[topic], **how)


async def ask(node: Node, version: int, *, peer: bool = True, **how: Any) -> LeaderAndIsrResponse:
    client = Client(node, handlers=APIS, peer=peer)
    answer: LeaderAndIsrResponse = await client.ask(telling(version, **how), version)
    return answer


@pytest.mark.parametrize("version", VERSIONS)
async def test_it_agrees(node: Node, version: int) -> None:
    """Each partition is answered, by name until v4, by id from v5 on; where it is no replica it
    knows of no such partition.
    """
    answer = await ask(node, version, controller_epoch=5)
    assert answer.error_code == 0
    expected = [(0, 0), (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    if version >= 5:
        (topic,) = answer.topics
        assert topic.topic_id == ID
        assert [(row.partition_index, row.error_code) for row in topic.partition_errors] == expected
    else:
        assert [(row.partition_index, row.error_code) for row in answer.partition_errors] == expected
        assert {row.topic_name for row in answer.partition_errors} == {"t"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_controller_of_the_past(node: Node, version: int) -> None:
    """K590-2c: a controller with an older epoch than the node knows gets STALE_CONTROLLER_EPOCH and
    nothing else.
    """
    answer = await ask(node, version, controller_epoch=4)
    assert (answer.error_code, answer.topics, answer.partition_errors) == (ErrorCode.STALE_CONTROLLER_EPOCH, [], [])
    assert (await ask(node, version, controller_epoch=6)).error_code == 0


@pytest.mark.parametrize("version", range(2, 8))
async def test_another_life_of_the_node(node: Node, version: int) -> None:
    """A request with an older broker epoch is refused; -1 is not checked, and a newer one belongs
    to a registration just made.
    """
    for epoch, code in [
        (BROKER_EPOCH - 1, ErrorCode.STALE_BROKER_EPOCH),
        (BROKER_EPOCH, 0),
        (BROKER_EPOCH + 1, 0),
        (-1, 0),
    ]:
        assert (await ask(node, version, controller_epoch=5, broker_epoch=epoch)).error_code == code


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_is_no_node(node: Node, version: int) -> None:
    """Only nodes of the cluster may send LeaderAndIsr."""
    answer = await ask(node, version, peer=False, controller_epoch=5)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

"""StopReplica at a node without logs: it agrees to stop and to delete, in the form of every
version, unless it is asked by the past.
"""

from typing import Any

import pytest

from minicontroller.controller.node.node import Node
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from tests.handlers.asking import BROKER_EPOCH, Client, told_node
from tests.support.specs import APIS

VERSIONS = range(5)


@pytest.fixture(name="node")
def node_fixture() -> Node:
    return told_node()


def stopping(version: int, **how: Any) -> StopReplicaRequest:
    """Partitions 0 and 3 of a topic, and 1 of another one."""
    if version == 0:
        named = [("t", 0), ("t", 3), ("u", 1)]
        rows = [StopReplicaPartitionV0(topic_name=name, partition_index=index) for name, index in named]
        return StopReplicaRequest(ungrouped_partitions=rows, delete_partitions=True, **how)
    if version < 3:
        topics = [
            StopReplicaTopicV1(name="t", partition_indexes=[0, 3]),
            StopReplicaTopicV1(name="u", partition_indexes=[1]),
        ]
        return StopReplicaRequest(topics=topics, delete_partitions=True, **how)
    states = [
        StopReplicaTopicState(
            topic_name=name,
            partition_states=[
                StopReplicaPartitionState(partition_index=i, leader_epoch=-2, delete_partition=True) for i in indexes
            ],
        )
        for name, indexes in (("t", [0, 3]), ("u", [1]))
    ]
    return StopReplicaRequest(topic_states=states, **how)


async def ask(node: Node, version: int, *, peer: bool = True, **how: Any) -> StopReplicaResponse:
    client = Client(node, handlers=APIS, peer=peer)
    answer: StopReplicaResponse = await client.ask(stopping(version, **how), version)
    return answer


@pytest.mark.parametrize("version", VERSIONS)
async def test_it_agrees(node: Node, version: int) -> None:
    """Each partition that is named is answered without an error: what is not there is deleted
    already.
    """
    answer = await ask(node, version, controller_epoch=5)
    assert answer.error_code == 0
    assert [(row.topic_name, row.partition_index, row.error_code) for row in answer.partition_errors] == [
        ("t", 0, 0), ("t", 3, 0), ("u", 1, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_controller_of_the_past(node: Node, version: int) -> None:
    """K590-2c: a controller with an older epoch than the node knows gets STALE_CONTROLLER_EPOCH and
    nothing else.
    """
    answer = await ask(node, version, controller_epoch=4)
    assert (answer.error_code, answer.partition_errors) == (ErrorCode.STALE_CONTROLLER_EPOCH, [])


@pytest.mark.parametrize("version", range(1, 5))
async def test_another_life_of_the_node(node: Node, version: int) -> None:
    """A request with an older broker epoch is refused; -1 is not checked."""
    for epoch, code in [
        (BROKER_EPOCH - 1, ErrorCode.STALE_BROKER_EPOCH),
        (BROKER_EPOCH, 0),
        (BROKER_EPOCH + 1, 0),
        (-1, 0),
    ]:
        assert (await ask(node, version, controller_epoch=5, broker_epoch=epoch)).error_code == code


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_is_no_node(node: Node, version: int) -> None:
    """Only nodes of the cluster may send StopReplica."""
    assert (await ask(node, version, peer=False)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

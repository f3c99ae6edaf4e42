"""AlterPartition: what the leader of a partition may do to its ISR, in Kafka's order of checks, in
every version.
"""

from typing import Any

import pytest

from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.topics import decode_partition_state
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerState,
    PartitionData,
    TopicData,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.handlers.asking import Client, broker, image, node_with
from tests.handlers.ruling import PATIENT_MS, Ruling, ruling, wanted
from tests.support.specs import APIS

VERSIONS = range(4)
LAST = 3
RECOVERED, RECOVERING = 0, 1


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        await cluster.make(wanted("t", placed={0: [2, 1, 3], 1: [3, 2, 1]}))
        yield cluster


def data(version: int, isr: tuple[int, ...], partition: int = 0, **how: Any) -> PartitionData:
    how = {"leader_epoch": 0, "partition_epoch": 0, **how}
    if version >= 3:
        states = [BrokerState(broker_id=replica) for replica in isr]
        return PartitionData(partition_index=partition, new_isr_with_epochs=states, **how)
    return PartitionData(partition_index=partition, new_isr=list(isr), **how)


def altering(
    cluster: Ruling, version: int, *partitions: PartitionData, name: str = "t", **how: Any
) -> AlterPartitionRequest:
    """Build a request for one topic, from node 2 by default."""
    known = cluster.image.topics.get(name)
    topic = TopicData(partitions=list(partitions))
    if version >= 2:
        topic.topic_id = b"\7" * 16 if known is None else known.topic_id
    else:
        topic.topic_name = name
    how = {"broker_id": 2, "broker_epoch": cluster.nodes[2].broker_epoch, **how}
    return AlterPartitionRequest(topics=[topic], **how)


async def ask(cluster: Ruling, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
    answer: AlterPartitionResponse = await cluster.ask(request, version, peer=True)
    return answer


async def outcome(cluster: Ruling, version: int, wish: PartitionData, **how: Any) -> AlterPartitionResult:
    answer = await ask(cluster, altering(cluster, version, wish, **how), version)
    assert answer.error_code == 0
    ((row,),) = [topic.partitions for topic in answer.topics]
    return row


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_isr_shrinks_and_grows(cluster: Ruling, version: int) -> None:
    """The new ISR is written and sent to every node; the partition epoch rises by one, leader and
    leader epoch stay.
    """
    for epoch, isr in enumerate([(2, 1), (2,), (2, 3), (2, 1, 3)], 1):
        row = await outcome(cluster, version, data(version, isr, partition_epoch=epoch - 1))
        assert (row.error_code, row.leader_id, row.leader_epoch, row.isr, row.partition_epoch) == (
            0,
            2,
            0,
            list(isr),
            epoch,
        )
        for seen in (cluster.topic("t").partitions[0], cluster.node.cache.image.topics["t"].partitions[0]):
            assert (seen.isr, seen.partition_epoch, seen.leader_epoch) == (isr, epoch, 0)
        entry = await cluster.store.get(layout.partition_state_path("t", 0))
        assert entry is not None
        assert entry.stat.version == epoch
        assert decode_partition_state(seen, entry.data, epoch).isr == isr


@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing_new(cluster: Ruling, version: int) -> None:
    """A request for the present ISR succeeds and writes nothing, also with an older partition
    epoch, since an earlier answer may have been lost.
    """
    await outcome(cluster, version, data(version, (2, 1)))
    row = await outcome(cluster, version, data(version, (2, 1), partition_epoch=0))
    assert (row.error_code, row.isr, row.partition_epoch) == (0, [2, 1], 1)
    assert cluster.topic("t").partitions[0].partition_epoch == 1


@pytest.mark.parametrize("version", VERSIONS)
async def test_refused(cluster: Ruling, version: int) -> None:
    """Each fault has Kafka's code, of two the one that it finds first, and nothing is written."""
    await outcome(cluster, version, data(version, (2, 1)))
    unknown, newer = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_CONTROLLER
    for wish, code in [
        (data(version, (2,), partition=2, partition_epoch=1), unknown),
        (data(version, (2,), partition=-1, partition_epoch=1), unknown),
        (data(version, (2,), leader_epoch=1, partition_epoch=1), newer),
        (data(version, (2,), partition_epoch=2), newer),
        (data(version, (2,), leader_epoch=-1, partition_epoch=2), newer),
        (data(version, (2,), leader_epoch=-1, partition_epoch=1), ErrorCode.FENCED_LEADER_EPOCH),
        (data(version, (2, 1), leader_epoch=-1), ErrorCode.FENCED_LEADER_EPOCH),
        (data(version, (2,)), ErrorCode.INVALID_UPDATE_VERSION),
        (data(version, ()), ErrorCode.INVALID_UPDATE_VERSION),
        (data(version, (), partition_epoch=1), ErrorCode.INVALID_REQUEST),
        (data(version, (2, 9), partition_epoch=1), ErrorCode.INVALID_REQUEST),
        (data(version, (2, 1, 1), partition_epoch=1), ErrorCode.INVALID_REQUEST),
    ]:
        assert (await outcome(cluster, version, wish)).error_code == code
    assert cluster.topic("t").partitions[0].partition_epoch == 1


@pytest.mark.parametrize("version", range(1, 4))
async def test_recovery(cluster: Ruling, version: int) -> None:
    """RECOVERING with more than one in sync, or from RECOVERED, is INVALID_REQUEST (v1 on), and so
    is what is neither.
    """
    for isr, state in (((2, 1), RECOVERING), ((2,), RECOVERING), ((2,), 2), ((2,), -1)):
        row = await outcome(cluster, version, data(version, isr, leader_recovery_state=state))
        assert row.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_does_not_live_cannot_be_in_sync(cluster: Ruling, version: int) -> None:
    """A replica whose broker is going: INELIGIBLE_REPLICA, in v0 and v1 the code that they know;
    who leaves may.
    """
    cluster.controller.brokers.begin_shutdown(3)
    row = await outcome(cluster, version, data(version, (2, 3)))
    assert row.error_code == (ErrorCode.INELIGIBLE_REPLICA if version >= 2 else ErrorCode.OPERATION_NOT_ATTEMPTED)
    assert (await outcome(cluster, version, data(version, (2, 1)))).error_code == 0


@pytest.mark.parametrize("version", VERSIONS)
async def test_unknown_topics(cluster: Ruling, version: int) -> None:
    """An unknown name, an unknown id (v2 on) and a topic that is being deleted are each refused
    with their own code.
    """
    row = await outcome(cluster, version, data(version, (2,)), name="nobody")
    assert row.error_code == (ErrorCode.UNKNOWN_TOPIC_ID if version >= 2 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    cluster.deaf.update({2, 3})
    await cluster.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=PATIENT_MS), 5)
    row = await outcome(cluster, version, data(version, (2,)))
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_one_result_does_not_affect_another(cluster: Ruling) -> None:
    """Each partition has its own result, in the order of the request."""
    request = altering(cluster, LAST, data(LAST, (3, 2), partition=1), data(LAST, (2,), partition=7), data(LAST, (2,)))
    answer = await ask(cluster, request, LAST)
    assert [(row.partition_index, row.error_code) for row in answer.topics[0].partitions] == [
        (1, 0), (7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (0, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_asks(cluster: Ruling, version: int) -> None:
    """A broker that is not registered, or in another life, is STALE_BROKER_EPOCH; who is no node of
    the cluster may not ask at all.
    """
    epoch = cluster.nodes[2].broker_epoch
    strangers: list[dict[str, Any]] = [
        {"broker_id": 9},
        {"broker_epoch": epoch - 1},
        {"broker_epoch": epoch + 1},
        {"broker_epoch": -1},
    ]
    for who in strangers:
        answer = await ask(cluster, altering(cluster, version, data(version, (2,)), **who), version)
        assert (answer.error_code, answer.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    stranger = await cluster.ask(altering(cluster, version, data(version, (2,))), version)
    assert (stranger.error_code, stranger.topics) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    assert cluster.topic("t").partitions[0].partition_epoch == 0


@pytest.mark.parametrize("version", VERSIONS)
async def test_not_the_controller(version: int) -> None:
    """The request is never forwarded: the broker has to find the controller."""
    node = node_with(image([broker(1), broker(2)], controller_id=2))
    answer = await Client(node, handlers=APIS, peer=True).ask(AlterPartitionRequest(broker_id=1), version)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER

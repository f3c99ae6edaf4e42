"""ControlledShutdown: a broker's leaderships move before it stops; who may ask, and
in which life.
"""

from typing import Any

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from tests.handlers.asking import Client, broker, image, node_with
from tests.handlers.ruling import Ruling, creating, ruling, wanted
from tests.support.specs import APIS

VERSIONS = range(4)
LAST = 3


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        await cluster.make(wanted("t", placed={0: [2, 3], 1: [3, 2], 2: [1, 3]}), wanted("alone", placed={0: [2]}))
        yield cluster


async def shut_down(cluster: Ruling, broker_id: int, version: int = LAST, **how: Any) -> ControlledShutdownResponse:
    request = ControlledShutdownRequest(broker_id=broker_id, **how)
    answer: ControlledShutdownResponse = await cluster.ask(request, version, peer=True)
    return answer


@pytest.mark.parametrize("version", VERSIONS)
async def test_leaderships_move(cluster: Ruling, version: int) -> None:
    """Another replica in sync leads, the broker is in no ISR but where it is alone, and it stays in
    the metadata.
    """
    answer = await shut_down(cluster, 2, version)
    assert (answer.error_code, answer.remaining_partitions) == (0, [])
    seen = cluster.node.cache.image
    assert [(each.leader, each.isr) for each in seen.topics["t"].partitions] == [(3, (3,)), (3, (3,)), (1, (1, 3))]
    assert [each.leader_epoch for each in seen.topics["t"].partitions] == [1, 1, 0]
    assert [(each.leader, each.isr) for each in seen.topics["alone"].partitions] == [(2, (2,))]
    assert set(seen.brokers) == {1, 2, 3}


async def test_it_is_elected_no_more(cluster: Ruling) -> None:
    """A topic that is made meanwhile is led by another of its replicas; asking again changes
    nothing.
    """
    await shut_down(cluster, 2)
    before = cluster.topic("t")
    await cluster.ask(creating(wanted("new", placed={0: [2, 1]})), 7)
    assert [(each.leader, each.isr) for each in cluster.topic("new").partitions] == [(1, (1,))]
    assert (await shut_down(cluster, 2)).remaining_partitions == []
    assert cluster.topic("t") == before


async def test_what_remains(cluster: Ruling) -> None:
    """Partitions that no other replica can lead are listed in the answer, so that the broker can
    ask again.
    """
    await shut_down(cluster, 3)
    answer = await shut_down(cluster, 2)
    assert answer.error_code == 0
    still = [(each.topic_name, each.partition_index) for each in answer.remaining_partitions]
    assert sorted(still) == [("t", 0), ("t", 1)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_may_ask(cluster: Ruling, version: int) -> None:
    """An unknown broker is answered BROKER_NOT_AVAILABLE, an outdated broker epoch (v2 on)
    STALE_BROKER_EPOCH, and a client that is not a node is refused.
    """
    assert (await shut_down(cluster, 9, version)).error_code == ErrorCode.BROKER_NOT_AVAILABLE
    if version >= 2:
        epoch = cluster.nodes[2].broker_epoch
        answer = await shut_down(cluster, 2, version, broker_epoch=epoch - 1)
        assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    stranger = await cluster.ask(ControlledShutdownRequest(broker_id=2), version)
    assert stranger.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert cluster.image.is_live(2)


@pytest.mark.parametrize("version", VERSIONS)
async def test_not_the_controller(version: int) -> None:
    """STALE_CONTROLLER_EPOCH, as Kafka says it here."""
    node = node_with(image([broker(1), broker(2)], controller_id=2))
    answer = await Client(node, handlers=APIS, peer=True).ask(ControlledShutdownRequest(broker_id=1), version)
    assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH

"""A claim that a newer controller exists deposes nobody; only the store does. The tests run on both
stores.
"""

from inspect import isawaitable
from typing import Any

import pytest
import trio

from minicontroller.cluster.znodes import layout
from minicontroller.controller.active.channel import CONTRADICTED_SECONDS
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.leader_and_isr import LeaderAndIsrRequest
from minicontroller.protocol.messages.stop_replica import StopReplicaRequest
from minicontroller.protocol.messages.update_metadata import UpdateMetadataRequest
from minicontroller.store.base import Delete, Store
from tests.store.worlds import in_both_worlds
from tests.support.small_cluster import SmallCluster, context_for
from tests.support.specs import by_key

LARGEST = 2**31 - 1
pytestmark = in_both_worlds


def tell(cluster: SmallCluster, broker_id: int, epoch: int) -> None:
    """Send the UpdateMetadata of a controller 3 in this epoch."""
    cluster.members[broker_id].node.cache.apply(controller_id=3, controller_epoch=epoch, brokers=None)


@pytest.mark.parametrize("misled", [1, 2], ids=["the controller's own node", "another node"])
async def test_an_epoch_that_nobody_was_elected_with(cluster: SmallCluster, misled: int) -> None:
    """A node that received an epoch without an election finds the controller again by itself, and
    the controller keeps its epoch.
    """
    controller = cluster.controller
    tell(cluster, misled, LARGEST)
    await cluster.until(lambda: cluster.seen(misled).controller_epoch == controller.epoch)
    assert cluster.seen(misled).controller_id == 1
    assert await cluster.create("t", replication_factor=3) == [0]
    assert cluster.controller is controller
    assert all("t" in cluster.seen(broker_id).topics for broker_id in (1, 2, 3))


async def test_an_answer_that_lies(cluster: SmallCluster) -> None:
    """A node that keeps answering STALE_CONTROLLER_EPOCH gets no updates, and delays no
    other node.
    """
    controller, answers = cluster.controller, list[list[int]]()

    async def create(name: str) -> None:
        answers.append(await cluster.create(name, timeout_ms=int(2_000 * CONTRADICTED_SECONDS)))

    cluster.deaf.add(2)
    async with trio.open_nursery() as nursery:
        # With metadata.completion=cluster, the answers wait for the node that does not acknowledge.
        for name in ("t0", "t1", "t2"):
            nursery.start_soon(create, name)
    assert answers == [[7], [7], [7]]
    assert cluster.controller is controller
    assert {"t0", "t1", "t2"} <= set(cluster.seen(3).topics)
    cluster.deaf.clear()
    await cluster.until(lambda: "t2" in cluster.seen(2).topics)


async def test_an_election_is_told_as_before(cluster: SmallCluster) -> None:
    """The successor's epoch, which the store knows, is believed and stays."""
    await cluster.elect_anew()
    await trio.sleep(1.5)
    assert {cluster.seen(broker_id).controller_epoch for broker_id in (1, 2, 3)} == {cluster.controller.epoch}


async def test_an_epoch_that_was_set_back(cluster: SmallCluster, other: Store) -> None:
    """If `/controller_epoch` is deleted, all nodes follow the next controller: it begins above the
    epoch that they follow, or they have found that nobody was elected with theirs.
    """
    for _ in range(3):
        await cluster.elect_anew()
    before = cluster.controller
    await other.commit([Delete(layout.CONTROLLER_EPOCH)])
    before.resign()
    await cluster.until(lambda: any(controller is not before for controller in cluster.rulers()))
    await cluster.until_quiet()
    assert await cluster.create("t", replication_factor=3) == [0]
    assert all("t" in cluster.seen(broker_id).topics for broker_id in (1, 2, 3))


async def test_a_controller_that_nobody_elected(cluster: SmallCluster) -> None:
    """The requests of one are refused before anything of them is carried out: the node keeps its
    controller, its brokers and its topics.
    """
    await cluster.create("t")
    node, before = cluster.members[2].node, cluster.seen(2)
    lie: dict[str, Any] = {"controller_id": 77, "controller_epoch": LARGEST, "broker_epoch": 2**40}
    for key, request in (
        (ApiKey.UPDATE_METADATA, UpdateMetadataRequest(**lie, live_brokers=[], topic_states=[])),
        (ApiKey.LEADER_AND_ISR, LeaderAndIsrRequest(**lie)),
        (ApiKey.STOP_REPLICA, StopReplicaRequest(**lie)),
    ):
        answer = by_key(node)[key].handler(context_for(node, key, 5 if key is ApiKey.LEADER_AND_ISR else 3), request)
        answer = await answer if isawaitable(answer) else answer
        assert answer.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        assert cluster.seen(2) is before
    assert await cluster.create("u") == [0]
    await cluster.until(lambda: "u" in cluster.seen(2).topics)

"""ElectLeaders: which partitions get another leader, and what is answered about the others."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from minicontroller.cluster.znodes import layout
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_partition import AlterPartitionRequest, PartitionData, TopicData
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.elect_leaders import (
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from minicontroller.store.base import SetData
from minicontroller.store.memory import MemoryStore
from tests.audit.logs import decisions_in
from tests.handlers.asking import Client
from tests.handlers.ruling import PATIENT_MS, Ruling, ruling, wanted
from tests.support.specs import APIS

NONE, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOT_NEEDED = ErrorCode.ELECTION_NOT_NEEDED
NOT_PREFERRED = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
NOBODY = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
LAST = 2

Asked = dict[str, tuple[int, ...]]
Codes = dict[tuple[str, int], int]


class Elections:
    """A cluster with a topic, whose brokers come and go."""

    def __init__(self, cluster: Ruling) -> None:
        self.cluster = cluster
        self._known = dict(cluster.image.brokers)

    async def live(self, *broker_ids: int) -> None:
        """Have only these brokers registered from now on."""
        await self.cluster.controller.brokers.changed([self._known[broker_id] for broker_id in broker_ids])

    async def in_sync(self, partition: int, *isr: int) -> None:
        """Have the leader of a partition of `t` report this ISR."""
        topic = self.cluster.topic("t")
        state = topic.partitions[partition]
        change = PartitionData(
            partition_index=partition, leader_epoch=state.leader_epoch, partition_epoch=state.partition_epoch,
            new_isr=list(isr),
        )  # fmt: skip
        epoch = self.cluster.image.brokers[state.leader].epoch
        topics = [TopicData(topic_id=topic.topic_id, partitions=[change])]
        request = AlterPartitionRequest(broker_id=state.leader, broker_epoch=epoch, topics=topics)
        answer = await self.cluster.ask(request, 2, peer=True)
        assert [row.error_code for each in answer.topics for row in each.partitions] == [0]

    async def elect(
        self, asked: Asked | None, kind: int = ElectionType.PREFERRED, version: int = LAST, **how: Any
    ) -> ElectLeadersResponse:
        named = asked and [TopicPartitions(topic=name, partitions=list(row)) for name, row in asked.items()]
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=None if asked is None else named or [],
            **{"timeout_ms": PATIENT_MS, **how},
        )
        answer: ElectLeadersResponse = await self.cluster.ask(request, version)
        return answer

    async def codes(self, asked: Asked | None, kind: int = ElectionType.PREFERRED, **how: Any) -> Codes:
        return codes(await self.elect(asked, kind, **how))

    def leaders(self) -> list[int]:
        return [partition.leader for partition in self.cluster.topic("t").partitions]


def codes(answer: ElectLeadersResponse) -> Codes:
    return {
        (topic.topic, row.partition_id): row.error_code
        for topic in answer.replica_election_results
        for row in topic.partition_result
    }


@pytest.fixture(name="elections")
async def elections_fixture(autojump_clock: object) -> AsyncIterator[Elections]:
    async with ruling() as cluster:
        await cluster.make(wanted("t", placed={0: [2, 3], 1: [1, 2], 2: [2, 1]}))
        yield Elections(cluster)


@pytest.mark.parametrize("version", range(3))
async def test_a_preferred_leader_leads_again(elections: Elections, version: int) -> None:
    """A preferred leader that is in sync again leads, with a new leader epoch and the same ISR."""
    await elections.live(1, 3)
    await elections.live(1, 2, 3)
    await elections.in_sync(0, 3, 2)
    assert elections.leaders() == [3, 1, 1]
    before = elections.cluster.topic("t").partitions[0]
    answer = await elections.elect({"t": (0,)}, version=version)
    assert codes(answer) == {("t", 0): NONE}
    assert answer.replica_election_results[0].partition_result[0].error_message is None
    after = elections.cluster.topic("t").partitions[0]
    assert (after.leader, after.isr, after.leader_epoch) == (2, before.isr, before.leader_epoch + 1)


async def test_each_partition_has_its_own_outcome(elections: Elections) -> None:
    """Partitions of one topic are elected, need no election, have a preferred leader that is out of
    sync, or do not exist.
    """
    await elections.live(1, 3)
    await elections.live(1, 2, 3)
    await elections.in_sync(0, 3, 2)
    found = await elections.codes({"t": (2, 0, 1, 7, -1), "unknown": (0,), "bad name!": (0,)})
    assert found == {
        ("t", 2): NOT_PREFERRED, ("t", 0): NONE, ("t", 1): NOT_NEEDED, ("t", 7): UNKNOWN, ("t", -1): UNKNOWN,
        ("unknown", 0): UNKNOWN, ("bad name!", 0): UNKNOWN,
    }  # fmt: skip
    assert elections.leaders() == [2, 1, 1]


@pytest.mark.parametrize("kind", ElectionType)
async def test_nothing_to_do(elections: Elections, kind: ElectionType) -> None:
    """A partition that needs no election is an error if it is named, and left out of the answer
    about all partitions.
    """
    assert await elections.codes({"t": (0, 1, 2)}, kind) == {("t", index): NOT_NEEDED for index in range(3)}
    assert await elections.codes(None, kind) == {}
    assert await elections.codes({}, kind) == await elections.codes({"t": ()}, kind) == {}


async def test_all_partitions(elections: Elections) -> None:
    """A request for all partitions elects those that can be elected, and answers the others with
    their errors.
    """
    await elections.live(1, 3)
    await elections.live(1, 2, 3)
    await elections.in_sync(0, 3, 2)
    assert await elections.codes(None) == {("t", 0): NONE, ("t", 2): NOT_PREFERRED}
    assert elections.leaders() == [2, 1, 1]


async def test_an_unclean_election(elections: Elections) -> None:
    """A replica that is not in sync leads if no in-sync one is left, also where the cluster does
    not allow unclean elections by itself. Its ISR has no other member. The election is counted.
    """
    await elections.live(1, 3)
    await elections.live(1)
    assert await elections.codes({"t": (0,)}, ElectionType.UNCLEAN) == {("t", 0): NOBODY}
    await elections.live(1, 2)
    assert elections.leaders() == [-1, 1, 1]
    assert await elections.codes({"t": (0, 1)}, ElectionType.UNCLEAN) == {("t", 0): NONE, ("t", 1): NOT_NEEDED}
    partition = elections.cluster.topic("t").partitions[0]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)
    assert elections.cluster.node.metrics.unclean_elections == 1


async def test_a_topic_that_is_being_deleted(elections: Elections) -> None:
    """A topic that waits for a dead broker to be deleted gets no leaders any more."""
    await elections.live(1, 3)
    deletion = DeleteTopicsRequest(topic_names=["t"], timeout_ms=PATIENT_MS)
    assert [row.error_code for row in (await elections.cluster.ask(deletion, 5)).responses] == [0]
    assert await elections.codes({"t": (0,)}) == {("t", 0): ErrorCode.INVALID_TOPIC_EXCEPTION}


@pytest.mark.parametrize("kind", [-1, 2])
async def test_an_unknown_kind(elections: Elections, kind: int) -> None:
    """An election type that does not exist is an error of the whole request and each partition."""
    answer = await elections.elect({"t": (0,)}, kind)
    assert (answer.error_code, codes(answer)) == (-1, {("t", 0): -1})


async def test_no_time(elections: Elections) -> None:
    """With a timeout of 0 the election is made, and answered REQUEST_TIMED_OUT."""
    await elections.live(1, 3)
    await elections.live(1, 2, 3)
    await elections.in_sync(0, 3, 2)
    assert await elections.codes({"t": (0,)}, timeout_ms=0) == {("t", 0): ErrorCode.REQUEST_TIMED_OUT}
    assert elections.leaders() == [2, 1, 1]


async def test_not_at_the_controller(elections: Elections) -> None:
    """A node that is not the controller and cannot forward refuses each partition."""
    client = Client(elections.cluster.nodes[2], handlers=APIS)
    request = ElectLeadersRequest(topic_partitions=[TopicPartitions(topic="t", partitions=[0, 1])])
    assert set(codes(await client.ask(request, LAST)).values()) == {ErrorCode.NOT_CONTROLLER}


async def test_the_parts_of_a_long_election_are_planned_again_in_their_order(tmp_path: Path) -> None:
    """An election that fills two commits takes two, also if another program has written to the
    first topics meanwhile, so that both parts, which overlap, are planned again. Each topic is in
    the audit log once, in the order of the request.
    """
    names = [f"t-{number:02}" for number in range(50)]
    async with ruling({"audit.dir": str(tmp_path), "auto.leader.rebalance.enable": "false"}) as cluster:
        placed = {index: [1, 2] for index in range(100)}
        await cluster.make(*(wanted(name, placed=placed) for name in names))
        elections = Elections(cluster)
        await elections.live(2, 3)
        await elections.live(1, 2, 3)
        for name in names:
            topic = cluster.topic(name)
            rows = [
                PartitionData(
                    partition_index=index,
                    leader_epoch=state.leader_epoch,
                    partition_epoch=state.partition_epoch,
                    new_isr=[2, 1],
                )
                for index, state in enumerate(topic.partitions)
            ]
            topics = [TopicData(topic_id=topic.topic_id, partitions=rows)]
            epoch = cluster.image.brokers[2].epoch
            request = AlterPartitionRequest(broker_id=2, broker_epoch=epoch, topics=topics)
            await cluster.ask(request, 2, peer=True)
        other = MemoryStore(cluster.store.tree)
        path = layout.partition_state_path(names[3], 7)
        state = await other.get(path)
        before = await other.get(layout.COMMITS)
        assert state is not None
        assert before is not None
        await other.commit([SetData(path, state.data, state.stat.version)])
        answer = await elections.elect({name: tuple(range(100)) for name in names})
        after = await other.get(layout.COMMITS)
        assert after is not None
        assert after.stat.version - before.stat.version == 2
        assert codes(answer) == {(name, index): NONE for name in names for index in range(100)}
        assert {each.leader for name in names for each in cluster.topic(name).partitions} == {1}
    elected = [each for each in decisions_in(tmp_path) if each.operation == "elect_leaders"]
    assert {each.election_type for each in elected} == {"preferred"}
    assert [(each.name, each.element, each.elements) for each in elected] == [
        (name, index, len(names)) for index, name in enumerate(names)
    ]

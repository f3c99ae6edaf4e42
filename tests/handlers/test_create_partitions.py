"""CreatePartitions: counts and placement by hand, its checks in Kafka's order, timeouts, batches
and policies.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from minicontroller.cluster.reassignment import reassign
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.topics import decode_topic
from minicontroller.controller.active.jobs import Draft
from minicontroller.policies import AlterTopicRequest, ClusterState, PolicyViolation, TopicManagementPolicy
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.handlers.asking import Client, broker, image, node_with
from tests.handlers.ruling import PATIENT_MS, Ruling, creating, ruling, wanted
from tests.support.specs import APIS

VERSIONS = range(4)
LAST = 3


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        await cluster.make(wanted("two", placed={0: [1, 2], 1: [2, 3]}), wanted("one", placed={0: [3]}))
        yield cluster


def more(name: str, count: int, hand: Sequence[Sequence[int]] | None = None) -> CreatePartitionsTopic:
    """`hand` gives the brokers of each new partition."""
    rows = None if hand is None else [CreatePartitionsAssignment(broker_ids=list(row)) for row in hand]
    return CreatePartitionsTopic(name=name, count=count, assignments=rows)


def growing(
    *topics: CreatePartitionsTopic, timeout_ms: int = PATIENT_MS, validate_only: bool = False
) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=list(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def codes(answer: CreatePartitionsResponse) -> dict[str, int]:
    return {row.name: row.error_code for row in answer.results}


@pytest.mark.parametrize("version", VERSIONS)
async def test_by_count(cluster: Ruling, version: int) -> None:
    """K4-A3a: more partitions are added, led when the answer comes; those that were there, and the
    topic's id, stay as they are.
    """
    before = cluster.topic("two")
    (row,) = (await cluster.ask(growing(more("two", 5)), version)).results
    assert (row.name, row.error_code, row.error_message) == ("two", 0, None)
    seen = cluster.node.cache.image.topics["two"]
    assert seen.is_complete
    assert (len(seen.partitions), seen.topic_id) == (5, before.topic_id)
    assert cluster.topic("two").partitions[:2] == before.partitions
    entry = await cluster.store.get(layout.topic_path("two"))
    assert entry is not None
    assert decode_topic("two", entry.data).topic_id == before.topic_id


async def test_where_new_partitions_go(cluster: Ruling) -> None:
    """K4-A3a: where Kafka puts them: going on from the first replica of partition 0, with its
    number of replicas.
    """
    await cluster.ask(growing(more("two", 5), more("one", 4)), LAST)
    assert [partition.replicas for partition in cluster.topic("two").partitions[2:]] == [(3, 1), (1, 3), (2, 1)]
    assert [partition.replicas for partition in cluster.topic("one").partitions[1:]] == [(1,), (2,), (3,)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_by_hand(cluster: Ruling, version: int) -> None:
    """K4-A1b: row i is partition current + i; the first of its brokers leads."""
    await cluster.ask(growing(more("two", 4, [[3, 1], [1, 2]])), version)
    added = cluster.topic("two").partitions[2:]
    assert [(partition.replicas, partition.leader) for partition in added] == [((3, 1), 3), ((1, 2), 1)]


WRONG_ROWS = ErrorCode.INVALID_REPLICA_ASSIGNMENT
WRONG_COUNT = ErrorCode.INVALID_PARTITIONS
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

REFUSALS: list[tuple[str, CreatePartitionsTopic, ErrorCode, Sequence[str]]] = [
    ("unknown", more("nobody", 2), UNKNOWN, ["'nobody'"]),
    ("illegal name", more("bad!", 2), UNKNOWN, ["'bad!'"]),
    ("no name", more("", 2), UNKNOWN, ["''"]),
    ("fewer", more("two", 1), WRONG_COUNT, ["2 partitions", "1"]),
    ("same", more("two", 2), WRONG_COUNT, ["already has 2"]),
    ("none", more("two", 0), WRONG_COUNT, ["2 partitions", "0"]),
    ("negative", more("two", -1), WRONG_COUNT, ["-1"]),
    ("smallest", more("two", -(2**31)), WRONG_COUNT, [str(-(2**31))]),
    ("too many", more("two", 2**31 - 1), WRONG_COUNT, [str(2**31 - 1)]),
    ("unknown nodes", more("two", 4, [[8, 1], [9, 1]]), WRONG_ROWS, ["8, 9"]),
    ("negative node", more("two", 3, [[-1, 1]]), WRONG_ROWS, ["-1"]),
    ("no rows", more("two", 3, []), WRONG_ROWS, ["by 1", "0 assignments"]),
    ("too few rows", more("two", 4, [[1, 2]]), WRONG_ROWS, ["by 2", "1 assignments"]),
    ("too many rows", more("two", 3, [[1, 2], [2, 3]]), WRONG_ROWS, ["by 1", "2 assignments"]),
    ("empty row", more("two", 4, [[1, 2], []]), WRONG_ROWS, ["partition id 3"]),
    ("node twice", more("two", 3, [[1, 1]]), WRONG_ROWS, ["1, 1", "partition id 2"]),
    ("too short a row", more("two", 3, [[1]]), WRONG_ROWS, ["partition 0 has 2", "[2]", "[1]"]),
    ("too long a row", more("two", 4, [[1, 2], [1, 2, 3]]), WRONG_ROWS, ["partition 0 has 2", "[3]", "[3]"]),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "code", "said"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
async def test_refused(cluster: Ruling, wish: CreatePartitionsTopic, code: ErrorCode, said: Sequence[str]) -> None:
    """K4-A3b, K4-A1b, K4-3: a refused growth has its code and a text that says what to mend, in
    every version, also if it is only validated.
    """
    before = cluster.image
    for version in VERSIONS:
        for validate_only in (False, True):
            (row,) = (await cluster.ask(growing(wish, validate_only=validate_only), version)).results
            assert (row.name, row.error_code) == (wish.name, code)
            assert row.error_message is not None
            assert all(part in row.error_message for part in said), row.error_message
    assert cluster.image is before


ORDER: list[tuple[str, CreatePartitionsTopic, ErrorCode, str]] = [
    ("unknown topic, count", more("nobody", 0), UNKNOWN, "exist"),
    ("unknown topic, rows", more("nobody", 2, [[9]]), UNKNOWN, "exist"),
    ("count, unknown node", more("two", 1, [[9, 9]]), WRONG_COUNT, "higher"),
    ("same count, rows", more("two", 2, [[9]]), WRONG_COUNT, "already"),
    ("unknown node, number of rows", more("two", 4, [[1, 9]]), WRONG_ROWS, "Unknown broker"),
    ("unknown node, node twice", more("two", 3, [[9, 9]]), WRONG_ROWS, "Unknown broker"),
    ("number of rows, empty row", more("two", 4, [[]]), WRONG_ROWS, "Increasing"),
    ("empty row, node twice", more("two", 4, [[], [1, 1]]), WRONG_ROWS, "factor of 0"),
    ("node twice, length", more("two", 3, [[1, 1, 1]]), WRONG_ROWS, "Duplicate brokers"),
]


@pytest.mark.parametrize(("wish", "code", "said"), [case[1:] for case in ORDER], ids=[case[0] for case in ORDER])
async def test_two_faults(cluster: Ruling, wish: CreatePartitionsTopic, code: ErrorCode, said: str) -> None:
    """Of two faults, the one that Kafka finds first is reported."""
    (row,) = (await cluster.ask(growing(wish), LAST)).results
    assert row.error_code == code
    assert said in (row.error_message or "")


@pytest.mark.parametrize("version", VERSIONS)
async def test_named_twice(cluster: Ruling, version: int) -> None:
    """A topic that stands twice gets one row, INVALID_REQUEST before any other fault; the others
    are not harmed.
    """
    answer = await cluster.ask(
        growing(more("two", 3), more("one", 2), more("nobody", 2), more("nobody", 0), more("two", 4)), version
    )
    refused = ErrorCode.INVALID_REQUEST
    assert sorted((row.name, row.error_code) for row in answer.results) == [
        ("nobody", refused), ("one", 0), ("two", refused),
    ]  # fmt: skip
    assert (len(cluster.topic("two").partitions), len(cluster.topic("one").partitions)) == (2, 2)


@pytest.mark.parametrize("version", VERSIONS)
async def test_one_result_does_not_affect_another(cluster: Ruling, version: int) -> None:
    """K4-2: each topic has its own result."""
    answer = await cluster.ask(growing(more("two", 1), more("nobody", 2), more("one", 2)), version)
    assert codes(answer) == {"two": WRONG_COUNT, "nobody": UNKNOWN, "one": 0}
    assert (await cluster.ask(growing(), version)).results == []


async def test_more_replicas_than_brokers(autojump_clock: object) -> None:
    """A topic cannot grow by count while fewer brokers live than it has replicas; by hand neither,
    for every one must be registered.
    """
    async with ruling() as cluster:
        await cluster.make(wanted("three", 1, 3))
        await cluster.controller.brokers.changed([b for b in cluster.image.brokers.values() if b.broker_id != 3])
        by_count = await cluster.ask(growing(more("three", 2)), LAST)
        by_hand = await cluster.ask(growing(more("three", 2, [[1, 2, 3]])), LAST)
    assert codes(by_count) == {"three": ErrorCode.INVALID_REPLICATION_FACTOR}
    assert codes(by_hand) == {"three": WRONG_ROWS}


async def test_being_deleted(cluster: Ruling) -> None:
    """A topic that is marked for deletion: INVALID_TOPIC_EXCEPTION, which says so, before its count
    is looked at.
    """
    cluster.deaf.update({2, 3})
    await cluster.ask(DeleteTopicsRequest(topic_names=["two"], timeout_ms=PATIENT_MS), 5)
    (row,) = (await cluster.ask(growing(more("two", 0)), LAST)).results
    assert row.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "queued for deletion" in (row.error_message or "")


async def test_being_reassigned(cluster: Ruling) -> None:
    """K4-A4: REASSIGNMENT_IN_PROGRESS, which names the topic, before its count is looked at."""
    two = cluster.topic("two")
    moving = two.with_partitions({1: reassign(two.partitions[1], (9,), cluster.image.live_ids())})
    cluster.controller.writer.adopt(cluster.image.with_topic(moving))
    (row,) = (await cluster.ask(growing(more("two", 0)), LAST)).results
    assert row.error_code == ErrorCode.REASSIGNMENT_IN_PROGRESS
    assert "'two'" in (row.error_message or "")


@pytest.mark.parametrize("version", VERSIONS)
async def test_validate_only(cluster: Ruling, version: int) -> None:
    """With validate_only a valid request succeeds, nothing changes, and the timeout does not
    matter.
    """
    for timeout_ms in (30_000, 0):
        answer = await cluster.ask(growing(more("two", 4), timeout_ms=timeout_ms, validate_only=True), version)
        assert codes(answer) == {"two": 0}
    assert len(cluster.topic("two").partitions) == 2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
async def test_no_time(cluster: Ruling, version: int, timeout_ms: int) -> None:
    """K4-C6: with a timeout of 0 faults are answered at once; valid growths are started and
    answered REQUEST_TIMED_OUT without a text.
    """
    answer = await cluster.ask(growing(more("two", 3), more("one", 1), timeout_ms=timeout_ms), version)
    assert codes(answer) == {"two": ErrorCode.REQUEST_TIMED_OUT, "one": WRONG_COUNT}
    assert {row.name: row.error_message for row in answer.results}["two"] is None
    await trio.testing.wait_all_tasks_blocked()
    assert cluster.topic("two").is_complete
    assert len(cluster.topic("two").partitions) == 3


async def test_a_topic_that_is_not_written_yet(autojump_clock: object) -> None:
    """A growth behind a creation that is still being written does not write the creation's znodes
    again, also while no partition has a leader.
    """
    async with ruling() as cluster:
        cluster.controller.brokers.begin_shutdown(3)
        gate, answers = trio.Event(), list[CreatePartitionsResponse]()

        async def hold(_draft: Draft) -> None:
            await gate.wait()

        async def create() -> None:
            await cluster.ask(creating(wanted("t", placed={0: [3]}), timeout_ms=0), 7)

        async def grow(count: int) -> None:
            answers.append(await cluster.ask(growing(more("t", count, [[3]]), timeout_ms=0), LAST))

        async with trio.open_nursery() as clients:
            for ask in (partial(cluster.controller.writer.write, hold), create, partial(grow, 2), partial(grow, 3)):
                clients.start_soon(ask)
                await trio.testing.wait_all_tasks_blocked()
            gate.set()
        assert [codes(answer)["t"] for answer in answers] == [ErrorCode.REQUEST_TIMED_OUT] * 2
        assert len(cluster.topic("t").partitions) == 3


async def test_in_time_and_not(cluster: Ruling, autojump_clock: object) -> None:
    """K4-C7: at the timeout completed topics have no error, and topics without leaders
    REQUEST_TIMED_OUT.
    """
    cluster.controller.brokers.begin_shutdown(3)
    answer = await cluster.ask(growing(more("one", 2, [[3]]), more("two", 3, [[1, 2]]), timeout_ms=50), LAST)
    assert codes(answer) == {"one": ErrorCode.REQUEST_TIMED_OUT, "two": 0}


@pytest.mark.parametrize("version", VERSIONS)
async def test_not_the_controller(version: int) -> None:
    """K4-C1: where nothing is forwarded a node that is not the controller says so,
    without a text.
    """
    node = node_with(image([broker(1), broker(2)], controller_id=2))
    answer = await Client(node, handlers=APIS).ask(growing(more("two", 0), more("x", 1)), version)
    assert [(row.name, row.error_code, row.error_message) for row in answer.results] == [
        ("two", ErrorCode.NOT_CONTROLLER, None),
        ("x", ErrorCode.NOT_CONTROLLER, None),
    ]


class Sparing(TopicManagementPolicy):
    """Grants six partitions in all."""

    def __init__(self) -> None:
        self.asked: list[tuple[AlterTopicRequest, int]] = []

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        before = cluster.topic_state(request.topic)
        assert before is not None
        self.asked.append((request, before.num_partitions))
        total = sum(state.num_partitions for name in cluster.topics() if (state := cluster.topic_state(name)))
        if total - before.num_partitions + request.requested_state.num_partitions > 6:
            raise PolicyViolation("Six partitions are enough.")


async def test_the_policy_is_asked() -> None:
    """K201-1c, K201-4, K201-5: the policy sees the whole topic as it will be, the one before in the
    cluster, and who asks.
    """
    policy = Sparing()
    async with ruling(policy=policy) as cluster:
        await cluster.make(wanted("t", placed={0: [2]}, configs={"retention.ms": "1"}))
        await cluster.ask(growing(more("t", 3), more("nobody", 3)), LAST, principal="User:alice")
        await cluster.ask(growing(more("t", 4, [[1]]), validate_only=True), LAST)
    (counted, one), (placed, three) = policy.asked
    assert (counted.topic, counted.principal, counted.api, one) == ("t", "User:alice", "CreatePartitions", 1)
    state = counted.requested_state
    assert (state.num_partitions, state.replication_factor, dict(state.configs)) == (3, 1, {"retention.ms": "1"})
    assert state.generated_replica_assignments
    assert counted.config_operations is None
    assert (placed.requested_state.num_partitions, three, placed.validate_only) == (4, 3, True)
    assert placed.requested_state.replica_assignments[3] == (1,)
    assert not placed.requested_state.generated_replica_assignments


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_the_policy_refuses(version: int, validate_only: bool) -> None:
    """K201-3, K201-6: POLICY_VIOLATION with the policy's words for that topic alone; each sees what
    those before it were granted.
    """
    async with ruling(policy=Sparing()) as cluster:
        await cluster.make(wanted("a", 1, 1), wanted("b", 1, 1))
        answer = await cluster.ask(growing(more("a", 4), more("b", 3), validate_only=validate_only), version)
        assert codes(answer) == {"a": 0, "b": ErrorCode.POLICY_VIOLATION}
        assert {row.name: row.error_message for row in answer.results}["b"] == "Six partitions are enough."
        assert len(cluster.topic("b").partitions) == 1

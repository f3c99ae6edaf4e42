"""DeleteRecords: who decides about which partition, its checks in Kafka's order, and policies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from minicontroller.audit.event import Effect
from minicontroller.policies import ClusterState, DeleteRecordsRequest, PolicyViolation, TopicManagementPolicy
from minicontroller.protocol.dry_runs import packed
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages import delete_records as messages
from tests.audit.logs import decisions_in, found
from tests.handlers.ruling import PATIENT_MS, Ruling, ruling, wanted

VERSIONS = range(3)
LAST = 2
END = -1


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        await make(cluster)
        yield cluster


async def make(cluster: Ruling) -> None:
    """Partition 0 is led by node 1, which is asked and is the controller; partition 1 is not."""
    placed = {0: [1, 2], 1: [2, 3]}
    await cluster.make(
        wanted("t", placed=placed),
        wanted("u", placed=placed),
        wanted("compact", placed=placed, configs={"cleanup.policy": "compact"}),
        wanted("both", placed=placed, configs={"cleanup.policy": " compact ,delete"}),
        wanted("__consumer_offsets", placed=placed),
    )


def deleting(*topics: tuple[str, Mapping[int, int] | list[tuple[int, int]]]) -> messages.DeleteRecordsRequest:
    return messages.DeleteRecordsRequest(
        topics=[
            messages.DeleteRecordsTopic(
                name=name,
                partitions=[
                    messages.DeleteRecordsPartition(partition_index=index, offset=offset)
                    for index, offset in (offsets.items() if isinstance(offsets, Mapping) else offsets)
                ],
            )
            for name, offsets in topics
        ],
        timeout_ms=PATIENT_MS,
    )


def rows(answer: messages.DeleteRecordsResponse) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (topic.name, row.partition_index): (row.error_code, row.low_watermark)
        for topic in answer.topics
        for row in topic.partitions
    }


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_is_there_is_deleted(cluster: Ruling, version: int) -> None:
    """Up to the high watermark, which is 0: there is nothing to delete, and the low watermark is
    0.
    """
    answer = await cluster.ask(deleting(("t", {0: END}), ("both", {0: 0})), version)
    assert rows(answer) == {("t", 0): (0, 0), ("both", 0): (0, 0)}


async def test_each_check(cluster: Ruling) -> None:
    """Each error, for its partition alone, with the low watermark -1."""
    asked = {
        ("t", 0): (5, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("t", 1): (0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("t", 2): (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", -1): (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0): (-2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("nobody", 0): (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("compact", 0): (5, ErrorCode.POLICY_VIOLATION),
        ("compact", 1): (0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("__consumer_offsets", 0): (0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__consumer_offsets", 1): (5, ErrorCode.INVALID_TOPIC_EXCEPTION),
    }
    request = deleting(*((name, {index: offset}) for (name, index), (offset, _) in asked.items()))
    assert rows(await cluster.ask(request, LAST)) == {each: (code, -1) for each, (_, code) in asked.items()}


async def test_a_partition_that_is_named_twice(cluster: Ruling) -> None:
    """It has one row, and the last offset counts."""
    twice = deleting(("t", [(0, 5), (0, 0)]), ("u", {0: 0}), ("u", {0: 7}))
    assert rows(await cluster.ask(twice, LAST)) == {
        ("t", 0): (0, 0),
        ("u", 0): (ErrorCode.OFFSET_OUT_OF_RANGE, -1),
    }


async def test_nothing_is_asked_for(cluster: Ruling) -> None:
    """A request without partitions is answered without rows."""
    assert (await cluster.ask(deleting(), LAST)).topics == []
    assert (await cluster.ask(deleting(("t", {})), LAST)).topics == []


class Keeper(TopicManagementPolicy):
    """Keeps the records of one topic."""

    def __init__(self) -> None:
        self.asked: list[DeleteRecordsRequest] = []

    def validate_delete_records(self, request: DeleteRecordsRequest, cluster: ClusterState) -> None:
        assert cluster.topic_state(request.topic) is not None
        self.asked.append(request)
        if request.topic == "t":
            raise PolicyViolation("Records of t are kept.")


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_policy_is_asked(version: int, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """K201-1e, K201-4, K201-5, K201-6, K201-7b: the policy is asked once for each topic, with the
    offsets of the valid partitions, and refuses them alone. v0 answers UNKNOWN_SERVER_ERROR, and
    the log says what it was.
    """
    caplog.set_level("INFO", "minicontroller.policy")
    policy = Keeper()
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        await make(cluster)
        request = deleting(("t", {0: 0, 7: 0}), ("u", {0: END}), ("compact", {0: 0}))
        answer = await cluster.ask(request, version, principal="User:bob")
    violation = ErrorCode.POLICY_VIOLATION if version else ErrorCode.UNKNOWN_SERVER_ERROR
    assert rows(answer) == {
        ("t", 0): (violation, -1),
        ("t", 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("u", 0): (0, 0),
        ("compact", 0): (ErrorCode.POLICY_VIOLATION, -1),  # Kafka's own, in every version
    }
    assert ("told as UNKNOWN_SERVER_ERROR in version 0: Records of t are kept." in caplog.text) == (version == 0)
    asked = [(each.topic, each.principal, each.api, dict(each.delete_records_offsets)) for each in policy.asked]
    assert asked == [("t", "User:bob", "DeleteRecords", {0: 0}), ("u", "User:bob", "DeleteRecords", {0: -1})]
    assert found(tmp_path) == []
    told = [
        (each.name, each.delete_records_offsets, each.error, each.effect, each.policy is not None)
        for each in decisions_in(tmp_path)
        if each.operation == "delete_records"
    ]
    assert told == [
        ("t", {0: 0}, "POLICY_VIOLATION", Effect.NONE, True),
        ("u", {0: -1}, "NONE", Effect.APPLIED, True),
        ("compact", {0: 0}, "POLICY_VIOLATION", Effect.NONE, False),
    ]


async def test_a_dry_run(tmp_path: Path) -> None:
    """K201-8b: the same answers, with the policy asked whether it would allow it; the audit log has
    it as validated.
    """
    policy = Keeper()
    async with ruling({"audit.dir": str(tmp_path)}, policy=policy) as cluster:
        await make(cluster)
        answer = await cluster.ask(packed(deleting(("t", {0: 0, 1: 0}), ("u", {0: END, 7: 0}))), LAST)
    assert rows(answer) == {
        ("t", 0): (ErrorCode.POLICY_VIOLATION, -1),
        ("t", 1): (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1),
        ("u", 0): (0, 0),
        ("u", 7): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    }
    assert [(each.topic, each.validate_only) for each in policy.asked] == [("t", True), ("u", True)]
    told = [each for each in decisions_in(tmp_path) if each.operation == "delete_records"]
    assert [(each.name, each.validate_only, each.effect) for each in told] == [
        ("t", True, Effect.NONE),
        ("u", True, Effect.NONE),
    ]

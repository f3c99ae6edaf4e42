"""AlterReplicaLogDirs: replicas move between the directories of the node that is asked."""

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
import trio

from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from minicontroller.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.handlers.ruling import PATIENT_MS, Ruling, ruling, wanted
from tests.handlers.test_authorization import ALICE, allowing

LOGS = {"log.dirs": "/a,/b"}
T = wanted("t", placed={0: [1, 2], 1: [2, 1], 2: [2, 3]})


@pytest.fixture(name="cluster")
async def cluster_with_directories() -> AsyncIterator[Ruling]:
    """A topic of which node 1 has the replicas of two partitions of three."""
    async with ruling(LOGS) as cluster:
        await cluster.make(T)
        yield cluster


def moving(path: str, *partitions: int, name: str = "t") -> AlterReplicaLogDirsRequest:
    topics = [AlterReplicaLogDirTopic(name=name, partitions=list(partitions))]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])


def codes(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (each.topic_name, row.partition_index): row.error_code for each in answer.results for row in each.partitions
    }


async def in_directory(cluster: Ruling, path: str) -> list[int]:
    answer = await cluster.ask(DescribeLogDirsRequest(topics=None), 4)
    (result,) = [each for each in answer.results if each.log_dir == path]
    return sorted(row.partition_index for each in result.topics for row in each.partitions)


async def move(cluster: Ruling, path: str, partitions: Iterable[int], *, name: str = "t") -> dict[int, int]:
    """Return the codes of the partitions."""
    answer = await cluster.ask(moving(path, *partitions, name=name), 2)
    return {index: code for (_, index), code in codes(answer).items()}


async def delete(cluster: Ruling) -> None:
    """Delete the topic, and wait until every node has acknowledged that."""
    await cluster.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=PATIENT_MS), 5)
    while "t" in cluster.image.topics:  # noqa: ASYNC110 - the image has no events
        await trio.sleep(0.01)


@pytest.mark.parametrize("version", range(3))
async def test_a_move_is_seen(cluster: Ruling, version: int) -> None:
    """A replica is where it was moved to; of two directories for one partition the last counts."""
    for path in ("/a", "/b", "/a"):
        assert codes(await cluster.ask(moving(path, 0, 1), version)) == {("t", 0): 0, ("t", 1): 0}
        assert await in_directory(cluster, path) == [0, 1]
    both = AlterReplicaLogDirsRequest(dirs=[*moving("/b", 0).dirs, *moving("/a", 0).dirs, *moving("/b", 1).dirs])
    assert codes(await cluster.ask(both, version)) == {("t", 0): 0, ("t", 1): 0}
    assert (await in_directory(cluster, "/a"), await in_directory(cluster, "/b")) == ([0], [1])


async def test_what_cannot_be_moved(cluster: Ruling) -> None:
    """A directory that is not configured, a partition that is unknown, and one of which the node
    has no replica.
    """
    no_dir, absent = ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.REPLICA_NOT_AVAILABLE
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await move(cluster, "/c", (0, 2, 3)) == dict.fromkeys((0, 2, 3), no_dir)
    assert await move(cluster, "/a", (0, 2, 3, -1)) == {0: 0, 2: absent, 3: unknown, -1: unknown}
    assert await move(cluster, "/a", (0,), name="unknown") == {0: unknown}


@pytest.mark.parametrize(
    ("name", "index", "fits"), [("y" * 213, 0, True), ("y" * 213, 10, False), ("y" * 214, 0, False)]
)
async def test_names_that_are_too_long_for_a_folder(cluster: Ruling, name: str, index: int, fits: bool) -> None:
    """The length of a name is looked at before everything else, as Kafka does."""
    code = ErrorCode.LOG_DIR_NOT_FOUND if fits else ErrorCode.INVALID_TOPIC_EXCEPTION
    assert await move(cluster, "/c", (index,), name=name) == {index: code}


@pytest.mark.parametrize("path", ["/a", "/b"])
async def test_a_replica_is_made_where_it_was_wanted(cluster: Ruling, path: str) -> None:
    """`kafka-reassign-partitions` asks for a directory before the node has the replica."""
    assert await move(cluster, path, (2,)) == {2: ErrorCode.REPLICA_NOT_AVAILABLE}
    partition = ReassignablePartition(partition_index=2, replicas=[2, 1])
    topics = [ReassignableTopic(name="t", partitions=[partition])]
    answer = await cluster.ask(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=PATIENT_MS), 0)
    assert answer.error_code == 0
    assert 2 in await in_directory(cluster, path)


async def test_a_topic_of_the_same_name_has_not_moved(cluster: Ruling) -> None:
    """A move ends with its topic, and what is remembered does not grow."""
    before = await in_directory(cluster, "/a")
    other = "/b" if 0 in before else "/a"
    await move(cluster, other, (0,))
    assert await in_directory(cluster, "/a") != before
    await delete(cluster)
    await cluster.make(T)
    assert await in_directory(cluster, "/a") == before
    await delete(cluster)
    await move(cluster, other, (0,))
    assert not cluster.node.data.logs._moved


async def test_who_may_not_alter_the_cluster(cluster: Ruling) -> None:
    """Without Alter on the cluster each partition is refused, whatever else is wrong."""
    rights = allowing((AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALTER))
    for authorization, code in ((allowing(), ErrorCode.CLUSTER_AUTHORIZATION_FAILED), (rights, 0)):
        answer = await cluster.ask(moving("/a", 0), 2, principal=ALICE, authorization=authorization)
        assert codes(answer) == {("t", 0): code}
    denied = await cluster.ask(moving("/c", 0), 2, principal=ALICE, authorization=allowing())
    assert codes(denied) == {("t", 0): ErrorCode.CLUSTER_AUTHORIZATION_FAILED}

"""AlterReplicaLogDirs: replicas move between the directories of the node that is asked."""

from typing import Any

import pytest

from minicontroller.controller.handlers import SPECS
from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from minicontroller.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.handlers.asking import Client, broker, image, led, node_with, see, topic
from tests.handlers.test_authorization import ALICE, allowing

LOGS = {"log.dirs": "/a,/b"}
BROKERS = (broker(1), broker(2))
T = topic("t", led(1, 2), led(2, 1), led(2))


def moving(path: str, *partitions: int, name: str = "t") -> AlterReplicaLogDirsRequest:
    topics = [AlterReplicaLogDirTopic(name=name, partitions=list(partitions))]
    return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)])


def codes(answer: Any) -> dict[tuple[str, int], int]:
    return {
        (each.topic_name, row.partition_index): row.error_code for each in answer.results for row in each.partitions
    }


async def in_directory(client: Client, path: str) -> list[int]:
    answer = await client.ask(DescribeLogDirsRequest(topics=None), 4)
    (result,) = [each for each in answer.results if each.log_dir == path]
    return sorted(row.partition_index for each in result.topics for row in each.partitions)


@pytest.mark.parametrize("version", range(3))
async def test_a_move_is_seen(version: int) -> None:
    """A replica is where it was moved to; of two directories for one partition the last counts."""
    client = Client(node_with(image(BROKERS, [T]), LOGS), handlers=SPECS)
    for path in ("/a", "/b", "/a"):
        assert codes(await client.ask(moving(path, 0, 1), version)) == {("t", 0): 0, ("t", 1): 0}
        assert await in_directory(client, path) == [0, 1]
    both = AlterReplicaLogDirsRequest(dirs=[*moving("/b", 0).dirs, *moving("/a", 0).dirs, *moving("/b", 1).dirs])
    assert codes(await client.ask(both, version)) == {("t", 0): 0, ("t", 1): 0}
    assert (await in_directory(client, "/a"), await in_directory(client, "/b")) == ([0], [1])


async def test_what_cannot_be_moved() -> None:
    """A directory that is not configured, a partition that is unknown, and one of which the node
    has no replica.
    """
    client = Client(node_with(image(BROKERS, [T]), LOGS), handlers=SPECS)
    no_dir, absent = ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.REPLICA_NOT_AVAILABLE
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(await client.ask(moving("/c", 0, 2, 3), 2)) == {("t", index): no_dir for index in (0, 2, 3)}
    assert codes(await client.ask(moving("/a", 2, 3, -1), 2)) == {
        ("t", 2): absent,
        ("t", 3): unknown,
        ("t", -1): unknown,
    }
    assert codes(await client.ask(moving("/a", 0, name="unknown"), 2)) == {("unknown", 0): unknown}


@pytest.mark.parametrize(
    ("name", "index", "fits"), [("y" * 213, 0, True), ("y" * 213, 10, False), ("y" * 214, 0, False)]
)
async def test_names_that_are_too_long_for_a_folder(name: str, index: int, fits: bool) -> None:
    """The length of a name is looked at before everything else, as Kafka does."""
    client = Client(node_with(image(BROKERS, [T]), LOGS), handlers=SPECS)
    too_long = ErrorCode.INVALID_TOPIC_EXCEPTION
    assert codes(await client.ask(moving("/c", index, name=name), 2)) == {
        (name, index): ErrorCode.LOG_DIR_NOT_FOUND if fits else too_long
    }


@pytest.mark.parametrize("path", ["/a", "/b"])
async def test_a_replica_is_made_where_it_was_wanted(path: str) -> None:
    """`kafka-reassign-partitions` asks for a directory before the node has the replica."""
    node = node_with(image(BROKERS, [T]), LOGS)
    client = Client(node, handlers=SPECS)
    assert codes(await client.ask(moving(path, 2), 2)) == {("t", 2): ErrorCode.REPLICA_NOT_AVAILABLE}
    here = type(T)("t", topic_id=T.topic_id, partitions=(*T.partitions[:2], led(2, 1)))
    see(node, image(BROKERS, [here]))
    assert 2 in await in_directory(client, path)


async def test_a_topic_of_the_same_name_has_not_moved() -> None:
    """A move ends with its topic, and what is remembered does not grow."""
    node = node_with(image(BROKERS, [T]), LOGS)
    client = Client(node, handlers=SPECS)
    before = await in_directory(client, "/a")
    other = "/b" if 0 in before else "/a"
    await client.ask(moving(other, 0), 2)
    again = topic("t", led(1, 2), led(2, 1))
    see(node, image(BROKERS, [type(again)("t", topic_id=b"\7" * 16, partitions=again.partitions)]))
    assert await in_directory(client, "/a") == before
    see(node, image(BROKERS, []))
    await client.ask(moving(other, 0), 2)
    assert not node.log_dirs._moved


async def test_who_may_not_alter_the_cluster() -> None:
    """Without Alter on the cluster each partition is refused."""
    rights = allowing((AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALTER))
    for authorization, code in ((allowing(), ErrorCode.CLUSTER_AUTHORIZATION_FAILED), (rights, 0)):
        node = node_with(image(BROKERS, [T]), LOGS)
        client = Client(node, handlers=SPECS, principal=ALICE, authorization=authorization)
        assert codes(await client.ask(moving("/a", 0), 2)) == {("t", 0): code}

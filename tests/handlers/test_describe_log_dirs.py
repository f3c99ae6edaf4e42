"""DescribeLogDirs: a node's directories and the replicas in them."""

from pathlib import Path
from typing import Any

import pytest

from minicontroller.protocol.acls import CLUSTER_NAME, AclOperation, AclResourceType
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.handlers.asking import Client, broker, image, led, node_with, see, topic
from tests.handlers.test_authorization import ALICE, allowing
from tests.support.specs import APIS

LOGS = {"log.dirs": "/a, /b,/a"}
CLUSTER = image([broker(1), broker(2)], [topic("t", *[led(1, 2)] * 20, led(2)), topic("other", led(2))])


async def ask(request: DescribeLogDirsRequest, version: int = 4, **how: Any) -> Any:
    return await Client(node_with(CLUSTER, LOGS), handlers=APIS, **how).ask(request, version)


@pytest.mark.parametrize("version", range(5))
async def test_each_replica_is_in_one_directory(version: int) -> None:
    """All replicas of the node are listed, each in one of the directories, which are named once."""
    answer = await ask(DescribeLogDirsRequest(topics=None), version)
    assert [result.log_dir for result in answer.results] == ["/a", "/b"]
    rows = [row for result in answer.results for each in result.topics for row in each.partitions]
    assert sorted(row.partition_index for row in rows) == list(range(20))
    assert {each.name for result in answer.results for each in result.topics} == {"t"}
    assert all((row.partition_size, row.offset_lag, row.is_future_key) == (0, 0, False) for row in rows)
    assert all(result.topics for result in answer.results)


async def test_replicas_that_moved_or_came() -> None:
    """Whoever asks again is told where the replicas lie by then, and of new ones."""
    node = node_with(CLUSTER, LOGS)
    client = Client(node, handlers=APIS)

    async def told() -> dict[tuple[str, int], str]:
        answer = await client.ask(DescribeLogDirsRequest(topics=None), 4)
        return {
            (each.name, row.partition_index): result.log_dir
            for result in answer.results
            for each in result.topics
            for row in each.partitions
        }

    before = await told()
    assert await told() == before
    other = next(path for path in node.data.logs.paths if path != before["t", 3])
    node.data.logs.move(other, node.cache.image.topics["t"], 3)
    assert await told() == {**before, ("t", 3): other}
    see(node, CLUSTER.with_topics([topic("other", led(1))]))
    assert set(await told()) == {*before, ("other", 0)}


async def test_some_partitions() -> None:
    """Named partitions are listed once; what the node does not hold is left out."""
    asked = [
        DescribableLogDirTopic(topic="t", partitions=[3, 3, 20, 21, -1]),
        DescribableLogDirTopic(topic="unknown", partitions=[0]),
    ]
    answer = await ask(DescribeLogDirsRequest(topics=asked))
    found = [(each.name, row.partition_index) for r in answer.results for each in r.topics for row in each.partitions]
    assert found == [("t", 3)]


@pytest.mark.parametrize("version", range(5))
async def test_who_may_not_describe_the_cluster(version: int) -> None:
    """Without Describe on the cluster no directory is named; from version 3 on it is an error."""
    answer = await ask(DescribeLogDirsRequest(topics=None), version, principal=ALICE, authorization=allowing())
    assert answer.results == []
    assert answer.error_code == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED if version >= 3 else 0)
    rights = allowing((AclResourceType.CLUSTER, CLUSTER_NAME, AclOperation.DESCRIBE))
    answer = await ask(DescribeLogDirsRequest(topics=None), version, principal=ALICE, authorization=rights)
    assert len(answer.results) == 2


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"log.dirs": "//a/,/b//c,/a"}, ["/a", "/b/c"]),
        ({"log.dir": "d"}, [str(Path("d").absolute())]),
    ],
)
async def test_directories_are_told_as_kafka_does(settings: dict[str, str], told: list[str]) -> None:
    """Absolute, and without slashes that mean nothing: tools send back what they were told."""
    client = Client(node_with(CLUSTER, settings), handlers=APIS)
    answer = await client.ask(DescribeLogDirsRequest(topics=None), 4)
    assert [result.log_dir for result in answer.results] == told

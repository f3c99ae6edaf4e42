"""Changes while others write to the same place: in memory, on a store with slow answers, and on a
real ZooKeeper.
"""

import pytest
import trio

from minicontroller.admin.policy.runner import PolicyRunner
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.topics import decode_topic, encode_topic
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.delete_topics import DeleteTopicsRequest
from minicontroller.store.base import Create, Delete, SetData, Store
from tests.rules.reading import rules
from tests.store.worlds import in_three_worlds
from tests.support.config_znodes import LEFTOVER, configs_in
from tests.support.small_cluster import BROKER, SmallCluster, answer_of, context_for

BROKER_IDS = (1,)
pytestmark = in_three_worlds


async def test_a_refused_commit_does_not_come_back(cluster: SmallCluster, other: Store) -> None:
    """The store and the node hold the change that was acknowledged last, however often commits
    before it are refused.
    """
    await cluster.create("t")
    for number in range(20):
        await other.commit([Create(layout.topic_config_path(f"left-{number}"), LEFTOVER)])
        async with trio.open_nursery() as clients:
            clients.start_soon(cluster.create, f"left-{number}")
            clients.start_soon(cluster.change_config, "t", "retention.ms", str(2 * number))
            for _ in range(50):
                if not cluster.controller.writer.in_flight:
                    await trio.lowlevel.checkpoint()
            clients.start_soon(cluster.change_config, "t", "retention.ms", str(2 * number + 1))
        image = cluster.controller.image
        assert await configs_in(other, "topics/t") == dict(image.topics["t"].configs)
        assert await configs_in(other, f"topics/left-{number}") == {}
        assert f"left-{number}" in image.topics


@pytest.mark.parametrize("name", ["1", ""])
async def test_concurrent_changes_of_different_keys_all_survive(cluster: SmallCluster, other: Store, name: str) -> None:
    """Concurrent changes of different keys of one broker, or of the cluster default, all take
    effect, even if the first of them creates the znode.
    """
    codes: list[int] = []

    async def change(number: int) -> None:
        codes.append(await cluster.change_config(name, f"my.key.{number}", str(number), resource_type=BROKER))

    async with trio.open_nursery() as clients:
        for number in range(60):
            clients.start_soon(change, number)
    assert codes == [ErrorCode.NONE] * 60
    found = await configs_in(other, f"brokers/{name or layout.DEFAULT_ENTITY}")
    assert found == {f"my.key.{number}": str(number) for number in range(60)}


async def test_configs_that_others_write_are_kept(cluster: SmallCluster, other: Store) -> None:
    """A tool that writes to ZooKeeper without a notification is not overwritten: the change is
    decided upon what it wrote.
    """
    await cluster.create("t")
    await cluster.change_config("1", "my.key", "1", resource_type=BROKER)
    for path in ("topics/t", "brokers/1"):
        await other.commit([SetData(f"/config/{path}", LEFTOVER)])
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.NONE
    assert await cluster.change_config("1", "your.key", "2", resource_type=BROKER) == ErrorCode.NONE
    assert await configs_in(other, "topics/t") == {"segment.ms": "7", "retention.ms": "5"}
    assert await configs_in(other, "brokers/1") == {"segment.ms": "7", "your.key": "2"}


async def test_a_topic_without_configs_can_be_altered(cluster: SmallCluster, other: Store) -> None:
    """The znode of its configs is gone, or never was: it is made, as Kafka makes it."""
    await cluster.create("t")
    await other.commit([Delete(layout.topic_config_path("t"))])
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.NONE
    assert await configs_in(other, "topics/t") == {"retention.ms": "5"}
    assert await cluster.change_config("t", "retention.ms", "6") == ErrorCode.NONE
    assert await configs_in(other, "topics/t") == {"retention.ms": "6"}


async def test_a_topic_that_others_have_marked_is_waited_for(cluster: SmallCluster, other: Store) -> None:
    """K4-D3: deleting a topic that another program has just marked in ZooKeeper waits for that
    deletion and succeeds.
    """
    await cluster.create("t", "u")
    await other.commit([Create(layout.delete_topic_path("t"))])
    assert await cluster.delete("t", "u") in ([ErrorCode.NONE] * 2, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0])
    assert set(cluster.seen(1).topics) == set()


async def test_a_topic_that_others_grow_is_grown_from_there(cluster: SmallCluster, other: Store) -> None:
    """The topic's znode is written upon the version that was read: partitions of others keep their
    replicas, and get leaders.
    """
    await cluster.create("t")
    topic = cluster.controller.image.topics["t"]
    theirs = encode_topic(topic.with_partitions({1: topic.partitions[0]}))
    await other.commit([SetData(layout.topic_path("t"), theirs)])
    assert await cluster.grow("t", 2) == ErrorCode.INVALID_PARTITIONS
    assert await cluster.grow("t", 4) == ErrorCode.NONE
    await cluster.until(lambda: cluster.controller.image.topics["t"].is_complete)
    entry = await other.get(layout.topic_path("t"))
    assert entry is not None
    assert len(decode_topic("t", entry.data).partitions) == 4


async def test_a_topic_that_others_made_exists(cluster: SmallCluster, other: Store) -> None:
    """K4-C8a: creating a topic that was just written to ZooKeeper is refused as already existing,
    and the other topics of the request are created.
    """
    await cluster.create("t")
    data = encode_topic(cluster.controller.image.topics["t"])
    await other.commit([Create(layout.topic_path("u"), data)])
    assert await cluster.create("u", "v") == [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]


async def test_who_may_not_delete_is_refused_while_the_owner_deletes(cluster: SmallCluster) -> None:
    """Two principals who delete a topic at the same time are judged separately; the one that is
    allowed waits for the same deletion (K4-D3).
    """
    node = cluster.controller_node
    node.port.policy = PolicyRunner(
        rules=rules(
            "[[rule]]\nname = 'owned'\noperations = 'delete'\ncondition = 'principal in [\"User:owner\", \"User:friend\"]'"
        )
    )
    codes: dict[str, list[int]] = {"owner": [], "friend": [], "stranger": []}

    async def delete(who: str) -> None:
        context = context_for(node, ApiKey.DELETE_TOPICS, 5)
        context.origin.principal = f"User:{who}"
        request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=5_000)
        codes[who].append((await answer_of(node, context, request)).responses[0].error_code)

    for _ in range(10):
        assert await cluster.create("t") == [0]
        async with trio.open_nursery() as clients:
            for who in codes:
                clients.start_soon(delete, who)
        while "t" in cluster.controller.image.topics:  # noqa: ASYNC110 - its clean-up tells nobody
            await trio.sleep(0.001)
    gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert set(codes["stranger"]) <= {ErrorCode.POLICY_VIOLATION, gone}
    assert ErrorCode.POLICY_VIOLATION in codes["stranger"]
    for one, other in zip(codes["owner"], codes["friend"], strict=True):
        assert {one, other} <= {0, gone} and 0 in {one, other}

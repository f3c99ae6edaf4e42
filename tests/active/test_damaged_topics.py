"""What another program writes into the znodes of a topic is carried out or kept away: the topic
keeps its id, its partitions, its leaders and its name.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from minicontroller.cluster.entities import Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.cluster.znodes.topics import encode_topic
from minicontroller.controller.active.topic_watches import TopicWatches
from minicontroller.network.serving.api import response_of
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.compiler import decoder
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from minicontroller.store.base import Create, Delete, SetData, Store
from minicontroller.store.memory import MemoryStore
from tests.active.topic_znodes import (
    PATH,
    content,
    created,
    is_served,
    state,
    stored,
    with_partitions,
)
from tests.store.worlds import MemoryWorld
from tests.support.config_znodes import notification
from tests.support.small_cluster import TOPIC, SmallCluster, context_for
from tests.support.specs import by_key

DAMAGES: dict[str, Callable[[Topic], bytes | None]] = {
    "not json": lambda _: b"not json",
    "null": lambda _: None,
    "empty": lambda _: b"",
    "a list": lambda _: b"[]",
    "no partitions": lambda _: b'{"version":1}',
    "partitions as a list": lambda _: b'{"version":1,"partitions":[[1,2,3]]}',
    "brokers as text": partial(with_partitions, p1=["1", "2"]),
    "a broker out of range": partial(with_partitions, p1=[2**40]),
    "one broker twice": partial(with_partitions, p1=[1, 1]),
    "no replicas": partial(with_partitions, p2=[]),
    "a gap": partial(with_partitions, p5=[1, 2]),
    "a partition less": partial(with_partitions, p1=None),
    "no partition at all": partial(with_partitions, p0=None, p1=None),
    "an id that is none": lambda topic: json.dumps(content(topic) | {"topic_id": "?"}).encode(),
}
"""Contents of the znode of a topic with two partitions."""


async def test_a_partition_that_a_tool_adds_gets_a_leader(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """Within a second, as at Kafka, on every node; also with no other change."""
    topic = await created(cluster)
    await trio.sleep(1)
    await other.commit([SetData(PATH, with_partitions(topic, p2=[1, 2], p3=[3]))])
    with trio.fail_after(1):
        await cluster.until(lambda: is_served(cluster, topic, 4))
    assert (await stored(other)).partitions[3].replicas == (3,)


@pytest.mark.parametrize("name", DAMAGES)
async def test_a_damaged_topic_is_served(
    name: str, cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """It keeps its id, its partitions and its leaders on every node, also with another controller
    and after a broker's death. It cannot be created, and not grow until the znode is right again.
    """
    topic = await created(cluster)
    await trio.sleep(1)
    damage = DAMAGES[name](topic)
    await other.commit([SetData(PATH, damage)])
    await trio.sleep(1)
    for is_another in (False, True):
        if is_another:
            await cluster.kill(killed := cluster.controller.broker_id)
            await cluster.until_quiet()
            assert is_served(cluster, topic)
            await cluster.start_in_turn(killed)
            await trio.sleep(1)
        assert is_served(cluster, topic)
        assert await cluster.grow("t", 3) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert await cluster.reassign("t", {0: [2]}) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
        assert await cluster.create("t") == [ErrorCode.TOPIC_ALREADY_EXISTS]
    entry = await other.get(PATH)
    assert entry is not None and entry.data == damage, "what cannot be read is not written over"
    await other.commit([SetData(PATH, encode_topic(topic))])
    await trio.sleep(1)
    assert await cluster.grow("t", 3) == ErrorCode.NONE
    assert is_served(cluster, topic, 3)


async def test_a_damaged_topic_can_be_deleted(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """Also one of which nobody knows anything, whose name is taken until then."""
    await created(cluster)
    await other.commit([SetData(PATH, b"?")])
    await trio.sleep(1)
    assert await cluster.delete("t") == [ErrorCode.NONE]
    await cluster.until(lambda: "t" not in cluster.controller.image.topics)
    topic = await created(cluster)
    for broker_id in (1, 2, 3):
        await cluster.kill(broker_id)
    await other.commit([SetData(PATH, b"?")])
    await cluster.start_in_turn(1, 2, 3)
    assert await cluster.create("t") == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert await cluster.grow("t", 3) == ErrorCode.INVALID_TOPIC_EXCEPTION
    await other.commit([SetData(PATH, encode_topic(topic))])
    await cluster.until(lambda: is_served(cluster, topic))
    await other.commit([SetData(PATH, b"?")])
    await trio.sleep(1)
    assert await cluster.delete("t") == [ErrorCode.NONE]
    await cluster.until(lambda: "t" not in cluster.controller.image.topics)
    assert await cluster.create("t") == [ErrorCode.NONE]


async def test_replicas_stay_where_they_are(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """Replicas that another program writes into the assignment are not taken, as at Kafka: the
    partition is served as before, and the next change of the topic writes its replicas again.
    """
    topic = await created(cluster)
    await trio.sleep(1)
    await other.commit([SetData(PATH, with_partitions(topic, p0=[3]))])
    await trio.sleep(1)
    assert is_served(cluster, topic)
    assert await cluster.grow("t", 3) == ErrorCode.NONE
    assert (await stored(other)).partitions[0].replicas == topic.partitions[0].replicas


@pytest.mark.parametrize("damage", [None, b"?", state([]), state([99]), state([1, 2, 3], 2**31 - 1)])
async def test_a_lost_state_is_written_again(
    damage: bytes | None, cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A state that another program damaged or removed (None), also one that no partition can have,
    is written again by the next controller, as its node knew it, in a higher leader epoch.
    """
    topic = await created(cluster)
    path = layout.partition_state_path("t", 0)
    await other.commit([Delete(path) if damage is None else SetData(path, damage)])
    await cluster.elect_anew()
    await trio.sleep(1)
    assert is_served(cluster, topic)
    now, before = cluster.controller.image.topics["t"].partitions[0], topic.partitions[0]
    assert (now.leader, now.isr, now.leader_epoch) == (before.leader, before.isr, before.leader_epoch + 1)
    entry = await other.get(path)
    assert entry is not None and json.loads(entry.data or b"")["leader_epoch"] == now.leader_epoch


async def test_a_state_that_cannot_be_written_is_tried_ever_less_often(
    cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """Below an ephemeral znode of another program no state can be written: the controller tries it
    now and then, and succeeds soon after that znode is gone.
    """
    topic = await created(cluster)
    parent = layout.partitions_path("t")
    paths = [layout.partition_state_path("t", 0), layout.partition_state_path("t", 1)]
    await other.commit([Delete(path) for state in paths for path in (state, state.rpartition("/")[0])])
    await other.commit([Delete(parent), Create(parent, ephemeral=True)])
    await other.commit([SetData(PATH, encode_topic(topic))])  # which has the controller look
    await trio.sleep(60)
    assert 0 < caplog.text.count("is lost") < 1000  # 20 attempts, each planned a few times
    await other.commit([Delete(parent)])
    await trio.sleep(6)
    assert is_served(cluster, topic)
    assert all([await other.get(path) for path in paths])


async def test_configs_are_read_without_a_notification(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """What another program writes into the configs of a topic is known at once, also where it
    deletes the znode and creates it again.
    """
    await created(cluster)
    path = layout.topic_config_path("t")

    def has(value: str | None) -> Callable[[], bool]:
        return lambda: cluster.controller.image.topics["t"].configs.get("retention.ms") == value

    for number in range(3):
        await trio.sleep(1)
        await other.commit([SetData(path, encode_config({"retention.ms": str(number)}))])
        with trio.fail_after(1):
            await cluster.until(has(str(number)))
    await other.commit([Delete(path)])
    await cluster.until(has(None))
    await other.ensure(path)
    await other.commit([SetData(path, encode_config({"retention.ms": "9"}))])
    await cluster.until(has("9"))


async def test_a_topic_that_is_away_for_a_moment_stays_watched(
    memory: MemoryWorld, other: Store, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """If another program deletes the znode of a topic, and creates it again before the controller
    has noticed that it is gone, what is written there later is seen.
    """
    store, calls = await memory.open(), list[str]()
    image = Image().with_topics([Topic("t", version=0, partitions=(Partition((1,)),))])
    watches = TopicWatches(store, lambda: image, topics_changed=calls.extend, configs_changed=lambda _: None)
    watches.watch(["t"])
    await other.ensure(PATH)
    nursery.start_soon(watches.run)
    for operation in (Delete(PATH), Create(PATH), SetData(PATH, b"1"), Delete(PATH), Create(PATH), SetData(PATH, b"2")):
        await trio.sleep(1)
        calls.clear()
        await other.commit([operation])
        await trio.sleep(1)
        assert calls == ["t"], operation


async def test_a_former_controller_watches_no_topic(cluster: SmallCluster, autojump_clock: object) -> None:
    """However often a node is elected in one session, its watches are those of one controller."""
    await created(cluster)
    for _ in range(5):
        await cluster.elect_anew()
        await trio.sleep(1)
    stores = [member.store for member in cluster.members.values()]
    watches = [
        len(each.watches.there.get(path, {}))
        for each in stores
        if isinstance(each, MemoryStore)
        for path in (PATH, layout.topic_config_path("t"))
    ]
    assert sorted(watches) == [0, 0, 0, 0, 1, 1]


async def test_changes_go_on_beside_unreadable_defaults(
    world: MemoryWorld, nursery: trio.Nursery, tmp_path: Path, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """Configs of all brokers that cannot be read are ignored with a line, also where an audit log
    records each change with the defaults in force.
    """
    cluster = SmallCluster(nursery, world, settings={"audit.dir": str(tmp_path)})
    await cluster.start(1)
    await cluster.until_quiet()
    other, path = await world.open(), layout.broker_config_path(layout.DEFAULT_ENTITY)
    await other.commit(
        [Create(path, b'{"version":1,"config":{"log.retention.ms":1000}}'), notification("brokers/<default>")]
    )
    await cluster.until(lambda: "the configs of brokers/<default> are ignored" in caplog.text)
    assert await cluster.create("t") == [ErrorCode.NONE]
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.NONE
    assert await cluster.grow("t", 2) == ErrorCode.NONE
    assert await cluster.delete("t") == [ErrorCode.NONE]


async def describe(cluster: SmallCluster, name: str = "t", kind: int = TOPIC) -> Any:
    """Ask the controller's node for the configs of a resource: the row of the answer."""
    node = cluster.controller_node
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name)], include_synonyms=True
    )
    context = context_for(node, ApiKey.DESCRIBE_CONFIGS, 4)
    answer: DescribeConfigsResponse = await response_of(by_key(node)[context.api_key].handler(context, request))
    result = answer.results[0]
    return decoder(DescribeConfigsResult, 4)(result, 0)[0] if isinstance(result, bytes) else result


async def test_stored_configs_that_no_topic_can_have(
    cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A stored value that is invalid is named in the log with its topic, and the configs are
    answered with an error that names it, as Kafka answers -1; the value is never shown as if it
    were in force. A change beside it is refused, and its removal accepted.
    """
    await created(cluster)
    path = layout.topic_config_path("t")
    for key, value in (("retention.ms", "abc"), ("segment.bytes", "1"), ("cleanup.policy", "nope")):
        await other.commit([SetData(path, encode_config({key: value, "flush.ms": "7"}))])
        await trio.sleep(1)
        row = await describe(cluster)
        assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and not row.configs
        assert f"Invalid value {value} for configuration {key}" in row.error_message
        assert f"topic t has a stored config that is not in force: Invalid value {value}" in caplog.text
        assert await cluster.change_config("t", "flush.ms", "8") == ErrorCode.INVALID_CONFIG
        assert await cluster.change_config("t", key, None) == ErrorCode.NONE
        assert (await describe(cluster)).error_code == ErrorCode.NONE


async def test_a_stored_config_that_nobody_knows(
    cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """It is shown without its value, as by Kafka, and named in the log; a change beside it is
    refused.
    """
    await created(cluster)
    await other.commit([SetData(layout.topic_config_path("t"), encode_config({"no.such.key": "hush"}))])
    await trio.sleep(1)
    (row,) = (each for each in (await describe(cluster)).configs if each.config_source == 1)
    assert (row.name, row.value, row.is_sensitive, row.config_type) == ("no.such.key", None, True, 0)
    assert "topic t has a stored config that is not in force: no.such.key is no key of a topic" in caplog.text
    assert "hush" not in caplog.text
    assert await cluster.change_config("t", "flush.ms", "8") == ErrorCode.INVALID_CONFIG

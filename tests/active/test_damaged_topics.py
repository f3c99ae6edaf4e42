"""What another program writes into the znodes of a topic is carried out or kept away: the topic
keeps its id, its partitions, its leaders and its name.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from minicontroller.controller.active.topic_watches import TopicWatches
from minicontroller.controller.handlers import SPECS
from minicontroller.controller.metadata.entities import NO_TOPIC_ID, Partition, Topic
from minicontroller.controller.metadata.image import Image
from minicontroller.controller.store.base import Create, Delete, SetData, Store
from minicontroller.controller.store.memory import MemoryStore
from minicontroller.controller.znodes import layout
from minicontroller.controller.znodes.configs import encode_config
from minicontroller.controller.znodes.topics import decode_topic, encode_topic, uuid_text
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.compiler import decoder
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.store.worlds import MemoryWorld, in_both_worlds
from tests.support.config_znodes import notification
from tests.support.small_cluster import TOPIC, SmallCluster, context_for

PATH = layout.topic_path("t")
OTHER_ID = uuid_text(b"another topic id")


def content(topic: Topic) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(encode_topic(topic))
    return value


def without_id(topic: Topic) -> bytes:
    return json.dumps({"version": 1, "partitions": content(topic)["partitions"]}).encode()


def with_partitions(topic: Topic, **rows: object) -> bytes:
    """The topic's znode with these partitions changed or added (`p3=[1]`), or left out (None)."""
    value = content(topic)
    value["partitions"] |= {key[1:]: row for key, row in rows.items()}
    value["partitions"] = {key: row for key, row in value["partitions"].items() if row is not None}
    return json.dumps(value).encode()


def with_another_id(topic: Topic, **rows: object) -> bytes:
    return json.dumps(json.loads(with_partitions(topic, **rows)) | {"topic_id": OTHER_ID}).encode()


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


async def stored_data(other: Store) -> bytes | None:
    entry = await other.get(PATH)
    return None if entry is None else entry.data


async def stored(other: Store) -> Topic:
    entry = await other.get(PATH)
    assert entry is not None
    return decode_topic("t", entry.data, entry.stat.version)


def shown(cluster: SmallCluster) -> list[Topic | None]:
    """The topic as each node shows it, without what the controller alone knows."""
    return [member.node.cache.image.topics.get("t") for member in cluster.members.values()]


def is_served(cluster: SmallCluster, topic: Topic, partitions: int = 2) -> bool:
    """Whether every node shows the topic with its id, its partitions and their leaders."""
    return all(
        seen is not None
        and seen.topic_id == topic.topic_id
        and [each.replicas for each in seen.partitions[:2]] == [each.replicas for each in topic.partitions]
        and len(seen.partitions) == partitions
        and seen.is_complete
        for seen in shown(cluster)
    )


async def created(cluster: SmallCluster) -> Topic:
    await cluster.create("t", partitions=2, replication_factor=3)
    return cluster.controller.image.topics["t"]


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


@pytest.mark.parametrize("is_elected_anew", [False, True])
async def test_a_copied_topic_gets_an_id_of_its_own(
    is_elected_anew: bool, cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic keeps its id if another program copies its znode, also when the copy is deleted."""
    topic = await created(cluster)
    if is_elected_anew:
        await cluster.kill(cluster.controller.node.broker_id)
    await other.commit([Create(layout.topic_path("a-copy"), encode_topic(topic))])
    await other.commit([Create(layout.topic_path("copy"), encode_topic(topic))])
    if is_elected_anew:
        await cluster.until_quiet()
    await cluster.until(lambda: "copy" in cluster.controller.image.topics)
    await cluster.until_quiet()
    assert is_served(cluster, topic)
    assert f"/brokers/topics/copy has the id of topic t, {uuid_text(topic.topic_id)}: topic copy gets" in caplog.text
    image = cluster.controller.image
    assert image.topics["copy"].topic_id not in (NO_TOPIC_ID, topic.topic_id)
    await cluster.delete("copy")
    for member in cluster.members.values():
        found = member.node.cache.image.topic_by_id(topic.topic_id)
        assert found is not None
        assert found.name == "t"


@pytest.mark.parametrize("is_elected_anew", [False, True])
async def test_an_id_that_a_tool_drops_is_written_again(
    is_elected_anew: bool, cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic keeps the id that the controller knows, or before its epoch its node, also if the
    topic grows at the same time; the log names the topic.
    """
    topic = await created(cluster)
    killed = cluster.controller.node.broker_id
    if is_elected_anew:
        await cluster.kill(killed)
    await other.commit([SetData(PATH, without_id(topic))])
    if is_elected_anew:
        await cluster.until_quiet()
        await cluster.start_in_turn(killed)
    assert await cluster.grow("t", 4) == ErrorCode.NONE
    await cluster.until(lambda: is_served(cluster, topic, 4))
    assert (await stored(other)).topic_id == topic.topic_id
    assert f"the id of topic t in {PATH}: {uuid_text(topic.topic_id)} is written there again" in caplog.text


async def write_another_id(other: Store, topic: Topic) -> None:
    await other.commit([SetData(PATH, with_another_id(topic))])


async def remove_states(other: Store, topic: Topic) -> None:
    """Delete the znode above the states, with all below it."""
    places = [layout.partition_path("t", index) for index in range(len(topic.partitions))]
    states = [layout.partition_state_path("t", index) for index in range(len(topic.partitions))]
    await other.commit([Delete(path) for path in (*states, *places, layout.partitions_path("t"))])


async def damage(other: Store, _topic: Topic) -> None:
    await other.commit([SetData(PATH, b"?")])


async def create_again(other: Store, topic: Topic, *, rewrites: int = 0) -> None:
    """Do what another controller does, or a Kafka, that deletes the topic and creates it with
    leaders in epoch 5. With `rewrites`, its znode has as high a version as the former one.
    """
    await remove_states(other, topic)
    parents = [layout.partitions_path("t"), *(layout.partition_path("t", index) for index in range(2))]
    states = [Create(layout.partition_state_path("t", index), state([1, 2, 3], 5)) for index in range(2)]
    await other.commit([Delete(PATH), Create(PATH, with_another_id(topic)), *map(Create, parents), *states])
    for _ in range(rewrites):
        await write_another_id(other, topic)


Deed = Callable[[Store, Topic], Awaitable[None]]
REWRITES: dict[str, Sequence[Deed]] = {
    "another id": [write_another_id],
    "another id, then no states": [write_another_id, remove_states],
    "no states, then another id": [remove_states, write_another_id],
    "damage, then no states": [damage, remove_states],
}
REPLACEMENTS = [(name, after) for name, deeds in REWRITES.items() for after in (None, *range(len(deeds) + 1))]
"""The deeds, and after how many of them the controller is replaced, if it is."""


@pytest.mark.parametrize("pause", [0, 1])
@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=str)
async def test_another_id_is_not_taken(
    replacement: tuple[str, int | None], pause: int, cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A topic keeps its id, its partitions and its leaders, whatever another program writes and
    removes: while one controller runs, from the moment of its creation, and when the controller is
    killed before, between and after that.
    """
    name, replaced_after = replacement
    topic = await created(cluster)
    for number, deed in enumerate([*REWRITES[name], None]):
        await trio.sleep(pause)
        if number == replaced_after:
            await cluster.kill(cluster.controller.node.broker_id)
        if deed is not None:
            await deed(other, topic)
    if (await stored_data(other)) == b"?":
        await trio.sleep(pause)
        await other.commit([SetData(PATH, with_another_id(topic))])
    await cluster.until_quiet()
    await trio.sleep(1)
    assert is_served(cluster, topic)
    assert (await stored(other)).topic_id == topic.topic_id


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("rewrites", [0, 2])
async def test_a_topic_that_was_created_again_is_another(
    rewrites: int, is_replaced: bool, cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """It has the id and the leader epochs that another controller gave it, also if its znode has
    the version of the former one, and the next controller knows it by that id, too.
    """
    topic = await created(cluster)
    await write_another_id(other, topic)
    await trio.sleep(1)
    assert (await stored(other)).version == 2
    if is_replaced:
        await cluster.kill(cluster.controller.node.broker_id)
    await create_again(other, topic, rewrites=rewrites)
    await cluster.until_quiet()
    await trio.sleep(1)
    now = msgspec.structs.replace(topic, topic_id=b"another topic id")
    assert is_served(cluster, now)
    assert [each.leader_epoch for each in cluster.controller.image.topics["t"].partitions] == [5 + is_replaced] * 2
    await other.commit([SetData(PATH, encode_topic(topic))])
    await cluster.elect_anew()
    await trio.sleep(1)
    assert is_served(cluster, now)


@in_both_worlds
async def test_an_id_is_told_by_the_transaction_that_created_the_topic(cluster: SmallCluster, other: Store) -> None:
    """In both stores a topic keeps its id until its znode is created again, which another
    controller may have done while there was none here.
    """
    topic = await created(cluster)
    await write_another_id(other, topic)
    await remove_states(other, topic)
    await cluster.until(lambda: _epochs(cluster) == [1, 1] and is_served(cluster, topic))
    await cluster.kill(1)
    await write_another_id(other, topic)
    await cluster.until_quiet()
    await cluster.until(lambda: is_served(cluster, topic) and not cluster.controller.image.topics["t"].lacks_id)
    assert (await stored(other)).topic_id == topic.topic_id
    await cluster.kill(2)
    await create_again(other, topic)
    await cluster.until_quiet()
    await cluster.until(lambda: is_served(cluster, msgspec.structs.replace(topic, topic_id=b"another topic id")))


def _epochs(cluster: SmallCluster) -> list[int]:
    return [each.leader_epoch for each in cluster.controller.image.topics["t"].partitions]


async def test_the_id_of_a_topic_of_which_nodes_do_not_know_all(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A partition that never had a leader is unknown to the nodes; the topic keeps its id."""
    topic = await created(cluster)
    await trio.sleep(1)
    await other.commit([SetData(PATH, with_partitions(topic, p2=[99], p3=[1, 2]))])
    await trio.sleep(1)
    assert [len(each.partitions) for each in shown(cluster) if each] == [4, 4, 4]
    for contents in (with_another_id(topic, p2=[99], p3=[1, 2]), b"?"):
        await cluster.kill(cluster.controller.node.broker_id)
        await other.commit([SetData(PATH, contents)])
        await cluster.until_quiet()
        await trio.sleep(1)
        assert cluster.controller.image.topics["t"].topic_id == topic.topic_id


async def test_an_id_that_nobody_knows(
    cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """If no node that knew the id is left, a topic that was led gets a new one, as at Kafka, and
    the log says what that means.
    """
    topic = await created(cluster)
    for broker_id in (1, 2, 3):
        await cluster.kill(broker_id)
    await other.commit([SetData(PATH, without_id(topic))])
    await cluster.start_in_turn(1, 2, 3)
    await cluster.until(lambda: all(seen is not None and seen.topic_id != NO_TOPIC_ID for seen in shown(cluster)))
    assert [record.levelno for record in caplog.records if "and no node knows one" in record.getMessage()] == [
        logging.ERROR
    ]


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
            await cluster.kill(killed := cluster.controller.node.broker_id)
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


def state(isr: list[int], leader_epoch: int = 0) -> bytes:
    return json.dumps(
        {"controller_epoch": 1, "leader": isr[0] if isr else 1, "version": 1, "leader_epoch": leader_epoch, "isr": isr}
    ).encode()


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
        len(each.watches.data.get(path, {}))
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
    await cluster.until(lambda: "the configs of broker <default> are ignored" in caplog.text)
    assert await cluster.create("t") == [ErrorCode.NONE]
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.NONE
    assert await cluster.grow("t", 2) == ErrorCode.NONE
    assert await cluster.delete("t") == [ErrorCode.NONE]


def describe(cluster: SmallCluster, name: str = "t", kind: int = TOPIC) -> Any:
    """Ask the controller's node for the configs of a resource: the row of the answer."""
    node = cluster.controller_node
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name)], include_synonyms=True
    )
    answer = SPECS[ApiKey.DESCRIBE_CONFIGS].handler(node, context_for(node, ApiKey.DESCRIBE_CONFIGS, 4), request)
    assert isinstance(answer, DescribeConfigsResponse), "one resource is answered at once"
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
        row = describe(cluster)
        assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR and not row.configs
        assert f"Invalid value {value} for configuration {key}" in row.error_message
        assert f"topic t has a stored config that is not in force: Invalid value {value}" in caplog.text
        assert await cluster.change_config("t", "flush.ms", "8") == ErrorCode.INVALID_CONFIG
        assert await cluster.change_config("t", key, None) == ErrorCode.NONE
        assert describe(cluster).error_code == ErrorCode.NONE


async def test_a_stored_config_that_nobody_knows(
    cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """It is shown without its value, as by Kafka, and named in the log; a change beside it is
    refused.
    """
    await created(cluster)
    await other.commit([SetData(layout.topic_config_path("t"), encode_config({"no.such.key": "hush"}))])
    await trio.sleep(1)
    (row,) = (each for each in describe(cluster).configs if each.config_source == 1)
    assert (row.name, row.value, row.is_sensitive, row.config_type) == ("no.such.key", None, True, 0)
    assert "topic t has a stored config that is not in force: no.such.key is no key of a topic" in caplog.text
    assert "hush" not in caplog.text
    assert await cluster.change_config("t", "flush.ms", "8") == ErrorCode.INVALID_CONFIG

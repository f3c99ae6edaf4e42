"""A topic keeps its id, whatever another program writes into its znodes, until it is deleted and
created again.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import pytest
import trio

from minicontroller.cluster.entities import NO_TOPIC_ID, Topic
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.topics import encode_topic, uuid_text
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import Create, Delete, SetData, Store
from tests.active.topic_znodes import (
    PATH,
    created,
    is_served,
    shown,
    state,
    stored,
    stored_data,
    with_another_id,
    with_partitions,
    without_id,
)
from tests.store.worlds import in_both_worlds
from tests.support.small_cluster import SmallCluster


@pytest.mark.parametrize("is_elected_anew", [False, True])
async def test_a_copied_topic_gets_an_id_of_its_own(
    is_elected_anew: bool, cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic keeps its id if another program copies its znode, also when the copy is deleted."""
    topic = await created(cluster)
    if is_elected_anew:
        await cluster.kill(cluster.controller.broker_id)
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
    killed = cluster.controller.broker_id
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
            await cluster.kill(cluster.controller.broker_id)
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
        await cluster.kill(cluster.controller.broker_id)
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
        await cluster.kill(cluster.controller.broker_id)
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

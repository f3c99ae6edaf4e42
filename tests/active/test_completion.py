"""The time at which a change is answered, and what the answer says of the other nodes."""

from functools import partial

import pytest
import trio
import trio.testing

from minicontroller.controller.active.jobs import Draft
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.store.base import SetData, Store
from tests.store.worlds import MemoryWorld, on_zookeeper
from tests.support.config_znodes import notification
from tests.support.small_cluster import BROKER, SmallCluster, answer_of, context_for

RETENTION = "log.retention.ms"


async def set_default(cluster: SmallCluster, value: str) -> int:
    """Set the default retention of all brokers, by way of the controller. Return the error code."""
    return await cluster.change_config("", RETENTION, value, resource_type=BROKER)


def in_force(cluster: SmallCluster) -> list[str | None]:
    """Return the retention that is in force at each node, in the order of their ids."""
    return [member.node.dynamic_configs.current.text(RETENTION) for _, member in sorted(cluster.members.items())]


async def changed_everywhere(cluster: SmallCluster, *, times: int) -> None:
    for number in range(times):
        value = str(100_000 + number)
        assert await set_default(cluster, value) == 0
        assert in_force(cluster) == [value] * 3


@pytest.mark.parametrize("one_process", [False, True], ids=["wire", "one process"])
async def test_no_node_answers_with_an_old_config(
    one_process: bool, memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """K4-6a: a changed default is in force at every node when the change is acknowledged, time and
    again.
    """
    cluster = SmallCluster(nursery, memory, one_process=one_process)
    await cluster.start_in_turn(1, 2, 3)
    await changed_everywhere(cluster, times=20)


@on_zookeeper
async def test_no_node_answers_with_an_old_config_on_zookeeper(cluster: SmallCluster) -> None:
    """K4-6a: a changed default is in force everywhere on a real server, too, where each node reads
    by a connection of its own.
    """
    await changed_everywhere(cluster, times=20)


async def test_the_controller_itself_has_the_config(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """With metadata.completion=local a changed default is in force at the controller when it is
    acknowledged, and elsewhere soon.
    """
    cluster = SmallCluster(nursery, memory, settings={"metadata.completion": "local"})
    await cluster.start_in_turn(1, 2, 3)
    assert await set_default(cluster, "5") == 0
    assert in_force(cluster)[0] == "5"
    await cluster.until(lambda: in_force(cluster) == ["5"] * 3)


async def test_a_node_without_the_store_is_waited_for(
    cluster: SmallCluster, memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A change of configs waits for a node that has lost the store and would answer with the old
    value; that node still receives changes of topics.
    """
    await memory.suspend(cluster.members[3].store)
    answers: list[int] = []

    async def change() -> None:
        answers.append(await set_default(cluster, "5"))

    nursery.start_soon(change)
    await trio.sleep(5)
    assert await cluster.create("t", replication_factor=2) == [0]
    assert "t" in cluster.seen(3).topics
    assert answers == []
    await memory.resume(cluster.members[3].store)
    await cluster.until(lambda: answers == [0])
    assert in_force(cluster) == ["5"] * 3


async def test_a_local_node_without_the_store_is_updated(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A node in the controller's process receives changed configs from the controller even while it
    has lost the store.
    """
    cluster = SmallCluster(nursery, memory, one_process=True)
    await cluster.start_in_turn(1, 2, 3)
    await memory.suspend(cluster.members[3].store)
    assert await set_default(cluster, "5") == 0
    assert in_force(cluster) == ["5"] * 3


async def test_a_node_that_goes_is_not_waited_for(cluster: SmallCluster, autojump_clock: object) -> None:
    """A change of configs is complete when all registered nodes have it: one that dies is waited
    for no longer.
    """
    cluster.unreachable.add(3)
    answers: list[int] = []

    async def change() -> None:
        answers.append(await set_default(cluster, "5"))

    async with trio.open_nursery() as clients:
        clients.start_soon(change)
        await trio.sleep(5)
        assert answers == []
        await cluster.kill(3)
    assert answers == [0]


async def test_a_node_that_cannot_be_told_is_waited_for(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """With metadata.completion=local, a change forwarded by a node that the controller cannot reach
    is complete once that node has received it.
    """
    cluster = SmallCluster(nursery, memory, settings={"metadata.completion": "local"})
    await cluster.start_in_turn(1, 2, 3)
    assert await create_by_way_of(cluster, 3, "first") == 0
    cluster.unreachable.add(3)
    assert await cluster.create("other") == [0]
    await trio.sleep(1)
    assert await create_by_way_of(cluster, 3, "unheard") == ErrorCode.REQUEST_TIMED_OUT
    assert await create_by_way_of(cluster, 2, "second") == 0
    cluster.unreachable.clear()
    await trio.sleep(1)
    assert await create_by_way_of(cluster, 3, "third") == 0


async def create_by_way_of(cluster: SmallCluster, broker_id: int, name: str) -> int:
    """Create a topic by a request that this node forwards, and return the error code."""
    node = cluster.controller_node
    context = context_for(node, ApiKey.CREATE_TOPICS, 7)
    context.forwarded, context.origin.received_node = True, broker_id
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=1000
    )
    code: int = (await answer_of(node, context, request)).topics[0].error_code
    assert (context.notes.update_number >= 0) == (code == 0)
    return code


@pytest.mark.parametrize("completion", ["local", "cluster"])
async def test_a_node_that_is_not_registered_waits_for_what_it_is_told(
    completion: str, memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A node that is cut off from the store still forwards. The controller does not wait for it;
    the answer names the update that the node must receive before it answers further requests.
    """
    cluster = SmallCluster(nursery, memory, settings={"metadata.completion": completion})
    await cluster.start_in_turn(1, 2, 3)
    await cluster.kill(3)
    await cluster.until(lambda: not cluster.controller.image.is_live(3))
    node = cluster.controller_node
    context = context_for(node, ApiKey.CREATE_TOPICS, 7)
    context.forwarded, context.origin.received_node = True, 3
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    answer = await answer_of(node, context, CreateTopicsRequest(topics=[topic], timeout_ms=1000))
    assert answer.topics[0].error_code == 0
    assert context.notes.update_number == cluster.controller.propagation.expect_update(3) >= 0


@pytest.mark.parametrize("completion", ["local", "cluster"])
async def test_a_topic_that_is_deleted_meanwhile_was_created(
    completion: str, memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """A creation or growth of a topic is answered with success at once even if the topic's deletion
    took effect in the same commit.
    """
    cluster = SmallCluster(nursery, memory, settings={"metadata.completion": completion})
    await cluster.start_in_turn(1, 2)
    answers: dict[str, list[int]] = {}

    async def create() -> None:
        answers["create"] = await cluster.create("t", timeout_ms=1_000_000)

    async def grow() -> None:
        answers["grow"] = [await cluster.grow("t", 3)]

    async def delete() -> None:
        answers["delete"] = await cluster.delete("t", timeout_ms=1_000_000)

    gate = trio.Event()

    async def plan(_draft: Draft) -> None:
        await gate.wait()

    async with trio.open_nursery() as clients:
        for ask in (partial(cluster.controller.writer.write, plan), create, grow, delete):
            clients.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        gate.set()
    assert trio.current_time() - began < 3
    assert answers == {"create": [0], "grow": [0], "delete": [0]}


async def test_a_refusal_is_the_controller_s(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """A controller that does not know that it was deposed refuses nothing by what it remembers: its
    successor may have changed it.
    """
    assert await cluster.create("t") == [0]
    await other.commit([SetData("/controller_epoch", b"7")])
    assert await cluster.create("t") == [41]
    await cluster.until_quiet()
    await other.commit([SetData("/controller_epoch", b"17")])
    assert await cluster.delete("unknown") == [41]


async def test_a_default_that_nobody_can_read_stays_in_force(
    memory: MemoryWorld, other: Store, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """If another program writes a cluster default that is not JSON, every node keeps the previous
    one.
    """
    cluster = SmallCluster(nursery, memory, one_process=True)
    await cluster.start_in_turn(1, 2, 3)
    assert await set_default(cluster, "5") == 0
    await other.commit([SetData("/config/brokers/<default>", b"garbage")])
    await other.commit([notification("brokers/<default>")])
    await trio.sleep(5)
    assert in_force(cluster) == ["5"] * 3
    await cluster.elect_anew()
    assert in_force(cluster) == ["5"] * 3

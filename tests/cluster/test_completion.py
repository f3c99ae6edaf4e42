"""What an answer says of the nodes that the client did not ask, and when it comes."""

from functools import partial

import pytest
import trio
import trio.testing

from minicontroller.controller.cluster.jobs import Draft
from minicontroller.controller.handlers import create_topics, incremental_alter_configs
from minicontroller.controller.store import layout
from minicontroller.controller.store.base import Create, SetData
from minicontroller.controller.store.memory import MemoryStore
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from minicontroller.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.cluster.small_cluster import SmallCluster, context_for
from tests.store.worlds import MemoryWorld, zookeeper_world
from tests.support.zookeeper import ZooKeeperServer

RETENTION = "log.retention.ms"


async def set_default(cluster: SmallCluster, key: str, value: str) -> int:
    """For all brokers, by way of the controller."""
    node = cluster.controller.node
    step = AlterableConfig(name=key, config_operation=0, value=value)
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=4, resource_name="", configs=[step])]
    )
    context = context_for(node, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    return (await incremental_alter_configs.handle(node, context, request)).responses[0].error_code


def in_force(cluster: SmallCluster, key: str) -> list[str | None]:
    return [member.node.dynamic_configs.current.text(key) for _, member in sorted(cluster.members.items())]


async def changed_everywhere(cluster: SmallCluster, *, times: int) -> None:
    for number in range(times):
        value = str(100_000 + number)
        assert await set_default(cluster, RETENTION, value) == 0
        assert in_force(cluster, RETENTION) == [value] * 3


@pytest.mark.parametrize("neighbours", [False, True], ids=["wire", "neighbours"])
async def test_no_node_answers_with_an_old_config(
    neighbours: bool, memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """K4-6: a changed default is in force at every node when it is acknowledged, time and again."""
    cluster = SmallCluster(nursery, memory, neighbours=neighbours)
    await cluster.start(1, 2, 3)
    await cluster.until_quiet()
    await changed_everywhere(cluster, times=20)


async def test_no_node_answers_with_an_old_config_on_zookeeper(zookeeper: ZooKeeperServer) -> None:
    """The same on a real server, where each node reads by a connection of its own."""
    async with zookeeper_world(zookeeper, "/completion") as world, trio.open_nursery() as nursery:
        cluster = SmallCluster(nursery, world)
        await cluster.start(1, 2, 3)
        await cluster.until_quiet()
        await changed_everywhere(cluster, times=20)
        nursery.cancel_scope.cancel()


async def test_the_controller_itself_has_the_config(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """With metadata.completion=local a changed default is in force at the controller when it is acknowledged, and elsewhere soon."""
    cluster = SmallCluster(nursery, memory, settings={"metadata.completion": "local"})
    await cluster.start(1)
    await cluster.until_quiet()
    await cluster.start(2, 3)
    await cluster.until_quiet()
    assert await set_default(cluster, RETENTION, "5") == 0
    assert in_force(cluster, RETENTION)[0] == "5"
    await cluster.until(lambda: in_force(cluster, RETENTION) == ["5"] * 3)


async def test_a_node_without_the_store_is_waited_for(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """It would answer with the old value; what needs no store it is told meanwhile."""
    cluster = SmallCluster(nursery, memory)
    await cluster.start(1)
    await cluster.until_quiet()
    await cluster.start(2, 3)
    await cluster.until_quiet()
    store = cluster.members[3].store
    assert isinstance(store, MemoryStore)
    memory.tree.suspend(store)
    answers: list[int] = []

    async def change() -> None:
        answers.append(await set_default(cluster, RETENTION, "5"))

    nursery.start_soon(change)
    await trio.sleep(5)
    assert await cluster.create("t", replication_factor=2) == [0]
    assert "t" in cluster.seen(3).topics
    assert answers == []
    memory.tree.resume(store)
    await cluster.until(lambda: answers == [0])
    assert in_force(cluster, RETENTION) == ["5"] * 3


async def test_a_neighbour_without_the_store_is_told(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """In one process the controller says what it has written: no node has to read it."""
    cluster = SmallCluster(nursery, memory, neighbours=True)
    await cluster.start(1)
    await cluster.until_quiet()
    await cluster.start(2, 3)
    await cluster.until_quiet()
    store = cluster.members[3].store
    assert isinstance(store, MemoryStore)
    memory.tree.suspend(store)
    assert await set_default(cluster, RETENTION, "5") == 0
    assert in_force(cluster, RETENTION) == ["5"] * 3


async def test_a_node_that_goes_is_not_waited_for(cluster: SmallCluster, autojump_clock: object) -> None:
    """A change of configs is complete when all who are registered have it."""
    cluster.unreachable.add(3)
    answers: list[int] = []

    async def change() -> None:
        answers.append(await set_default(cluster, RETENTION, "5"))

    async with trio.open_nursery() as clients:
        clients.start_soon(change)
        await trio.sleep(5)
        assert answers == []
        await cluster.kill(3)
    assert answers == [0]


async def test_a_node_that_cannot_be_told_is_waited_for(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """With metadata.completion=local it would answer nobody until it heard of what it forwarded; so the change is complete when it has."""
    cluster = SmallCluster(nursery, memory, settings={"metadata.completion": "local"})
    await cluster.start(1)
    await cluster.until_quiet()
    await cluster.start(2, 3)
    await cluster.until_quiet()
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
    """Create a topic by a request that this node forwards. Return its error code."""
    node = cluster.controller.node
    context = context_for(node, ApiKey.CREATE_TOPICS, 7)
    context.forwarded, context.received_node = True, broker_id
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=1000
    )
    code = (await create_topics.handle(node, context, request)).topics[0].error_code
    assert (context.told >= 0) == (code == 0)
    return code


@pytest.mark.parametrize("completion", ["local", "cluster"])
async def test_a_topic_that_is_deleted_meanwhile_was_created(
    completion: str, memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Both take effect in one commit, so no node ever shows the topic: its creator is told at once what is true, and so is who let it grow."""
    cluster = SmallCluster(nursery, memory, settings={"metadata.completion": completion})
    await cluster.start(1, 2)
    await cluster.until_quiet()
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
        for ask in (partial(cluster.controller.write, plan), create, grow, delete):
            clients.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        gate.set()
    assert trio.current_time() - began < 3
    assert answers == {"create": [0], "grow": [0], "delete": [0]}


async def test_a_refusal_is_the_controller_s(
    cluster: SmallCluster, memory: MemoryWorld, autojump_clock: object
) -> None:
    """Who was deposed without knowing it refuses nothing by what it remembers: its successor may have changed it."""
    assert await cluster.create("t") == [0]
    other = await memory.open()
    await other.commit([SetData("/controller_epoch", b"7")])
    assert await cluster.create("t") == [41]
    await cluster.until_quiet()
    await other.commit([SetData("/controller_epoch", b"17")])
    assert await cluster.delete("unknown") == [41]


async def test_a_default_that_nobody_can_read_stays_in_force(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Others write what is no JSON: every node keeps what was said before, the controller's own and its neighbours too."""
    cluster = SmallCluster(nursery, memory, neighbours=True)
    await cluster.start(1)
    await cluster.until_quiet()
    await cluster.start(2, 3)
    await cluster.until_quiet()
    assert await set_default(cluster, RETENTION, "5") == 0
    other, path = await memory.open(), "brokers/<default>"
    await other.commit([SetData(f"/config/{path}", b"garbage")])
    await other.commit([Create(layout.CONFIG_CHANGE_PREFIX, layout.encode_config_change(path), sequential=True)])
    await trio.sleep(5)
    assert in_force(cluster, RETENTION) == ["5"] * 3
    epoch = cluster.controller.epoch
    cluster.controller.resign()
    await cluster.until_succeeded(epoch)
    assert in_force(cluster, RETENTION) == ["5"] * 3

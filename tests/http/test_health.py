"""When a node is ready, and what it says where it is not."""

import trio
import trio.testing

from minicontroller.controller.http.process import Process
from minicontroller.controller.node.app import RunningNode
from minicontroller.network.server import Server
from minicontroller.network.serving.context import Routes
from minicontroller.network.serving.dispatcher import Dispatcher
from minicontroller.store.memory import MemoryStore
from tests.handlers.asking import broker, image, node_with


async def test_a_node_without_the_store_is_not_ready(autojump_clock: object) -> None:
    """A server that restarts is waited for as long as a session; then the node says that it is not
    ready, until the store is back.
    """
    node = node_with(image([broker(1)]))
    node.registered(7)
    process = Process(1)
    process.add(RunningNode(node, "host:1", Server(), Dispatcher(Routes(()))))
    assert process.health().ready
    store = node.store
    assert isinstance(store, MemoryStore)
    store.tree.suspend(store)
    await trio.testing.wait_all_tasks_blocked()
    patience = node.config.integer("zookeeper.session.timeout.ms") / 1000
    await trio.sleep(patience - 1)
    assert process.health().ready
    await trio.sleep(2)
    assert process.health().nodes[0].reasons == ["it does not reach ZooKeeper"]
    store.tree.resume(store)
    await trio.testing.wait_all_tasks_blocked()
    assert process.health().ready


async def test_a_session_is_a_registration(autojump_clock: object) -> None:
    """A node whose session ended is not ready before it is registered in the next one, though the
    cluster may not have noticed.
    """
    node = node_with(image([broker(1)]))
    node.registered(7)
    process = Process(1)
    process.add(RunningNode(node, "host:1", Server(), Dispatcher(Routes(()))))
    store = node.store
    assert isinstance(store, MemoryStore)
    store.tree.expire(store)
    await trio.testing.wait_all_tasks_blocked()
    assert process.health().nodes[0].reasons == ["it is not registered"]
    node.registered(8)
    assert process.health().ready

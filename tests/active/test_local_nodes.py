"""The nodes of one process learn of changes from their controller without the wire, and share what
they know.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import pytest
import trio

from minicontroller.cluster.entities import AclEntries, Broker, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes.acls import encode_acls
from minicontroller.controller.active.local_nodes import LocalNodes
from minicontroller.controller.node.node import Node
from minicontroller.protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PermissionType,
    ResourcePattern,
)
from minicontroller.store.base import Create, Delete, Entry, Watch
from minicontroller.store.memory import MemoryStore, MemoryTree
from tests.handlers.asking import node_with
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster

NOBODY = Image()
REGISTERED = MappingProxyType({1: 10, 2: 20, 3: 30})
"""Broker epochs by id."""


def topic(name: str, *, leader: int = 1) -> Topic:
    epoch = 0 if leader >= 0 else -1
    partition = Partition(replicas=(1,), leader=leader, isr=(1,), leader_epoch=epoch, partition_epoch=epoch)
    return Topic(name=name, topic_id=name.encode().ljust(16, b"\0"), partitions=(partition,))


def cluster(*names: str, epochs: Mapping[int, int] = REGISTERED) -> Image:
    brokers = [Broker(broker_id=number, epoch=epoch) for number, epoch in epochs.items()]
    return Image(controller_id=1, controller_epoch=5).with_brokers(brokers).with_topics(map(topic, names))


@pytest.fixture
def nodes() -> list[Node]:
    """Three nodes of one process, registered with the epochs of `cluster`."""
    nodes = [node_with(NOBODY, broker_id=number) for number in (1, 2, 3)]
    for node in nodes:
        node.local_nodes = {each.broker_id: each for each in nodes}
        node.epoch.registered(node.broker_id * 10)
    return nodes


def test_everyone_has_the_same_image(nodes: list[Node]) -> None:
    """The nodes of a process have one image, not three alike, so that they cost the
    memory of one.
    """
    local_nodes = LocalNodes(1, nodes[0], nodes[0].local_nodes)
    local_nodes.update_everything(cluster("a"))
    after = cluster("a", "b")
    local_nodes.update(after, [after.topics["b"]])
    assert set(nodes[0].cache.image.topics) == {"a", "b"}
    assert nodes[1].cache.image is nodes[2].cache.image is nodes[0].cache.image
    local_nodes.update(cluster("b"), (), ["a"])
    assert [set(node.cache.image.topics) for node in nodes] == [{"b"}] * 3


def test_a_node_without_registration_is_not_told(nodes: list[Node]) -> None:
    """A node whose registration is gone, or is of an earlier life, does not exist for
    the cluster.
    """
    local_nodes = LocalNodes(1, nodes[0], nodes[0].local_nodes)
    local_nodes.update_everything(cluster("a", epochs={1: 10, 2: 20, 3: 29}))
    assert [set(node.cache.image.topics) for node in nodes] == [{"a"}, {"a"}, set()]
    assert local_nodes.ids == {1, 2}
    local_nodes.update_brokers(cluster("a", epochs={1: 10, 3: 30}))
    after = cluster("a", "b", epochs={1: 10, 3: 30})
    local_nodes.update(after, [after.topics["b"]])
    assert [set(node.cache.image.topics) for node in nodes] == [{"a", "b"}, {"a"}, {"a", "b"}]
    assert local_nodes.ids == {1, 3}


def test_who_knew_something_else_is_told_what_changed(nodes: list[Node]) -> None:
    """A node that received updates from another controller in between keeps its own image and is
    given the same changes.
    """
    local_nodes = LocalNodes(1, nodes[0], nodes[0].local_nodes)
    local_nodes.update_everything(cluster("a"))
    nodes[1].cache.apply(controller_id=1, controller_epoch=5, brokers=None, changed=[topic("z")])
    after = cluster("a", "b")
    local_nodes.update(after, [after.topics["b"]])
    assert [set(node.cache.image.topics) for node in nodes] == [{"a", "b"}, {"a", "b", "z"}, {"a", "b"}]
    local_nodes.update_everything(cluster("a"))
    assert [set(node.cache.image.topics) for node in nodes] == [{"a"}] * 3


def test_what_was_never_led_is_not_told(nodes: list[Node]) -> None:
    """A topic without states, or with a mark of deletion, is left out as UpdateMetadata leaves it
    out.
    """
    never_led = Topic(name="n", topic_id=b"n" * 16, partitions=(Partition(replicas=(9,)),))
    LocalNodes(1, nodes[0], nodes[0].local_nodes).update_everything(cluster("a").with_topic(never_led))
    assert [set(node.cache.image.topics) for node in nodes] == [{"a"}] * 3


def test_nobody_is_told_what_is_old(nodes: list[Node]) -> None:
    """A controller that resumes after its successor was elected sends nothing to nodes that follow
    the successor.
    """
    local_nodes = LocalNodes(1, nodes[0], nodes[0].local_nodes)
    local_nodes.update_everything(cluster("old"))
    for node in nodes[:2]:
        node.cache.apply(controller_id=2, controller_epoch=6, brokers=None, changed=[topic("new")], removed=["old"])
    local_nodes.update_everything(cluster("old"))
    local_nodes.update_brokers(cluster("old"))
    assert [set(node.cache.image.topics) for node in nodes[:2]] == [{"new"}] * 2
    assert [node.cache.image.controller_epoch for node in nodes[:2]] == [6, 6]


def with_acl(image: Image, name: str, version: int) -> Image:
    return image.with_acls(ResourcePattern(AclResourceType.TOPIC, name), acl(version))


def acl(version: int) -> AclEntries:
    entry = AccessControlEntry("User:a", "*", AclOperation.READ, PermissionType.ALLOW)
    return AclEntries(frozenset({entry}), version)


def versions(nodes: list[Node]) -> list[dict[str, int]]:
    """Return the versions of the ACLs of topics, as each node knows them."""
    return [{pattern.name: each.version for pattern, each in node.cache.image.acls.items()} for node in nodes]


def test_entities_are_shared(nodes: list[Node]) -> None:
    """The nodes of a process have the ACLs of their controller's image, and not copies of them."""
    local_nodes = LocalNodes(1, nodes[0], nodes[0].local_nodes)
    local_nodes.update_everything(with_acl(cluster("a"), "x", 1))
    after = with_acl(with_acl(cluster("a"), "x", 1), "y", 1)
    local_nodes.update(after, entities={"/kafka-acl/Topic/y": acl(1)})
    assert versions(nodes) == [{"x": 1, "y": 1}] * 3
    assert all(node.cache.image.acls is after.acls for node in nodes)


def test_what_a_node_has_read_first_stays(nodes: list[Node]) -> None:
    """A node that has read from the store what another program wrote knows it from then on, while
    the controller gives it other changes. When the controller has it too, they share one image.
    """
    local_nodes = LocalNodes(1, nodes[0], nodes[0].local_nodes)
    before = with_acl(cluster("a"), "x", 1)
    local_nodes.update_everything(before)
    nodes[2].cache.read({"/kafka-acl/Topic/x": acl(2), "/kafka-acl/Topic/y": acl(0)})
    before = with_acl(before, "z", 0)
    local_nodes.update(before, entities={"/kafka-acl/Topic/z": acl(0)})
    assert versions(nodes) == [{"x": 1, "z": 0}, {"x": 1, "z": 0}, {"x": 2, "y": 0, "z": 0}]
    after = with_acl(with_acl(before, "x", 3), "y", 0)
    local_nodes.update(after, entities={"/kafka-acl/Topic/x": acl(3), "/kafka-acl/Topic/y": acl(0)})
    assert versions(nodes) == [{"x": 3, "y": 0, "z": 0}] * 3
    assert nodes[2].cache.image is nodes[0].cache.image


class LateStore(MemoryStore):
    """A store whose next answer arrives after something else has happened."""

    happens: Callable[[], None] | None = None

    async def get_many(self, paths: Sequence[str], watch: Watch | None = None) -> list[Entry | None]:
        found = await super().get_many(paths, watch)
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        return found


@pytest.mark.parametrize("reloads", [False, True], ids=["writes", "loads"])
async def test_a_reading_undoes_nothing_that_the_controller_wrote(nodes: list[Node], reloads: bool) -> None:
    """An ACL that the controller of the process removes while a node reads it is gone, although the
    node has not known it before; so is one that the controller does not find when it loads its
    state.
    """
    path, tree = "/kafka-acl/Topic/x", MemoryTree()
    store, other = LateStore(tree), MemoryStore(tree)
    local_nodes = LocalNodes(1, nodes[0], nodes[0].local_nodes)
    local_nodes.update_everything(cluster("a"))
    await other.ensure("/kafka-acl/Topic")
    await other.commit([Create(path, encode_acls(acl(0).entries))])

    def remove() -> None:
        other.send([Delete(path)], lambda _outcome: None)
        if reloads:
            local_nodes.update_everything(cluster("a"))
        else:
            local_nodes.update(cluster("a"), entities={path: None})

    store.happens = remove
    seen: list[bool] = []
    nodes[2].cache.on_change(lambda _before, after, _changes: seen.append(bool(after.acls)))
    assert await nodes[2].reader.catch_up(store, [path])
    assert not any(seen)
    assert versions(nodes) == [{}] * 3


async def test_a_local_node_that_the_controller_knew_first(memory: MemoryWorld, nursery: trio.Nursery) -> None:
    """A local node whose registration the controller sees before the node does is updated by call
    from then on.
    """
    two = SmallCluster(nursery, memory, one_process=True)
    await two.start_in_turn(1, 2)
    node = two.members[2].node
    epoch, node.epoch.current = node.broker_epoch, -1
    two.controller.local_node_registered()
    assert set(two.controller.local_nodes.ids) == {1}
    node.registered(epoch)
    assert set(two.controller.local_nodes.ids) == {1, 2}
    assert two.controller.propagation.behind == 0

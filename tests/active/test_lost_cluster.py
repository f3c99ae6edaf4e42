"""What other programs remove of the cluster as a whole is made again, or ends the nodes with a
sentence; no node fills an empty tree with what it remembers.
"""

import pytest
import trio
import trio.testing

from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.cluster import encode_cluster_id
from minicontroller.controller.node.cluster_paths import ClusterLostError
from minicontroller.store.base import Delete, SetData, Store
from tests.store.worlds import MemoryWorld
from tests.support.small_cluster import SmallCluster


async def remove(other: Store, path: str) -> None:
    for name in await other.children(path):
        await remove(other, f"{path.rstrip('/')}/{name}")
    if path != "/":
        await other.commit([Delete(path)])


async def test_registrations_are_made_again(cluster: SmallCluster, other: Store, autojump_clock: object) -> None:
    """If `/brokers/ids` is deleted with all registrations, nodes register again, and the topics are
    led as before.
    """
    await cluster.create("t", replication_factor=3)
    await remove(other, layout.BROKER_IDS)
    await trio.sleep(1)
    await cluster.until_quiet()
    await cluster.until(lambda: all(cluster.seen(each).topics["t"].is_complete for each in cluster.members))
    assert await cluster.create("u") == [0]


@pytest.mark.parametrize("data", [None, b"?", b'{"version":"1"}'], ids=["deleted", "no JSON", "no id"])
async def test_the_cluster_id_is_written_again(
    data: bytes | None, cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """Nodes know it, so that one that starts afterwards belongs to the same cluster."""
    await cluster.create("t")
    cluster_id = cluster.controller_node.cluster_id
    await other.commit([Delete(layout.CLUSTER_ID) if data is None else SetData(layout.CLUSTER_ID, data)])
    await trio.sleep(1)
    entry = await other.get(layout.CLUSTER_ID)
    assert entry is not None and entry.data == encode_cluster_id(cluster_id)


@pytest.mark.parametrize("is_another", [False, True])
async def test_a_lost_cluster_ends_its_nodes(is_another: bool, autojump_clock: object) -> None:
    """If everything is gone, or another cluster is in its place, the nodes say so and end; the tree
    gets nothing of what they remember.
    """
    world = MemoryWorld()
    with pytest.RaisesGroup(pytest.RaisesExc(ClusterLostError), allow_unwrapped=True, flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            cluster = SmallCluster(nursery, world)
            await cluster.start_in_turn(1)
            await cluster.create("t")
            other = await world.open()
            if is_another:
                await other.commit([SetData(layout.CLUSTER_ID, encode_cluster_id("another"))])
            else:
                await remove(other, "/")
            await trio.sleep(60)
    assert "/brokers/topics/t" not in world.tree.nodes or is_another

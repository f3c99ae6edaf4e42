"""What the controller does when other programs remove, recreate or leave znodes: in memory, on a
store with slow answers, and on a real ZooKeeper.
"""

from functools import partial

import pytest
import trio
from msgspec.structs import replace

from minicontroller.cluster.entities import NO_TOPIC_ID, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.cluster.znodes.topics import encode_topic
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.store.base import Create, Delete, SetData, Store
from tests.store.worlds import in_three_worlds
from tests.support.config_znodes import LEFTOVER, configs_in, notification
from tests.support.small_cluster import BROKER, SmallCluster

BROKER_IDS = (1,)
pytestmark = in_three_worlds


def shows(cluster: SmallCluster, configs: dict[str, str], of: str = "topics/t") -> bool:
    """The controller knows these configs of an entity and no others."""
    image = cluster.controller.image
    kind, _, name = of.partition("/")
    return dict((image.topics[name] if kind == "topics" else image.configs[of]).configs) == configs


async def test_configs_that_were_made_again_are_seen(cluster: SmallCluster, other: Store) -> None:
    """Configs whose znode was deleted and created again, and so begins at version 0, are read once
    a notification names them.
    """
    await cluster.create("t")
    await cluster.change_config("t", "retention.ms", "5")
    await cluster.change_config("", "my.key", "1", resource_type=BROKER)
    for path in ("topics/t", "brokers/<default>"):
        await other.commit([Delete(f"/config/{path}"), Create(f"/config/{path}", LEFTOVER), notification(path)])
    await cluster.until(partial(shows, cluster, {"segment.ms": "7"}))
    await cluster.until(partial(shows, cluster, {"segment.ms": "7"}, "brokers/<default>"))
    assert await cluster.change_config("t", "retention.ms", "6") == ErrorCode.NONE
    assert await configs_in(other, "topics/t") == {"segment.ms": "7", "retention.ms": "6"}


async def test_a_topic_that_others_removed_is_gone(cluster: SmallCluster, other: Store) -> None:
    """A topic that was removed with `deleteall`, without a deletion mark, disappears from the
    metadata, changes of it are refused, and its name is free.
    """
    await cluster.start(2)
    await cluster.create("t", "u")
    paths = ["/partitions/0/state", "/partitions/0", "/partitions", ""]
    await other.commit([Delete(layout.topic_path("t") + path) for path in paths])
    await cluster.until(lambda: all("t" not in cluster.seen(broker_id).topics for broker_id in (1, 2)))
    assert set(cluster.controller.image.topics) == {"u"}
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await cluster.create("t") == [ErrorCode.NONE]


async def test_a_topic_that_others_replaced_is_the_same_everywhere(cluster: SmallCluster, other: Store) -> None:
    """If others recreate a topic with fewer partitions and without an id, every node shows the new
    topic, and it gets an id.
    """
    await cluster.start(2)
    await cluster.create("t", partitions=3)
    old = cluster.controller.image.topics["t"]
    fewer = replace(old, partitions=old.partitions[:1], topic_id=NO_TOPIC_ID)
    paths = [f"/partitions/{index}{rest}" for index in range(3) for rest in ("/state", "")]
    await other.commit(
        [
            *(Delete(layout.topic_path("t") + path) for path in (*paths, "/partitions", "")),
            Create(layout.topic_path("t"), encode_topic(fewer)),
        ]
    )
    await cluster.change_config("t", "retention.ms", "5")
    await cluster.grow("t", 5)

    def is_settled() -> bool:
        counts = {len(image.topics["t"].partitions) if "t" in image.topics else 0 for image in images()}
        return len(counts) == 1 and counts <= {1, 5}

    def images() -> list[Image]:
        return [cluster.controller.image, cluster.seen(1), cluster.seen(2)]

    await cluster.until(is_settled)
    await cluster.until(lambda: cluster.controller.image.topics["t"].topic_id not in (NO_TOPIC_ID, old.topic_id))


async def test_a_deletion_goes_on_where_others_left_something(cluster: SmallCluster, other: Store) -> None:
    """Foreign znodes below a deleted topic, however deep, do not keep its name taken, because
    deletion is recursive as in Kafka.
    """
    await cluster.create("t")
    topic = layout.topic_path("t")
    for path in (f"{topic}/foreign", f"{topic}/partitions/0/state/deep", layout.topic_config_path("t") + "/foreign"):
        await other.ensure(f"{path}/more")
    assert await cluster.delete("t") == [ErrorCode.NONE]
    await cluster.until(lambda: "t" not in cluster.controller.image.topics)
    await other.sync()
    assert await other.get_many([topic, layout.topic_config_path("t"), layout.delete_topic_path("t")]) == [None] * 3
    assert await cluster.create("t") == [ErrorCode.NONE]


async def test_leftovers_in_a_large_batch(cluster: SmallCluster, other: Store) -> None:
    """A request that takes several commits is planned in as many parts: each meets what others left
    as a small one does.
    """
    names = [f"b{number}" for number in range(600)]
    for name in ("b0", "b150", "b599"):
        await other.commit([Create(layout.topic_config_path(name), LEFTOVER)])
    assert await cluster.create(*names, partitions=5, timeout_ms=60_000) == [ErrorCode.NONE] * 600
    assert await configs_in(other, "topics/b599") == {}


async def test_configs_that_cannot_be_read_are_not_wiped_out(cluster: SmallCluster, other: Store) -> None:
    """A change that would overwrite unreadable configs is refused; once they are deleted or mended,
    it succeeds.
    """
    await cluster.create("t")
    await cluster.change_config("", "my.key", "1", resource_type=BROKER)
    for path in ("topics/t", "brokers/<default>"):
        await other.commit([SetData(f"/config/{path}", b'{"config":{"retention.ms":5}}')])
    assert await cluster.change_config("t", "retention.ms", "6") == ErrorCode.INVALID_CONFIG
    assert await cluster.change_config("", "my.key", "2", resource_type=BROKER) == ErrorCode.INVALID_CONFIG
    for path in ("topics/t", "brokers/<default>"):
        await other.commit([SetData(f"/config/{path}", LEFTOVER), notification(path)])
    await cluster.until(partial(shows, cluster, {"segment.ms": "7"}))
    await cluster.until(partial(shows, cluster, {"segment.ms": "7"}, "brokers/<default>"))
    assert await cluster.change_config("t", "retention.ms", "6") == ErrorCode.NONE


async def test_topics_of_others_that_are_not_whole(cluster: SmallCluster, other: Store) -> None:
    """One without partitions cannot grow, and says so; one whose replicas are all offline can."""
    await cluster.create("t")
    offline = Topic("offline", b"o" * 16, (Partition(replicas=(7,)),))
    await other.commit([Create(layout.topic_path("empty"), b'{"version":1,"partitions":{}}')])
    await other.commit([Create(layout.topic_path("offline"), encode_topic(offline))])
    await cluster.until(lambda: {"empty", "offline"} <= set(cluster.controller.image.topics))
    assert await cluster.grow("empty", 2) == ErrorCode.INVALID_PARTITIONS
    assert await cluster.grow("offline", 2, timeout_ms=2_000) in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)
    await cluster.until(lambda: len(cluster.controller.image.topics["offline"].partitions) == 2)


@pytest.mark.parametrize(
    "path", [layout.DELETE_TOPICS, layout.CONFIG_CHANGES, layout.BROKER_CONFIGS, layout.ISR_CHANGE_NOTIFICATION]
)
async def test_a_parent_that_others_removed_is_made_again(cluster: SmallCluster, other: Store, path: str) -> None:
    """If others remove `/admin/delete_topics` or a similar parent, the controller goes on, every
    change succeeds, and a successor can be elected.
    """
    await cluster.create("t", "u")
    controller = cluster.controller
    await other.commit([Delete(f"{path}/{child}") for child in await other.children(path)] + [Delete(path)])
    assert await cluster.change_config("t", "retention.ms", "5") == ErrorCode.NONE
    assert await cluster.change_config("", "my.key", "5", resource_type=BROKER) == ErrorCode.NONE
    assert await cluster.delete("u") == [ErrorCode.NONE]
    assert cluster.controller is controller
    await cluster.elect_anew()
    assert await cluster.create("v") == [ErrorCode.NONE]
    assert await cluster.delete("t", "v") == [ErrorCode.NONE] * 2


async def test_configs_of_others_are_seen_beside_changes_of_ours(cluster: SmallCluster, other: Store) -> None:
    """A config notification that arrives while the topic grows is kept, and its configs are read
    once no change is in flight.
    """
    await cluster.create("t")
    path = layout.topic_config_path("t")
    for number in range(2, 12):
        data = encode_config({"retention.ms": str(number)})
        async with trio.open_nursery() as both:
            both.start_soon(cluster.grow, "t", number)
            await trio.lowlevel.checkpoint()
            await other.commit([SetData(path, data), notification("topics/t")])
        await cluster.until(partial(shows, cluster, {"retention.ms": str(number)}))

"""Znodes of topics that other programs write, and the topic of tests that look at them."""

import json
from typing import Any

from minicontroller.cluster.entities import Topic
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.topics import decode_topic, encode_topic, uuid_text
from minicontroller.store.base import Store
from tests.support.small_cluster import SmallCluster

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


def state(isr: list[int], leader_epoch: int = 0) -> bytes:
    return json.dumps(
        {"controller_epoch": 1, "leader": isr[0] if isr else 1, "version": 1, "leader_epoch": leader_epoch, "isr": isr}
    ).encode()

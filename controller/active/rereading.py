"""Rereads topics, or one entity that every node follows, after a commit met what another process
had written there.

The result is elements without operations, which bring the image up to date. There are none if the
image is up to date already, because another plan would meet the same conflict.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from ...cluster import entity_paths
from ...cluster.delta import ConfigsLeft, EntitiesChanged, TopicBecomes, TopicRemoved
from ...cluster.entities import NO_TOPIC_ID, Topic
from ...cluster.image import Image
from ...cluster.znodes import layout
from ...cluster.znodes.entity_names import USERS
from ...store.base import Store
from . import entity_reading
from .jobs import StagedElement
from .loading import load_topics
from .stored_topics import Known


async def reread(
    store: Store, image: Image, path: str, created: dict[str, int] | None = None, *, deletes_topics: bool = True
) -> Sequence[StagedElement]:
    """Return the elements that bring what this znode belongs to up to date in the image.
    `created` is as in `load_topics`, `deletes_topics` the config `delete.topic.enable`. Raises
    StoreError.
    """
    for parent in (layout.TOPICS, layout.TOPIC_CONFIGS, layout.DELETE_TOPICS):
        if path.startswith(f"{parent}/"):
            name = path.removeprefix(f"{parent}/").partition("/")[0]
            return await reread_topics(store, image, [name], created, deletes_topics=deletes_topics)
    return await _entity(store, image, path)


async def _entity(store: Store, image: Image, path: str) -> Sequence[StagedElement]:
    users = f"{entity_paths.CONFIGS}{USERS}/"
    if path.startswith(users):
        found = await entity_reading.read_user(store, image, path.removeprefix(users).partition("/")[0])
    elif path.startswith(entity_paths.GROUPS):
        found = await entity_reading.read_group(store, image, entity_paths.group_place(path)[0])
    elif entity_paths.is_followed(path):
        found = await entity_reading.read_entities(store, [path])
    else:
        return ()
    changed = {each: found[each] for each in entity_paths.changed_paths(image, found)}
    return [StagedElement(EntitiesChanged(changed))] if changed else []


async def reread_topics(
    store: Store,
    image: Image,
    names: Sequence[str],
    created: dict[str, int] | None = None,
    *,
    deletes_topics: bool = True,
) -> list[StagedElement]:
    """Return the elements that bring these topics up to date in the image. Raises StoreError."""
    markers = await store.get_many([layout.delete_topic_path(name) for name in names])
    marked = {name for name, marker in zip(names, markers, strict=True) if marker is not None and deletes_topics}
    loaded = await load_topics(
        store, names, marked, created, lambda name: _certain(image, name), named=image.topic_names
    )
    found = {topic.name: topic for topic in loaded}
    news = []
    for name in names:
        known = image.topics.get(name)
        topic = _with_what_is_not_stored(found[name], known) if name in found else None
        if topic != known:
            news.append(StagedElement(TopicRemoved(name, NO_TOPIC_ID) if topic is None else TopicBecomes.of(topic)))
    return news + await _leftovers(store, image, [name for name in names if name not in found])


def _certain(image: Image, name: str) -> Known | None:
    topic = image.topics.get(name)
    return None if topic is None else Known(topic)


async def _leftovers(store: Store, image: Image, missing: Sequence[str]) -> list[StagedElement]:
    """Return the elements that note the configs which missing topics have left behind. They are
    overwritten, whatever they are.
    """
    entries = await store.get_many([layout.topic_config_path(name) for name in missing])
    left = {name: -1 if entry is None else entry.stat.version for name, entry in zip(missing, entries, strict=True)}
    return [
        StagedElement(ConfigsLeft(name, version))
        for name, version in left.items()
        if version != image.leftover_configs.get(name, -1)
    ]


def _with_what_is_not_stored(found: Topic, known: Topic | None) -> Topic:
    """Return the topic with the replicas that brokers have lost, which the store does not hold."""
    if known is None or known.topic_id != found.topic_id:
        return found
    lost = {
        index: replace(partition, lost_replicas=before.lost_replicas)
        for index, (partition, before) in enumerate(zip(found.partitions, known.partitions, strict=False))
        if before.lost_replicas and before.replicas == partition.replicas
    }
    return found.with_partitions(lost) if lost else found

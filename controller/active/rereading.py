"""Rereads one topic, the configs of one broker, or one entity that every node follows, after a
commit met what another process had written there.

The result is elements without operations, which bring the image up to date. There are none if the
image is up to date already, because another plan would meet the same conflict.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from ..metadata.entities import NO_ENTITY_CONFIGS, Topic
from ..metadata.image import Image
from ..store.base import Store
from ..znodes import layout
from ..znodes.entity_names import USERS
from . import entity_reading
from .jobs import Element, observation, observed_entities, observed_topic
from .loading import load_broker_configs, load_topics


async def reread(store: Store, image: Image, path: str, created: dict[str, int] | None = None) -> Sequence[Element]:
    """Return the elements that bring what this znode belongs to up to date in the image.
    `created` is as in `load_topics`. Raises StoreError.
    """
    for parent in (layout.TOPICS, layout.TOPIC_CONFIGS, layout.DELETE_TOPICS):
        if path.startswith(f"{parent}/"):
            return await _topic(store, image, path.removeprefix(f"{parent}/").partition("/")[0], created)
    if path.startswith(f"{layout.BROKER_CONFIGS}/"):
        return await _broker(store, image, path.removeprefix(f"{layout.BROKER_CONFIGS}/"))
    return await _entity(store, image, path)


async def _entity(store: Store, image: Image, path: str) -> Sequence[Element]:
    users = f"{entity_reading.CONFIGS}{USERS}/"
    if path.startswith(users):
        found = await entity_reading.read_user(store, image, path.removeprefix(users).partition("/")[0])
    elif path.startswith(entity_reading.GROUPS):
        found = await entity_reading.read_group(store, image, entity_reading.group_place(path)[0])
    elif entity_reading.is_followed(path):
        found = await entity_reading.read_entities(store, [path])
    else:
        return ()
    changed = {each: found[each] for each in entity_reading.changed_paths(image, found)}
    return [observed_entities(changed)] if changed else []


async def _topic(store: Store, image: Image, name: str, created: dict[str, int] | None) -> Sequence[Element]:
    marker = await store.get(layout.delete_topic_path(name))
    found = await load_topics(store, [name], () if marker is None else (name,), created)
    known = image.topics.get(name)
    if found:
        topic = _with_what_is_not_stored(found[0], known)
        return () if topic == known else [observed_topic(topic, name)]
    news = [] if known is None else [observed_topic(None, name)]
    entry = await store.get(layout.topic_config_path(name))
    left = -1 if entry is None else entry.stat.version  # these configs are overwritten whatever they are
    if left != image.leftover_configs.get(name, -1):
        news.append(observation(lambda image: image.with_leftover_configs(name, left)))
    return news


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


async def _broker(store: Store, image: Image, name: str) -> Sequence[Element]:
    ((entity, found),) = (await load_broker_configs(store, [name])).items()
    if found == image.configs.get(entity, NO_ENTITY_CONFIGS):
        return ()
    return [observation(lambda image: image.with_configs(entity, found))]

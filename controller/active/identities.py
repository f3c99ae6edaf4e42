"""Gives topics their ids in the store.

Rule: a topic keeps the id that it is known to have. Only a topic whose id nobody knows gets a new
one, as at Kafka's controllers; if it was led before, the log says so, because Kafka's brokers then
refuse the logs that they have of it.
"""

import logging

import msgspec

from ...cluster.delta import TopicIdentified
from ...cluster.entities import NO_TOPIC_ID, Topic
from ...cluster.random_ids import new_id
from ...cluster.znodes import layout
from ...cluster.znodes.topics import encode_topic, uuid_text
from ...store.base import SetData
from .jobs import Draft

log = logging.getLogger("minicontroller.controller")


def identify(draft: Draft, topic: Topic) -> None:
    """Write the id of a topic whose znode has none, or another: the known one, or a new one for a
    topic that was created before Kafka 2.8 or by tools of that time.
    """
    if topic.marked_for_deletion or not topic.is_readable:
        return
    if topic.topic_id == NO_TOPIC_ID:
        topic_id = new_id()
        _tell_of_new_id(topic, topic_id)
    elif topic.lacks_id:
        topic_id = topic.topic_id
    else:
        return
    named = msgspec.structs.replace(topic, topic_id=topic_id, lacks_id=False, version=topic.version + 1)
    draft.stage(
        TopicIdentified(topic.name, topic.topic_id, new_id=topic_id, version=named.version),
        [SetData(layout.topic_path(topic.name), encode_topic(named), topic.version)],
    )


def _tell_of_new_id(topic: Topic, topic_id: bytes) -> None:
    if topic.was_ever_led:
        log.error(
            "topic %s has leaders and no id in %s, and no node knows one: it gets the new id %s. That is right if the "
            "topic was created before Kafka 2.8. If another program has removed the id, write the former one there, "
            "which partition.metadata has in the log directories of Kafka's brokers",
            topic.name, layout.topic_path(topic.name), uuid_text(topic_id),
        )  # fmt: skip
    else:
        log.info("topic %s gets the id %s", topic.name, uuid_text(topic_id))


async def identify_all(draft: Draft) -> None:
    """Give ids to topics whose znode has none."""
    for topic in [each for each in draft.image.topics.values() if each.topic_id == NO_TOPIC_ID or each.lacks_id]:
        identify(draft, topic)

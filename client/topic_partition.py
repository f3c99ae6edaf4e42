"""Partitions as calls name them, and as requests have them: by their topics."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec


class TopicPartition(msgspec.Struct, frozen=True, order=True):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def by_topic(partitions: Iterable[TopicPartition]) -> Mapping[str, Sequence[TopicPartition]]:
    """Divide partitions by their topics, in the order in which these are first named."""
    topics: dict[str, list[TopicPartition]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(each)
    return topics

"""confluent-kafka (librdkafka) asks for the offsets of partitions and deletes records of them."""

from collections.abc import Callable

import pytest
from confluent_kafka import IsolationLevel, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.clients.test_confluent_topics import refusal

PARTITIONS = range(4)
NO_OFFSET = -1
LIMIT_SECONDS = 30.0


@pytest.mark.parametrize(
    ("spec", "offset"),
    [
        (OffsetSpec.earliest(), 0),  # type: ignore[no-untyped-call]
        (OffsetSpec.latest(), 0),  # type: ignore[no-untyped-call]
        (OffsetSpec.max_timestamp(), NO_OFFSET),  # type: ignore[no-untyped-call]
        (OffsetSpec.for_timestamp(1_700_000_000_000), NO_OFFSET),
    ],
    ids=["earliest", "latest", "newest time", "a time"],
)
def test_lists_the_offsets_of_empty_partitions(
    confluent: AdminClient, create: Callable[..., None], topic: str, spec: OffsetSpec, offset: int
) -> None:
    """The client asks the leader of each partition; both ends are 0, and no record has a time."""
    create(NewTopic(topic, num_partitions=len(PARTITIONS), replication_factor=2))
    asked = {TopicPartition(topic, number): spec for number in PARTITIONS}
    for level in IsolationLevel:
        answers = confluent.list_offsets(asked, isolation_level=level).values()
        assert [answer.result(LIMIT_SECONDS).offset for answer in answers] == [offset] * len(PARTITIONS)


def test_deletes_records(confluent: AdminClient, create: Callable[..., None], topic: str) -> None:
    """Up to the end, which is 0, and not beyond it; never of a compacted topic."""
    create(
        NewTopic(topic, num_partitions=3, replication_factor=2),
        NewTopic(f"{topic}-compacted", num_partitions=1, replication_factor=1, config={"cleanup.policy": "compact"}),
    )
    for number, offset in enumerate((0, -1)):
        (done,) = confluent.delete_records([TopicPartition(topic, number, offset)]).values()
        assert done.result(LIMIT_SECONDS).low_watermark == 0
    (beyond,) = confluent.delete_records([TopicPartition(topic, 2, 5)]).values()
    assert refusal(beyond).code() == KafkaError.OFFSET_OUT_OF_RANGE
    (compacted,) = confluent.delete_records([TopicPartition(f"{topic}-compacted", 0, 0)]).values()
    assert refusal(compacted).code() == KafkaError.POLICY_VIOLATION

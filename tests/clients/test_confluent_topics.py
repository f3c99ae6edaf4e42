"""confluent-kafka (librdkafka) makes, grows and deletes topics."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from tests.support.waiting import until

LONGEST_NAME = 249

Create = Callable[..., None]
"""The fixture `create`."""


def refusal(future: "Future[Any]") -> KafkaError:
    """The error with which one element of a request is refused."""
    with pytest.raises(KafkaException) as raised:
        future.result()
    error = raised.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def placed(topic: str, *rows: list[int]) -> NewTopic:
    """A topic whose replicas are given by hand."""
    return NewTopic(topic, num_partitions=len(rows), replica_assignment=list(rows))


def replicas(client: AdminClient, topic: str) -> Mapping[int, list[int]]:
    """By partition, as Metadata shows them."""
    partitions = client.list_topics(topic, timeout=60).topics[topic].partitions
    return {number: partition.replicas for number, partition in partitions.items()}


def names(client: AdminClient) -> set[str]:
    return set(client.list_topics(timeout=60).topics)


def test_creates_a_topic_with_counts(confluent: AdminClient, create: Create, topic: str) -> None:
    """A topic has the partitions and replicas asked for, each partition led by its first replica
    (K4-C4a, K4-C5).
    """
    create(NewTopic(topic, num_partitions=4, replication_factor=3))
    partitions = confluent.list_topics(topic, timeout=60).topics[topic].partitions
    assert set(partitions) == {0, 1, 2, 3}
    for partition in partitions.values():
        assert len(set(partition.replicas)) == 3
        assert partition.leader == partition.replicas[0]
        assert sorted(partition.isrs) == sorted(partition.replicas)


def test_creates_a_topic_with_the_brokers_defaults(confluent: AdminClient, create: Create, topic: str) -> None:
    """Counts that are not given are the broker's defaults, one and one (K4-C4d)."""
    create(NewTopic(topic))
    assert [len(nodes) for nodes in replicas(confluent, topic).values()] == [1]


def test_creates_a_topic_placed_by_hand(confluent: AdminClient, create: Create, topic: str) -> None:
    """Replicas given by hand are taken as they are, in their order (K4-C4b)."""
    create(placed(topic, [3, 1], [2, 3], [1, 2]))
    assert replicas(confluent, topic) == {0: [3, 1], 1: [2, 3], 2: [1, 2]}


def test_validate_only_makes_nothing(confluent: AdminClient, topic: str) -> None:
    """A request that is only to be validated is answered as if granted, and leaves
    nothing behind.
    """
    confluent.create_topics([NewTopic(topic, 1, 1)], validate_only=True)[topic].result()
    assert topic not in names(confluent)


def test_a_refused_topic_does_not_stop_the_others(confluent: AdminClient, topic: str) -> None:
    """Each element of a batch succeeds or fails by itself (K4-2)."""
    good, bad = NewTopic(topic, 1, 1), NewTopic(f"{topic}-bad", 1, 99)
    futures = confluent.create_topics([bad, good])
    futures[topic].result()
    assert refusal(futures[f"{topic}-bad"]).code() == KafkaError.INVALID_REPLICATION_FACTOR
    until(lambda: topic in names(confluent))
    assert f"{topic}-bad" not in names(confluent)


@pytest.mark.parametrize(
    ("wish", "code", "named"),
    [
        (NewTopic("no spaces please", 1, 1), KafkaError.TOPIC_EXCEPTION, "no spaces please"),
        (NewTopic("n" * (LONGEST_NAME + 1), 1, 1), KafkaError.TOPIC_EXCEPTION, "249"),
        (NewTopic("too-many", 1, 4), KafkaError.INVALID_REPLICATION_FACTOR, "4"),
        (NewTopic("strange", 1, 1, config={"no.such": "1"}), KafkaError.INVALID_CONFIG, "no.such"),
        (NewTopic("wrong", 1, 1, config={"retention.ms": "soon"}), KafkaError.INVALID_CONFIG, "retention.ms"),
        (placed("uneven", [1, 2], [3]), KafkaError.INVALID_REPLICA_ASSIGNMENT, ""),
        (placed("doubled", [1, 1]), KafkaError.INVALID_REPLICA_ASSIGNMENT, "1"),
        (NewTopic("__cluster_metadata", 1, 1), KafkaError.INVALID_REQUEST, "__cluster_metadata"),
    ],
    ids=lambda value: value.topic[:20] if isinstance(value, NewTopic) else "",
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_refuses_with_a_text_that_helps(
    confluent: AdminClient, wish: NewTopic, code: int, named: str, validate_only: bool
) -> None:
    """An invalid topic is refused with its own code and a text that names the fault (K4-3,
    K4-C8a).
    """
    (future,) = confluent.create_topics([wish], validate_only=validate_only).values()
    error = refusal(future)
    assert error.code() == code
    assert named in error.str()
    assert wish.topic not in names(confluent)


def test_refuses_a_topic_that_exists(confluent: AdminClient, create: Create, topic: str) -> None:
    """An existing name is TOPIC_ALREADY_EXISTS, with its name in the text (K4-C8a)."""
    create(NewTopic(topic, 1, 1))
    error = refusal(confluent.create_topics([NewTopic(topic, 2, 1)])[topic])
    assert error.code() == KafkaError.TOPIC_ALREADY_EXISTS
    assert topic in error.str()
    assert len(replicas(confluent, topic)) == 1


def test_refuses_names_that_collide(confluent: AdminClient, create: Create, topic: str) -> None:
    """Names that differ only in dots and underscores would share their metrics: the second is
    refused.
    """
    create(NewTopic(f"{topic}.a", 1, 1))
    error = refusal(confluent.create_topics([NewTopic(f"{topic}_a", 1, 1)])[f"{topic}_a"])
    assert error.code() == KafkaError.TOPIC_EXCEPTION
    assert f"{topic}.a" in error.str()


def test_deletes_a_topic(confluent: AdminClient, create: Create, topic: str) -> None:
    """A deleted topic is gone from the metadata when the answer comes (K4-D5)."""
    create(NewTopic(topic, 3, 2))
    confluent.delete_topics([topic])[topic].result()
    until(lambda: topic not in names(confluent))


def test_refuses_to_delete_what_does_not_exist(confluent: AdminClient, create: Create, topic: str) -> None:
    """Deleting an unknown topic is answered UNKNOWN_TOPIC_OR_PARTITION (K4-D2a), and the other
    topic is deleted (K4-2).
    """
    create(NewTopic(topic, 1, 1))
    futures = confluent.delete_topics([f"{topic}-nobody", topic])
    assert refusal(futures[f"{topic}-nobody"]).code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    futures[topic].result()
    until(lambda: topic not in names(confluent))


def test_grows_a_topic(confluent: AdminClient, create: Create, topic: str) -> None:
    """More partitions are added with the replication factor of the topic (K4-A3a)."""
    create(NewTopic(topic, 1, 2))
    confluent.create_partitions([NewPartitions(topic, 4)])[topic].result()
    grown = until(lambda: replicas(confluent, topic), right=lambda found: len(found) == 4)
    assert {len(set(nodes)) for nodes in grown.values()} == {2}


def test_grows_a_topic_by_hand(confluent: AdminClient, create: Create, topic: str) -> None:
    """New partitions are placed as given (K4-A1b)."""
    create(placed(topic, [1, 2]))
    confluent.create_partitions([NewPartitions(topic, 3, [[2, 3], [3, 1]])])[topic].result()
    until(lambda: replicas(confluent, topic), right=lambda found: found == {0: [1, 2], 1: [2, 3], 2: [3, 1]})


def test_growth_that_is_only_validated_adds_nothing(confluent: AdminClient, create: Create, topic: str) -> None:
    """CreatePartitions with validate_only leaves the topic as it is."""
    create(NewTopic(topic, 1, 1))
    confluent.create_partitions([NewPartitions(topic, 5)], validate_only=True)[topic].result()
    assert len(replicas(confluent, topic)) == 1


@pytest.mark.parametrize(
    ("count", "rows", "code"),
    [
        (1, None, KafkaError.INVALID_PARTITIONS),
        (2, None, KafkaError.INVALID_PARTITIONS),
        (3, [[99]], KafkaError.INVALID_REPLICA_ASSIGNMENT),
        (3, [[1, 2]], KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
)
@pytest.mark.usefixtures("made")
def test_refuses_growth_that_is_none(
    confluent: AdminClient, topic: str, count: int, rows: list[list[int]] | None, code: int
) -> None:
    """Fewer or as many partitions, unknown brokers and other replication factors are refused
    (K4-A3b).
    """
    wish = NewPartitions(topic, count, rows) if rows else NewPartitions(topic, count)
    assert refusal(confluent.create_partitions([wish])[topic]).code() == code
    assert len(replicas(confluent, topic)) == 2


def test_refuses_to_grow_what_does_not_exist(confluent: AdminClient, topic: str) -> None:
    """CreatePartitions of an unknown topic is UNKNOWN_TOPIC_OR_PARTITION, with its name."""
    error = refusal(confluent.create_partitions([NewPartitions(topic, 2)])[topic])
    assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert topic in error.str()

"""kafka-python makes, grows and deletes topics, by name and by id; it speaks the
newest versions.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from kafka import errors
from kafka.admin import KafkaAdminClient

from tests.support.waiting import until


def describe(client: KafkaAdminClient, topic: str) -> dict[str, Any]:
    (described,) = client.describe_topics([topic])
    assert isinstance(described, dict)
    return described


def partitions(client: KafkaAdminClient, topic: str) -> dict[int, list[int]]:
    """By partition, its replicas."""
    return {each["partition_index"]: each["replica_nodes"] for each in describe(client, topic)["partitions"]}


def id_of(client: KafkaAdminClient, topic: str) -> UUID:
    return UUID(str(describe(client, topic)["topic_id"]))


def test_creates_and_describes(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """The answer has the counts, the id and all effective configs of the new topic, and Metadata
    agrees.
    """
    wish = {topic: {"num_partitions": 3, "replication_factor": 2, "configs": {"retention.ms": "1000"}}}
    (made,) = python_admin.create_topics(wish)["topics"]
    everywhere(topic)
    assert (made["num_partitions"], made["replication_factor"]) == (3, 2)
    seen = describe(python_admin, topic)
    assert str(seen["topic_id"]) == str(made["topic_id"])
    assert {len(replicas) for replicas in partitions(python_admin, topic).values()} == {2}
    assert topic in python_admin.list_topics()


def test_creates_with_nothing_but_a_name(python_admin: KafkaAdminClient, topic: str) -> None:
    """-1 and -1 are the broker's defaults (K4-C4d)."""
    (made,) = python_admin.create_topics([topic])["topics"]
    assert (made["num_partitions"], made["replication_factor"]) == (1, 1)


def test_creates_placed_by_hand(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """Replicas are taken as given (K4-C4b)."""
    python_admin.create_topics({topic: {"assignments": {0: [2, 1], 1: [3, 2]}}})
    everywhere(topic)
    assert partitions(python_admin, topic) == {0: [2, 1], 1: [3, 2]}


def test_validates_only(python_admin: KafkaAdminClient, topic: str) -> None:
    """A dry run answers as the real one would, and makes nothing."""
    (seen,) = python_admin.create_topics({topic: {"num_partitions": 7}}, validate_only=True)["topics"]
    assert seen["num_partitions"] == 7
    assert topic not in python_admin.list_topics()


@pytest.mark.parametrize(
    ("name", "wish", "error"),
    [
        ("no spaces please", {}, errors.InvalidTopicError),
        ("", {}, errors.InvalidTopicError),
        (".", {}, errors.InvalidTopicError),
        ("many", {"replication_factor": 9}, errors.InvalidReplicationFactorError),
        ("none", {"num_partitions": 0}, errors.InvalidPartitionsError),
        ("none", {"replication_factor": 0}, errors.InvalidReplicationFactorError),
        ("odd", {"configs": {"no.such": "1"}}, errors.InvalidConfigurationError),
        ("null", {"configs": {"retention.ms": None}}, errors.InvalidConfigurationError),
        ("both", {"num_partitions": 1, "assignments": {0: [1]}}, errors.InvalidRequestError),
        ("gap", {"assignments": {0: [1], 2: [1]}}, errors.InvalidReplicationAssignmentError),
    ],
)
def test_refuses(python_admin: KafkaAdminClient, name: str, wish: dict[str, Any], error: type[Exception]) -> None:
    """Each fault has an error of its own (K4-3, K4-C8a)."""
    with pytest.raises(error):
        python_admin.create_topics({name: wish})


def test_refuses_a_topic_that_exists(
    python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str
) -> None:
    """An existing topic is answered TOPIC_ALREADY_EXISTS, and the other topic is created (K4-2)."""
    python_admin.create_topics([topic])
    answer = python_admin.create_topics([topic, f"{topic}-new"], raise_errors=False)
    codes = {row["name"]: row["error_code"] for row in answer["topics"]}
    assert codes == {topic: 36, f"{topic}-new": 0}


def test_deletes_by_name(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """Gone from the list; a second deletion finds nothing (K4-D2a)."""
    python_admin.create_topics([topic])
    everywhere(topic)
    python_admin.delete_topics([topic])
    everywhere(topic, partitions=0)
    assert topic not in python_admin.list_topics()
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        python_admin.delete_topics([topic])


def test_deletes_by_id(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """A topic can be deleted by its id, and the answer has its name; an unknown id is
    UNKNOWN_TOPIC_ID.
    """
    python_admin.create_topics([topic])
    everywhere(topic)
    topic_id = id_of(python_admin, topic)
    (row,) = python_admin.delete_topics([topic_id])["topics"]
    assert row["name"] == topic
    everywhere(topic, partitions=0)
    assert topic not in python_admin.list_topics()
    (row,) = python_admin.delete_topics([topic_id], raise_errors=False)["topics"]
    assert row["error_code"] in {3, 100}  # Kafka knows the id until the clean-up is done


def test_describes_by_id(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """An id names a topic for Metadata, too."""
    python_admin.create_topics([topic])
    everywhere(topic)
    (seen,) = until(
        lambda: python_admin.describe_topics([id_of(python_admin, topic)]),
        right=lambda found: not found[0]["error_code"],
    )
    assert seen["name"] == topic


def test_grows(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """A topic grows by count and by hand, after a dry run (K4-A1b, K4-A3a)."""
    python_admin.create_topics({topic: {"assignments": {0: [1, 2]}}})
    everywhere(topic)
    python_admin.create_partitions({topic: 9}, validate_only=True)
    python_admin.create_partitions({topic: {"count": 2, "assignments": [[3, 1]]}})
    python_admin.create_partitions({topic: 4})
    seen = until(lambda: partitions(python_admin, topic), right=lambda found: len(found) == 4)
    assert (seen[0], seen[1]) == ([1, 2], [3, 1])
    with pytest.raises(errors.InvalidPartitionsError):
        python_admin.create_partitions({topic: 4})
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        python_admin.create_partitions({f"{topic}-no": 4})

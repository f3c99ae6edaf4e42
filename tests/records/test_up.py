"""`up --records` from outside: what rules and the audit log have to do with members, how much is
kept, and what goes with a topic.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from minicontroller.audit.event import Effect
from tests.audit.logs import decisions_in
from tests.support.cluster import MiniCluster, running_cluster

RULES = """
[[rule]]
name = "offsets are the members'"
operations = ["admin"]
condition = 'request.kind != "group" || !request.name.startsWith("held")'
message = "Leave these offsets to the members."
"""
ROOM = 2 * 1024 * 1024
PATIENCE_SECONDS = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("records")


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[MiniCluster]:
    (folder / "rules.toml").write_text(RULES)
    settings = {
        "policy.rules.files": str(folder / "rules.toml"),
        "audit.dir": str(folder / "audit"),
        "audit.flush": "always",
        "group.initial.rebalance.delay.ms": "0",
        "records.memory.max.bytes": str(ROOM),
    }
    with running_cluster(brokers=2, settings=settings, options=["--records"]) as cluster:
        yield cluster


@pytest.fixture
def admin(cluster: MiniCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def create(admin: AdminClient, topic: str) -> None:
    admin.create_topics([NewTopic(topic, 1, 2)])[topic].result(PATIENCE_SECONDS)


def produce(cluster: MiniCluster, topic: str, *values: bytes) -> list[KafkaError | None]:
    """Produce these values, and return the error of each."""
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _message: errors.append(error))
        producer.flush(PATIENCE_SECONDS)
    return errors


def consume(cluster: MiniCluster, topic: str, group: str, count: int) -> list[bytes | None]:
    """Consume as the only member of a group, and commit."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        found = consumer.consume(count, PATIENCE_SECONDS)
        consumer.commit(asynchronous=False)
        return [message.value() for message in found]
    finally:
        consumer.close()


def test_rules_judge_administrators_and_not_members(cluster: MiniCluster, admin: AdminClient, folder: Path) -> None:
    """A rule about groups refuses what an administrator sets, and the audit log has that; what a
    member commits is neither judged nor recorded.
    """
    create(admin, "judged")
    assert produce(cluster, "judged", b"1", b"2") == [None, None]
    assert consume(cluster, "judged", "held-by-members", 2) == [b"1", b"2"]
    moved = ConsumerGroupTopicPartitions("held-by-members", [TopicPartition("judged", 0, 1)])
    (refused,) = (
        admin.alter_consumer_group_offsets([moved])["held-by-members"].result(PATIENCE_SECONDS).topic_partitions
    )
    assert refused.error is not None
    free = ConsumerGroupTopicPartitions("free", [TopicPartition("judged", 0, 1)])
    admin.alter_consumer_group_offsets([free])["free"].result(PATIENCE_SECONDS)
    asked = ConsumerGroupTopicPartitions("held-by-members")
    told = admin.list_consumer_group_offsets([asked])["held-by-members"].result(PATIENCE_SECONDS)
    assert [each.offset for each in told.topic_partitions] == [2]
    assert consume(cluster, "judged", "free", 1) == [b"2"]
    of_groups = [each for each in decisions_in(folder / "audit") if each.resource == "group"]
    assert [(each.name, each.effect) for each in of_groups] == [
        ("held-by-members", Effect.NONE),
        ("free", Effect.APPLIED),
    ]


def test_what_finds_no_room_is_refused_at_once(cluster: MiniCluster, admin: AdminClient) -> None:
    """Beyond `records.memory.max.bytes` a producer gets an error that it does not retry, and what
    was kept stays.
    """
    create(admin, "large")
    errors = produce(cluster, "large", *[b"x" * 500_000] * 5)
    codes = [0 if error is None else error.code() for error in errors]
    assert codes[0] == 0
    assert codes[-1] == KafkaError.POLICY_VIOLATION
    kept = codes.count(0)
    assert len(consume(cluster, "large", "reader", kept)) == kept
    admin.delete_topics(["large"])["large"].result(PATIENCE_SECONDS)
    create(admin, "after")
    assert produce(cluster, "after", b"x" * 500_000) == [None]


def test_a_topic_takes_its_records_and_offsets_with_it(cluster: MiniCluster, admin: AdminClient) -> None:
    """A topic of the same name begins empty, and its groups with it."""
    create(admin, "again")
    assert produce(cluster, "again", b"old") == [None]
    assert consume(cluster, "again", "group-of-again", 1) == [b"old"]
    admin.delete_topics(["again"])["again"].result(PATIENCE_SECONDS)
    create(admin, "again")
    assert produce(cluster, "again", b"new") == [None]
    assert consume(cluster, "again", "group-of-again", 1) == [b"new"]

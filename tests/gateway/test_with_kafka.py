"""A gateway in front of a real Kafka 3.9.1: data, groups, administration, and brokers that come and
go.
"""

import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaProducer
from kafka.protocol.consumer import FetchRequest, FetchResponse

from tests.support.gateway import GatewayProcess, most_resident_bytes, running_gateway
from tests.support.kafka import KafkaCluster, running_kafka
from tests.support.maven import needs_maven
from tests.support.waiting import PATIENCE_SECONDS, until
from tests.support.wire import Wire, plain

pytestmark = [needs_maven, pytest.mark.slow]

LARGE_BYTES = 20_000_000
MEMORY_BYTES = 100 * 1024 * 1024


@pytest.fixture(scope="module", name="kafka")
def kafka_fixture() -> Iterator[KafkaCluster]:
    settings = {
        "message.max.bytes": str(2 * LARGE_BYTES),
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "2",
    }
    with running_kafka(2, settings) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def gateway(kafka: KafkaCluster) -> Iterator[GatewayProcess]:
    with running_gateway(kafka.bootstrap) as gateway:
        yield gateway


def created(gateway: GatewayProcess, topic: str) -> None:
    """Make a topic, and wait until its partitions are led."""
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
    admin.create_topics([NewTopic(topic, 4, 2)])[topic].result(PATIENCE_SECONDS)
    until(lambda: are_led(admin, topic))


def are_led(admin: AdminClient, topic: str) -> bool:
    """Whether the leaders of its partitions know that they lead: what a producer sends without
    asking for an answer is lost before.
    """
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    answers = admin.list_offsets({TopicPartition(topic, number): latest for number in range(4)})
    return not any(answer.exception(PATIENCE_SECONDS) for answer in answers.values())


def consumed(gateway: GatewayProcess, topic: str, count: int, **more: Any) -> list[bytes]:
    """Consume records in a group, from the beginning, and commit."""
    settings = {
        "bootstrap.servers": gateway.bootstrap,
        "group.id": f"group-{topic}",
        "auto.offset.reset": "earliest",
        "fetch.message.max.bytes": 2 * LARGE_BYTES,
        **more,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    got: list[bytes] = []

    def all_of_them() -> list[bytes]:
        got.extend(value_of(message) for message in consumer.consume(1000, 0.5))
        return got

    try:
        until(all_of_them, right=lambda seen: len(seen) >= count)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return got


def value_of(message: Message) -> bytes:
    assert message.error() is None, message.error()
    value = message.value()
    assert isinstance(value, bytes)
    return value


def test_records_go_in_and_come_out(gateway: GatewayProcess) -> None:
    """A client makes a topic, produces, and consumes in a group, whose coordinator is found and
    reached through the gateway (U-3a).
    """
    created(gateway, "orders")
    producer = Producer({"bootstrap.servers": gateway.bootstrap, "compression.type": "gzip", "acks": "all"})
    sent = [f"order {number}".encode() for number in range(5000)]
    for value in sent:
        producer.produce("orders", value)
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert sorted(consumed(gateway, "orders", len(sent))) == sorted(sent)


def test_records_without_an_answer(gateway: GatewayProcess) -> None:
    """A producer with `acks=0` gets no responses, and what it asks for besides is answered."""
    created(gateway, "unanswered")
    producer = KafkaProducer(bootstrap_servers=gateway.bootstrap, acks=0)
    for number in range(100):
        producer.send("unanswered", str(number).encode())
    producer.flush(PATIENCE_SECONDS)
    assert len(producer.partitions_for("unanswered")) == 4
    producer.close()
    assert len(consumed(gateway, "unanswered", 100)) == 100


def test_a_large_record_takes_little_memory(gateway: GatewayProcess) -> None:
    """Requests and responses of twenty megabytes pass through a process that keeps pieces of
    them.
    """
    created(gateway, "large")
    producer = Producer({"bootstrap.servers": gateway.bootstrap, "message.max.bytes": 2 * LARGE_BYTES})
    value = bytes(range(256)) * (LARGE_BYTES // 256)
    for _ in range(8):
        producer.produce("large", value)
        assert producer.flush(PATIENCE_SECONDS) == 0
    assert consumed(gateway, "large", 8) == [value] * 8
    assert most_resident_bytes(gateway.pid) < MEMORY_BYTES


def test_transactions(gateway: GatewayProcess) -> None:
    """A transaction that is committed is read, and one that is aborted is not (U-3a)."""
    created(gateway, "paid")
    producer = Producer({"bootstrap.servers": gateway.bootstrap, "transactional.id": "till"})
    producer.init_transactions(PATIENCE_SECONDS)
    for value, commits in ((b"aborted", False), (b"committed", True)):
        producer.begin_transaction()
        producer.produce("paid", value)
        producer.flush(PATIENCE_SECONDS)
        if commits:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.abort_transaction(PATIENCE_SECONDS)
    assert consumed(gateway, "paid", 1) == [b"committed"]


def test_a_client_that_is_older(gateway: GatewayProcess) -> None:
    """Clients that know nothing but the protocol of Kafka 0.10 work as with any Kafka 3.9: one that
    asks for no versions, and one that is told which there are.
    """
    created(gateway, "old")
    settings: dict[str, Any] = {"api.version.request": False, "broker.version.fallback": "0.10.0.0"}
    producer = Producer({"bootstrap.servers": gateway.bootstrap, "compression.type": "gzip", **settings})
    producer.produce("old", b"without versions")
    assert producer.flush(PATIENCE_SECONDS) == 0
    other = KafkaProducer(bootstrap_servers=gateway.bootstrap, api_version=(0, 10, 0))
    other.send("old", b"with old versions").get(PATIENCE_SECONDS)
    other.close()
    assert sorted(consumed(gateway, "old", 2, **settings)) == [b"with old versions", b"without versions"]


def test_a_leader_elsewhere_is_named_at_the_gateway(kafka: KafkaCluster, gateway: GatewayProcess) -> None:
    """A broker that is asked for a partition of another one names that broker (KIP-951) at its
    address of the gateway; asked directly, at its own (U-3b).
    """
    admin = AdminClient({"bootstrap.servers": gateway.bootstrap})
    admin.create_topics([NewTopic("lonely", 1, replica_assignment=[[1]])])["lonely"].result(PATIENCE_SECONDS)
    for addresses in (gateway.addresses, kafka.addresses):
        endpoint = until(partial(leader_told_by, addresses[2]), right=bool)
        assert f"{endpoint['host']}:{endpoint['port']}" == addresses[1]
        assert endpoint["node_id"] == 1


def leader_told_by(address: str) -> dict[str, Any]:
    """Return the endpoint that a broker without the partition names in its response to Fetch, once
    it knows of the topic.
    """
    with Wire(address) as wire:
        (topic,) = wire.ask("Metadata", 12, {"topics": [{"name": "lonely"}]})["topics"]
        if not topic["topic_id"]:  # the broker does not know of the topic yet
            return {}
        request = FetchRequest(
            version=17,
            max_bytes=1000,
            topics=[
                FetchRequest.FetchTopic(
                    version=17,
                    topic_id=uuid.UUID(topic["topic_id"]),
                    partitions=[FetchRequest.FetchTopic.FetchPartition(version=17, partition=0, partition_max_bytes=1)],
                )
            ],
        )
        request.with_header(1, "test")
        frame = wire.exchange(request.encode(version=17, header=True, framed=True))
    response = plain(FetchResponse.decode(frame, version=17, header=True), FetchResponse._struct, 17)
    named: list[dict[str, Any]] = response["node_endpoints"]
    return named[0] if named else {}


def test_a_broker_that_comes_back(kafka: KafkaCluster, gateway: GatewayProcess) -> None:
    """A client goes on when a broker has gone and come back: what was acknowledged is there, and
    nothing is lost (U-3f).
    """
    created(gateway, "survivor")
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": gateway.bootstrap, "acks": "all", "message.timeout.ms": 60_000})

    def produce(first: int) -> None:
        for number in range(first, first + 100):
            producer.produce("survivor", str(number).encode(), on_delivery=lambda error, _: errors.append(error))
        producer.poll(0)

    produce(0)
    assert producer.flush(PATIENCE_SECONDS) == 0
    process = kafka.processes["broker-2"]
    process.terminate()  # one that is killed cannot come back before its session has expired
    process.wait()
    produce(100)
    kafka.start_broker(2)
    produce(200)
    until(lambda: producer.flush(0.5) == 0)
    assert errors == [None] * 300
    assert sorted(set(consumed(gateway, "survivor", 300)), key=int) == [str(number).encode() for number in range(300)]

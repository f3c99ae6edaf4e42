"""The scripts of the clients that are written in Python: administration, records, groups,
transactions.

A script takes an `Access` and returns a line for each step, with what it saw or the error. Nothing
in the lines differs between two clusters that are alike.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AsyncNewTopic
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka import TopicPartition as Partition
from kafka.admin import NewTopic as OtherNewTopic
from kafka.errors import KafkaError, UnknownTopicOrPartitionError

from tests.gateway.clients.worlds import FORBIDDEN, Access, password_of
from tests.support.waiting import PATIENCE_SECONDS, at_last, until

RECORDS = 40
PARTITIONS = 2
ENDS = [RECORDS // PARTITIONS + 4, RECORDS // PARTITIONS]
"""With the records of two transactions and their markers, which come later than the answer."""


def step(lines: list[str], name: str, body: Callable[[], object]) -> None:
    """Add a line that tells what a step saw."""
    try:
        seen = str(body())
    except KafkaException as error:
        seen = str(error.args[0])
    except (KafkaError, AssertionError) as error:
        seen = f"{type(error).__name__} {error}"
    lines.append(f"{name} = {seen}")


def by_confluent_kafka(access: Access) -> list[str]:
    """Go through administration, an idempotent producer, a group and transactions of librdkafka."""
    lines: list[str] = []
    admin = AdminClient(access.librdkafka())
    topic, forbidden = f"{access.prefix}topic", f"{access.prefix}{FORBIDDEN}"

    def created() -> object:
        futures = admin.create_topics([NewTopic(topic, PARTITIONS, 2, config={"retention.ms": "3600000"})])
        futures[topic].result(PATIENCE_SECONDS)
        until(lambda: all_led(admin, topic))
        return "created"

    def two_at_once() -> object:
        futures = admin.create_topics([NewTopic(f"{access.prefix}good", 1, 1), NewTopic(forbidden, 1, 1)])
        futures[f"{access.prefix}good"].result(PATIENCE_SECONDS)
        return futures[forbidden].result(PATIENCE_SECONDS)

    def configured() -> object:
        entry = ConfigEntry("max.message.bytes", "200000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(PATIENCE_SECONDS)

        def value() -> str:
            (told,) = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
            return str(told.result(PATIENCE_SECONDS)["max.message.bytes"].value)

        return until(value, right=lambda seen: seen == "200000")

    def secured() -> object:
        pattern: tuple[Any, ...] = (ResourceType.TOPIC, f"{access.prefix}acl", ResourcePatternType.LITERAL)
        rest: tuple[Any, ...] = ("User:carol", "*", AclOperation.READ, AclPermissionType.ALLOW)
        for future in admin.create_acls([AclBinding(*pattern, *rest)]).values():
            future.result(PATIENCE_SECONDS)
        wanted = AclBindingFilter(*pattern, *rest)
        until(lambda: admin.describe_acls(wanted).result(PATIENCE_SECONDS))
        return [len(each.result(PATIENCE_SECONDS)) for each in admin.delete_acls([wanted]).values()]

    step(lines, "create", created)
    step(lines, "refused", two_at_once)
    step(lines, "grow", lambda: admin.create_partitions([NewPartitions(topic, 1)])[topic].result(PATIENCE_SECONDS))
    step(lines, "configs", configured)
    step(lines, "produce", lambda: produced(access, topic))
    step(lines, "consume", lambda: consumed(access, topic))
    step(lines, "transactions", lambda: paid(access, topic))
    step(lines, "offsets", lambda: until(lambda: ends(admin, topic), right=lambda seen: seen == ENDS))
    step(lines, "groups", lambda: groups(admin, access))
    step(lines, "acls", secured)
    step(lines, "cluster", lambda: sorted(admin.list_topics(timeout=PATIENCE_SECONDS).brokers))
    step(lines, "delete", lambda: admin.delete_topics([f"{access.prefix}good"])[f"{access.prefix}good"].result(60))
    step(lines, "delete nothing", lambda: admin.delete_topics([f"{access.prefix}x"])[f"{access.prefix}x"].result(60))
    return lines


def all_led(admin: AdminClient, topic: str) -> bool:
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    answers = admin.list_offsets({TopicPartition(topic, number): latest for number in range(PARTITIONS)})
    return not any(answer.exception(PATIENCE_SECONDS) for answer in answers.values())


def ends(admin: AdminClient, topic: str) -> list[int]:
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    answers = admin.list_offsets({TopicPartition(topic, number): latest for number in range(PARTITIONS)})
    return [answer.result(PATIENCE_SECONDS).offset for answer in answers.values()]


def produced(access: Access, topic: str) -> str:
    """Send records, and return what was told of them."""
    told: list[str] = []
    producer = Producer({**access.librdkafka(), "enable.idempotence": True, "compression.type": "gzip"})
    for number in range(RECORDS):
        producer.produce(
            topic,
            f"value {number}".encode(),
            partition=number % PARTITIONS,
            on_delivery=lambda error, _: told.append(str(error)),
        )
    left = producer.flush(PATIENCE_SECONDS)
    return f"{left} left, {sorted(set(told))}"


def consumed(access: Access, topic: str) -> str:
    settings = {"group.id": f"{access.prefix}group", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**access.librdkafka(), **settings})
    consumer.subscribe([topic])
    seen: set[bytes] = set()

    def all_of_them() -> int:
        for message in consumer.consume(100, 0.2):
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            value = message.value()
            assert isinstance(value, bytes)
            seen.add(value)
        return len(seen)

    try:
        until(all_of_them, right=lambda count: count >= RECORDS)
        committed = consumer.commit(asynchronous=False)
        assert committed is not None
        return f"{len(seen)} {sorted((each.partition, each.offset) for each in committed)}"
    finally:
        consumer.close()


def paid(access: Access, topic: str) -> str:
    producer = Producer({**access.librdkafka(), "transactional.id": f"{access.prefix}till"})
    producer.init_transactions(PATIENCE_SECONDS)
    for commits in (False, True):
        producer.begin_transaction()
        producer.produce(topic, b"paid", partition=0)
        producer.flush(PATIENCE_SECONDS)
        if commits:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.abort_transaction(PATIENCE_SECONDS)
    return "done"


def groups(admin: AdminClient, access: Access) -> str:
    name = f"{access.prefix}group"

    def empty() -> bool:
        described = admin.describe_consumer_groups([name])[name].result(PATIENCE_SECONDS)
        return bool(described.state.name == "EMPTY")

    until(empty)
    listed = admin.list_consumer_groups().result(PATIENCE_SECONDS)
    names = sorted(each.group_id for each in listed.valid if each.group_id.startswith(access.prefix))
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(PATIENCE_SECONDS)
    return f"{names} {sorted((each.partition, each.offset) for each in asked.topic_partitions)}"


def by_confluent_kafka_without_rights(access: Access) -> list[str]:
    """Return the answers to somebody who may do nothing. The deletion of what is not there is left
    out, because the gateway answers it itself.
    """
    lines: list[str] = []
    admin = AdminClient(access.librdkafka())
    topic, group = f"{access.prefix}topic", f"{access.prefix}group"
    step(lines, "create", lambda: admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60))
    step(lines, "grow", lambda: admin.create_partitions([NewPartitions(topic, 5)])[topic].result(60))
    of_topic = ConfigResource(ConfigResource.Type.TOPIC, topic)
    of_broker = ConfigResource(ConfigResource.Type.BROKER, "1")
    step(lines, "configs", lambda: admin.describe_configs([of_topic])[of_topic].result(60))
    step(lines, "configs of a broker", lambda: admin.describe_configs([of_broker])[of_broker].result(60))
    step(lines, "group", lambda: admin.describe_consumer_groups([group])[group].result(60).state)
    step(lines, "delete group", lambda: admin.delete_consumer_groups([group])[group].result(60))
    step(lines, "produce", lambda: produced(access, topic))
    step(lines, "topics", lambda: sorted(admin.list_topics(timeout=60).topics))
    return lines


def by_kafka_python(access: Access) -> list[str]:
    """Go through administration, a producer and a group of kafka-python."""
    lines: list[str] = []
    settings: dict[str, Any] = {"bootstrap_servers": access.bootstrap, "security_protocol": access.protocol}
    settings["metadata_max_age_ms"] = 500  # the broker that a consumer asks first may not know the topic yet
    if access.logs_in:
        settings |= {"ssl_cafile": str(access.ca), "sasl_mechanism": "PLAIN"}
        settings |= {"sasl_plain_username": access.user, "sasl_plain_password": password_of(access.user)}
    topic, forbidden = f"{access.prefix}topic", f"{access.prefix}{FORBIDDEN}"
    admin = KafkaAdminClient(**settings)

    def created() -> str:
        admin.create_topics([OtherNewTopic(topic, PARTITIONS, 2)])
        until(lambda: topic in admin.list_topics())
        return "created"

    def sent() -> list[int]:
        producer = KafkaProducer(**settings, acks="all")
        try:
            futures = [producer.send(topic, b"value", partition=number % PARTITIONS) for number in range(RECORDS)]
            return [each.get(PATIENCE_SECONDS).offset for each in futures]
        finally:
            producer.close()

    def read() -> str:
        """Read all, again where a consumer was given nothing: this client may miss its first
        assignment, also without a gateway.
        """
        return until(read_once, right=lambda seen: seen.startswith(str(RECORDS)))

    def read_once() -> str:
        consumer = KafkaConsumer(topic, **settings, group_id=f"{access.prefix}group", auto_offset_reset="earliest")
        count = 0

        def more() -> int:
            nonlocal count
            count += sum(map(len, consumer.poll(200).values()))
            return count

        try:
            if at_last(more, right=lambda seen: seen >= RECORDS, within=10) < RECORDS:
                return f"{count}"
            consumer.commit()
            return f"{count} {[consumer.committed(Partition(topic, number)) for number in range(PARTITIONS)]}"
        finally:
            consumer.close()

    try:
        step(lines, "create", created)
        step(lines, "refused", lambda: admin.create_topics([OtherNewTopic(forbidden, 1, 1)]))
        step(lines, "produce", sent)
        step(lines, "consume", read)
        step(lines, "cluster", lambda: sorted(each["broker_id"] for each in admin.describe_cluster()["brokers"]))
        with pytest.raises(UnknownTopicOrPartitionError):  # KRaft has a text in it, and the gateway none
            admin.delete_topics([f"{access.prefix}x"])
    finally:
        admin.close()
    return lines


def by_aiokafka(access: Access) -> list[str]:
    """Go through administration, a producer and a group of aiokafka."""
    return asyncio.run(_by_aiokafka(access))


async def _by_aiokafka(access: Access) -> list[str]:
    settings: dict[str, Any] = {"bootstrap_servers": access.bootstrap, "security_protocol": access.protocol}
    settings["metadata_max_age_ms"] = 500  # the broker that a consumer asks first may not know the topic yet
    if access.logs_in:
        context = ssl.create_default_context(cafile=access.ca)
        settings |= {"ssl_context": context, "sasl_mechanism": "PLAIN"}
        settings |= {"sasl_plain_username": access.user, "sasl_plain_password": password_of(access.user)}
    topic, forbidden = f"{access.prefix}topic", f"{access.prefix}{FORBIDDEN}"
    lines: list[str] = []
    admin = AIOKafkaAdminClient(**settings)
    await admin.start()
    try:
        for name in (topic, forbidden):
            told = (await admin.create_topics([AsyncNewTopic(name, PARTITIONS, 2)])).topic_errors
            lines.append(f"{'refused' if name == forbidden else 'create'} = {told}")
        while topic not in await admin.list_topics():
            pass
        lines.append(f"delete nothing = {(await admin.delete_topics([f'{access.prefix}x'])).topic_error_codes}")
    finally:
        await admin.close()
    async with AIOKafkaProducer(**settings, acks="all", enable_idempotence=True) as producer:
        offsets = [
            (await producer.send_and_wait(topic, b"value", partition=number % PARTITIONS)).offset
            for number in range(RECORDS)
        ]
        lines.append(f"produce = {offsets}")
    consumer = AIOKafkaConsumer(topic, **settings, group_id=f"{access.prefix}group", auto_offset_reset="earliest")
    async with consumer:
        seen = [await asyncio.wait_for(consumer.getone(), PATIENCE_SECONDS) for _ in range(RECORDS)]
        await consumer.commit()
        lines.append(f"consume = {len(seen)} {sorted((each.partition, each.offset) for each in seen)}")
    return lines

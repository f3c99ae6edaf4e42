"""The three administrative clients behind `people.py`, with the few calls that it makes.

Rule: a call returns when the change was acknowledged, and raises one of `FAULTS` if it was refused
or if nobody knows.
"""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AsyncExitStack
from multiprocessing import get_context
from typing import Any, Protocol

import trio
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from minicontroller.client import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclResourceType,
    AdminClient,
    AdminError,
    AlterConfigOp,
    ClusterUnreachable,
    ConfigOperation,
    NewTopic,
    OffsetAndMetadata,
    PatternType,
    PermissionType,
    Resource,
    ResourcePattern,
    TopicPartition,
    configure,
)
from tests.soak.librdkafka import PRINCIPAL, REPLICAS, TIMEOUT_SECONDS, ask, connect


class Refused(Exception):  # noqa: N818
    """librdkafka refused, or does not know."""


FAULTS = (AdminError, ClusterUnreachable, Refused, kafka_errors.KafkaError, OSError)

DEEDS = ("create", "delete", "grow", "alter", "permit", "revoke", "commit", "move", "read")
"""All that a client can be asked for."""


class Hands(Protocol):
    """What one client can do."""

    deeds: tuple[str, ...]
    """What it cannot do is not asked of it."""

    async def create(self, topic: str, partitions: int, retention: str) -> None: ...
    async def delete(self, topic: str) -> None: ...
    async def grow(self, topic: str, partitions: int) -> None: ...
    async def alter(self, topic: str, retention: str) -> None: ...
    async def permit(self, topic: str) -> None: ...
    async def revoke(self, topic: str) -> None: ...
    async def commit(self, group: str, topic: str, offset: int) -> None: ...
    async def move(self, topic: str, brokers: list[int]) -> None: ...
    async def read(self) -> None: ...


class OurHands:
    """Our own client, `minicontroller.client`."""

    deeds: tuple[str, ...] = DEEDS

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    async def create(self, topic: str, partitions: int, retention: str) -> None:
        await self._admin.create_topic(NewTopic(topic, partitions, REPLICAS, configs={"retention.ms": retention}))

    async def delete(self, topic: str) -> None:
        await self._admin.delete_topic(topic)

    async def grow(self, topic: str, partitions: int) -> None:
        _only(await self._admin.create_partitions({topic: partitions}))

    async def alter(self, topic: str, retention: str) -> None:
        change = AlterConfigOp(ConfigOperation.SET, "retention.ms", retention)
        _only(await self._admin.alter_configs({Resource.topic(topic): [change]}))

    async def permit(self, topic: str) -> None:
        pattern = ResourcePattern(AclResourceType.TOPIC, topic, PatternType.LITERAL)
        entry = AccessControlEntry(PRINCIPAL, "*", AclOperation.READ, PermissionType.ALLOW)
        _only(await self._admin.create_acls([AclBinding(pattern, entry)]))

    async def revoke(self, topic: str) -> None:
        which = AclBindingFilter(AclResourceType.TOPIC, topic, PatternType.LITERAL, PRINCIPAL)
        _only(await self._admin.delete_acls([which]))

    async def commit(self, group: str, topic: str, offset: int) -> None:
        wanted = {TopicPartition(topic, 0): OffsetAndMetadata(offset)}
        _only(await self._admin.alter_consumer_group_offsets(group, wanted))

    async def move(self, topic: str, brokers: list[int]) -> None:
        _only(await self._admin.alter_partition_reassignments({TopicPartition(topic, 0): brokers}))

    async def read(self) -> None:
        names = list(await self._admin.list_topics())
        await self._admin.describe_topics(names)
        await self._admin.describe_configs([Resource.topic(name) for name in names])
        await self._admin.describe_acls(AclBindingFilter())
        await self._admin.describe_cluster()


def _only(results: Any) -> None:
    (result,) = results.values()
    if isinstance(result, AdminError):
        raise result


async def our_hands(bootstrap: str, stack: AsyncExitStack) -> Hands:
    settings = {
        "bootstrap.servers": bootstrap,
        "default.api.timeout.ms": str(TIMEOUT_SECONDS * 1000),
        "request.timeout.ms": str(TIMEOUT_SECONDS * 1000),
    }
    return OurHands(await stack.enter_async_context(AdminClient.connect(configure(settings))))


class LibrdkafkaHands:
    """confluent-kafka, which is librdkafka, in a process of its own: an assertion of its C that
    fails while nodes die is to end no soak.
    """

    deeds: tuple[str, ...] = ("create", "delete", "grow", "alter", "permit", "revoke", "commit", "read")

    def __init__(self, worker: ProcessPoolExecutor) -> None:
        self._worker = worker

    async def create(self, topic: str, partitions: int, retention: str) -> None:
        await self._ask("create", topic, partitions, retention)

    async def delete(self, topic: str) -> None:
        await self._ask("delete", topic)

    async def grow(self, topic: str, partitions: int) -> None:
        await self._ask("grow", topic, partitions)

    async def alter(self, topic: str, retention: str) -> None:
        await self._ask("alter", topic, retention)

    async def permit(self, topic: str) -> None:
        await self._ask("permit", topic)

    async def revoke(self, topic: str) -> None:
        await self._ask("revoke", topic)

    async def commit(self, group: str, topic: str, offset: int) -> None:
        await self._ask("commit", group, topic, offset)

    async def move(self, topic: str, brokers: list[int]) -> None:
        raise NotImplementedError

    async def read(self) -> None:
        await self._ask("read")

    async def _ask(self, deed: str, *wanted: Any) -> None:
        try:
            refusal = await trio.to_thread.run_sync(lambda: self._worker.submit(ask, deed, *wanted).result())
        except BrokenProcessPool as error:
            raise Refused("the process of librdkafka ended") from error
        if refusal is not None:
            raise Refused(refusal)


async def _in_thread(end: Callable[[], object]) -> None:
    """End a client that waits for its threads or processes."""
    await trio.to_thread.run_sync(end)


async def librdkafka_hands(bootstrap: str, stack: AsyncExitStack) -> Hands:
    worker = ProcessPoolExecutor(1, get_context("spawn"), connect, (bootstrap,))
    stack.push_async_callback(_in_thread, worker.shutdown)
    return LibrdkafkaHands(worker)


class KafkaPythonHands:
    """kafka-python."""

    deeds: tuple[str, ...] = ("create", "delete", "grow", "alter", "read")

    def __init__(self, admin: KafkaAdminClient) -> None:
        self._admin = admin

    async def create(self, topic: str, partitions: int, retention: str) -> None:
        new = {"num_partitions": partitions, "replication_factor": REPLICAS, "configs": {"retention.ms": retention}}
        await self._ask(self._admin.create_topics, {topic: new}, timeout_ms=TIMEOUT_SECONDS * 1000)

    async def delete(self, topic: str) -> None:
        await self._ask(self._admin.delete_topics, [topic], timeout_ms=TIMEOUT_SECONDS * 1000)

    async def grow(self, topic: str, partitions: int) -> None:
        await self._ask(self._admin.create_partitions, {topic: partitions}, timeout_ms=TIMEOUT_SECONDS * 1000)

    async def alter(self, topic: str, retention: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": retention})
        results = await self._ask(self._admin.alter_configs, [resource], raise_on_unknown=False)
        if results["topic"][topic] != "OK":
            raise kafka_errors.KafkaError(results["topic"][topic])

    async def permit(self, topic: str) -> None:
        raise NotImplementedError

    async def revoke(self, topic: str) -> None:
        raise NotImplementedError

    async def commit(self, group: str, topic: str, offset: int) -> None:
        raise NotImplementedError

    async def move(self, topic: str, brokers: list[int]) -> None:
        raise NotImplementedError

    async def read(self) -> None:
        await self._ask(self._admin.describe_topics, None)

    async def _ask(self, call: Callable[..., Any], *wanted: Any, **more: Any) -> Any:
        try:
            return await trio.to_thread.run_sync(lambda: call(*wanted, **more))
        except Exception as error:
            raise kafka_errors.KafkaError(str(error)) from error


async def kafka_python_hands(bootstrap: str, stack: AsyncExitStack) -> Hands:
    milliseconds = TIMEOUT_SECONDS * 1000
    settings = {"bootstrap_servers": bootstrap, "request_timeout_ms": milliseconds}
    admin = await trio.to_thread.run_sync(lambda: KafkaAdminClient(**settings))
    stack.push_async_callback(_in_thread, admin.close)
    return KafkaPythonHands(admin)


HANDS = {"ours": our_hands, "librdkafka": librdkafka_hands, "kafka-python": kafka_python_hands}

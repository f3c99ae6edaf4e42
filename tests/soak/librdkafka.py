"""librdkafka, by confluent-kafka, as the worker process of `hands.py` calls it.

Rule: nothing of confluent-kafka leaves the process; a call returns None, or what was wrong.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import confluent_kafka
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
    ResourcePatternType,
    ResourceType,
)

PRINCIPAL = "User:soak"
TIMEOUT_SECONDS = 8
REPLICAS = 2

_clients: list[AdminClient] = []
"""The one client of this process."""


def connect(bootstrap: str) -> None:
    """Make the client of this process."""
    _clients.append(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}))


def ask(deed: str, *wanted: Any) -> str | None:
    """Carry out a deed; return None once it was acknowledged, or what was wrong."""
    try:
        DEEDS[deed](_clients[0], *wanted)
    except Exception as error:  # noqa: BLE001 - told to the other process, which has no such types
        return f"{type(error).__name__}: {error}"
    return None


def _create(admin: AdminClient, topic: str, partitions: int, retention: str) -> None:
    new = NewTopic(topic, partitions, REPLICAS, config={"retention.ms": retention})
    _first(admin.create_topics([new], operation_timeout=TIMEOUT_SECONDS, request_timeout=TIMEOUT_SECONDS))


def _delete(admin: AdminClient, topic: str) -> None:
    _first(admin.delete_topics([topic], operation_timeout=TIMEOUT_SECONDS, request_timeout=TIMEOUT_SECONDS))


def _grow(admin: AdminClient, topic: str, partitions: int) -> None:
    new = NewPartitions(topic, partitions)
    _first(admin.create_partitions([new], operation_timeout=TIMEOUT_SECONDS, request_timeout=TIMEOUT_SECONDS))


def _alter(admin: AdminClient, topic: str, retention: str) -> None:
    step = ConfigEntry("retention.ms", retention, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[step])
    _first(admin.incremental_alter_configs([resource], request_timeout=TIMEOUT_SECONDS))


def _permit(admin: AdminClient, topic: str) -> None:
    _first(admin.create_acls([AclBinding(*_acl(topic))], request_timeout=TIMEOUT_SECONDS))


def _revoke(admin: AdminClient, topic: str) -> None:
    _first(admin.delete_acls([AclBindingFilter(*_acl(topic))], request_timeout=TIMEOUT_SECONDS))


def _commit(admin: AdminClient, group: str, topic: str, offset: int) -> None:
    wanted = [confluent_kafka.TopicPartition(topic, 0, offset)]
    request = confluent_kafka.ConsumerGroupTopicPartitions(group, wanted)
    answer = _first(admin.alter_consumer_group_offsets([request], request_timeout=TIMEOUT_SECONDS))
    (row,) = answer.topic_partitions
    if row.error:
        raise confluent_kafka.KafkaException(row.error)


def _read(admin: AdminClient) -> None:
    topics = sorted(admin.list_topics(timeout=TIMEOUT_SECONDS).topics)
    if topics:
        _first(admin.describe_topics(confluent_kafka.TopicCollection(topics), request_timeout=TIMEOUT_SECONDS))


def _acl(topic: str) -> tuple[Any, ...]:
    which = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, PRINCIPAL, "*")
    return (*which, AclOperation.READ, AclPermissionType.ALLOW)


def _first(futures: dict[Any, Future[Any]]) -> Any:
    return next(iter(futures.values())).result(2 * TIMEOUT_SECONDS)


DEEDS: dict[str, Callable[..., None]] = {
    "create": _create,
    "delete": _delete,
    "grow": _grow,
    "alter": _alter,
    "permit": _permit,
    "revoke": _revoke,
    "commit": _commit,
    "read": _read,
}

"""confluent-kafka (librdkafka) reads and changes configs of topics and nodes."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewTopic,
    ResourceType,
)

from tests.clients.test_confluent_topics import Create, refusal
from tests.support.waiting import until

SET, DELETE, APPEND, SUBTRACT = (
    AlterConfigOpType.SET,
    AlterConfigOpType.DELETE,
    AlterConfigOpType.APPEND,
    AlterConfigOpType.SUBTRACT,
)


def described(client: AdminClient, resource: ConfigResource) -> dict[str, ConfigEntry]:
    (future,) = client.describe_configs([resource]).values()
    entries: dict[str, ConfigEntry] = future.result()
    return entries


def of_topic(topic: str, *steps: ConfigEntry, whole: dict[str, str] | None = None) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, topic, set_config=whole, incremental_configs=list(steps) or None)


def of_node(node: int, *steps: ConfigEntry) -> ConfigResource:
    return ConfigResource(ResourceType.BROKER, str(node), incremental_configs=list(steps) or None)


def step(name: str, value: str | None, operation: AlterConfigOpType = SET) -> ConfigEntry:
    return ConfigEntry(name, value, incremental_operation=operation)


def apply(change: Callable[..., Any], resource: ConfigResource, **options: Any) -> None:
    change([resource], **options)[resource].result()


def replace(client: AdminClient, resource: ConfigResource, **options: Any) -> None:
    """By AlterConfigs, which the client would rather not send any more."""
    with pytest.deprecated_call():
        apply(client.alter_configs, resource, **options)


def test_describes_every_config_of_a_topic(confluent: AdminClient, create: Create, topic: str) -> None:
    """A topic shows all configs with their source: its own, or the default."""
    create(NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"}))
    entries = described(confluent, of_topic(topic))
    assert len(entries) == 36
    policy, retention = entries["cleanup.policy"], entries["retention.bytes"]
    assert (policy.value, ConfigSource(policy.source)) == ("compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert (retention.value, ConfigSource(retention.source)) == ("-1", ConfigSource.DEFAULT_CONFIG)
    assert set(policy.synonyms) == {"cleanup.policy", "log.cleanup.policy"}


def test_describes_the_configs_of_a_node(confluent: AdminClient) -> None:
    """A node shows its own configs, where it listens among them."""
    entries = described(confluent, of_node(2))
    assert "advertised.listeners" in entries
    assert "127.0.0.1" in (entries["listeners"].value or "")
    assert entries["broker.id"].is_read_only
    assert not entries["log.retention.ms"].is_read_only


def test_describing_an_unknown_topic_is_refused(confluent: AdminClient, topic: str) -> None:
    """Configs of a topic that does not exist: UNKNOWN_TOPIC_OR_PARTITION."""
    (future,) = confluent.describe_configs([of_topic(topic)]).values()
    assert refusal(future).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_changes_in_steps(confluent: AdminClient, create: Create, topic: str) -> None:
    """Set, append, subtract and delete act on what is there, and leave the rest alone."""
    create(NewTopic(topic, 1, 1, config={"retention.ms": "1000", "segment.ms": "5000"}))
    first = of_topic(topic, step("retention.ms", "2000"), step("cleanup.policy", "compact", APPEND))
    apply(confluent.incremental_alter_configs, first)
    seen = until(lambda: described(confluent, of_topic(topic)), right=lambda now: now["retention.ms"].value == "2000")
    assert (seen["cleanup.policy"].value, seen["segment.ms"].value) == ("delete,compact", "5000")
    second = of_topic(topic, step("retention.ms", None, DELETE), step("cleanup.policy", "delete", SUBTRACT))
    apply(confluent.incremental_alter_configs, second)
    seen = until(lambda: described(confluent, of_topic(topic)), right=lambda now: now["retention.ms"].value != "2000")
    assert (seen["retention.ms"].value, seen["cleanup.policy"].value) == ("604800000", "compact")


def test_replaces_the_whole_set(confluent: AdminClient, create: Create, topic: str) -> None:
    """AlterConfigs gives what it does not name back to the default."""
    create(NewTopic(topic, 1, 1, config={"retention.ms": "1000", "segment.ms": "5000"}))
    replace(confluent, of_topic(topic, whole={"retention.ms": "3000"}))
    seen = until(lambda: described(confluent, of_topic(topic)), right=lambda now: now["retention.ms"].value == "3000")
    assert ConfigSource(seen["segment.ms"].source) == ConfigSource.DEFAULT_CONFIG


def test_a_change_that_is_only_validated_changes_nothing(confluent: AdminClient, create: Create, topic: str) -> None:
    """Both ways of altering have a dry run."""
    create(NewTopic(topic, 1, 1))
    apply(confluent.incremental_alter_configs, of_topic(topic, step("retention.ms", "1")), validate_only=True)
    replace(confluent, of_topic(topic, whole={"retention.ms": "1"}), validate_only=True)
    assert described(confluent, of_topic(topic))["retention.ms"].value == "604800000"


@pytest.mark.parametrize(
    ("key", "value", "operation"),
    [
        ("no.such.key", "1", SET),
        ("retention.ms", "soon", SET),
        ("retention.ms", "-2", SET),
        ("retention.ms", "1", APPEND),
    ],
)
@pytest.mark.usefixtures("made")
def test_refuses_a_change_with_a_text_that_names_the_key(
    confluent: AdminClient, topic: str, key: str, value: str, operation: AlterConfigOpType
) -> None:
    """Unknown keys, bad values and steps that do not fit are INVALID_CONFIG, the key in the text
    (K4-3).
    """
    wish = of_topic(topic, step(key, value, operation))
    error = refusal(confluent.incremental_alter_configs([wish])[wish])
    assert error.code() == KafkaError.INVALID_CONFIG
    assert key in error.str()


def test_refuses_to_change_an_unknown_topic(confluent: AdminClient, create: Create, topic: str) -> None:
    """Changing an unknown topic is answered UNKNOWN_TOPIC_OR_PARTITION with its name, and the other
    topic is changed (K4-2).
    """
    create(NewTopic(topic, 1, 1))
    unknown, known = of_topic(f"{topic}-no", step("retention.ms", "7")), of_topic(topic, step("retention.ms", "7"))
    futures = confluent.incremental_alter_configs([unknown, known])
    error = refusal(futures[unknown])
    assert (error.code(), f"{topic}-no" in error.str()) == (KafkaError.UNKNOWN_TOPIC_OR_PART, True)
    futures[known].result()
    until(lambda: described(confluent, of_topic(topic))["retention.ms"].value == "7")


def test_changes_a_node_and_every_topic_follows(confluent: AdminClient, topic: str) -> None:
    """A node's dynamic config is the default of the topics as that node shows them, until it is
    deleted again.
    """
    apply(confluent.incremental_alter_configs, of_node(1, step("log.retention.ms", "123456")))
    entry = until(
        lambda: described(confluent, of_node(1))["log.retention.ms"], right=lambda found: found.value == "123456"
    )
    assert ConfigSource(entry.source) == ConfigSource.DYNAMIC_BROKER_CONFIG
    apply(confluent.incremental_alter_configs, of_node(1, step("log.retention.ms", None, DELETE)))
    until(lambda: described(confluent, of_node(1))["log.retention.ms"], right=lambda found: found.value is None)


def test_refuses_to_change_what_is_fixed_at_start(confluent: AdminClient) -> None:
    """A config of a node that is read at start only is INVALID_REQUEST, with its key."""
    wish = of_node(1, step("broker.id", "7"))
    error = refusal(confluent.incremental_alter_configs([wish])[wish])
    assert error.code() == KafkaError.INVALID_REQUEST
    assert "broker.id" in error.str()

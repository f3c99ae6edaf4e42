"""kafka-python reads and changes configs: it asks any node, looks before it changes, and trusts no
source that is unknown.
"""

from collections.abc import Callable
from typing import Any

import pytest
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType, KafkaAdminClient

from tests.support.waiting import until


def of_topic(topic: str, configs: Any = None) -> ConfigResource:
    return ConfigResource(ConfigResourceType.TOPIC, topic, configs)


def of_node(node: int, configs: Any = None) -> ConfigResource:
    return ConfigResource(ConfigResourceType.BROKER, str(node), configs)


def topic_configs(client: KafkaAdminClient, topic: str, which: str = "all", keys: Any = None) -> dict[str, Any]:
    answer = client.describe_configs([of_topic(topic, keys)], config_filter=which)
    found = answer["topic"][topic]
    return {name: entry["value"] if isinstance(entry, dict) else entry for name, entry in found.items()}


def test_describes_all_and_only_the_modified(
    python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str
) -> None:
    """Each config has a type and a source that the client knows (trap 13)."""
    python_admin.create_topics({topic: {"configs": {"retention.ms": "1000"}}})
    everywhere(topic)
    until(lambda: len(topic_configs(python_admin, topic)), right=lambda count: count == 36)
    assert topic_configs(python_admin, topic, "modified") == {"retention.ms": "1000"}


def test_obeys_the_filter_of_keys(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """Keys that are asked for are answered, and no others."""
    python_admin.create_topics([topic])
    everywhere(topic)
    wanted = {"retention.bytes": "-1", "segment.ms": "604800000"}
    until(lambda: topic_configs(python_admin, topic, keys=list(wanted)), right=lambda seen: seen == wanted)


def test_changes_in_steps(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """Set, append and delete by IncrementalAlterConfigs."""
    python_admin.create_topics({topic: {"configs": {"segment.ms": "5000"}}})
    everywhere(topic)
    steps = {
        "retention.ms": "2000",
        "cleanup.policy": (AlterConfigOp.APPEND, "compact"),
        "segment.ms": (AlterConfigOp.DELETE, None),
    }
    python_admin.alter_configs([of_topic(topic, steps)])
    wanted = {"retention.ms": "2000", "cleanup.policy": "delete,compact"}
    until(lambda: topic_configs(python_admin, topic, "modified"), right=lambda seen: seen == wanted)


def test_replaces_and_resets(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """The older AlterConfigs replaces configs, and a reset brings all defaults back."""
    python_admin.create_topics([topic])
    everywhere(topic)
    python_admin.alter_configs([of_topic(topic, {"retention.ms": "77"})], incremental=False)
    until(lambda: topic_configs(python_admin, topic, "modified"), right=lambda seen: seen == {"retention.ms": "77"})
    python_admin.reset_configs([of_topic(topic, {})])
    until(lambda: topic_configs(python_admin, topic, "modified"), right=lambda seen: seen == {})


def test_validates_only(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """A dry run changes nothing."""
    python_admin.create_topics([topic])
    everywhere(topic)
    python_admin.alter_configs([of_topic(topic, {"retention.ms": "1"})], validate_only=True)
    assert topic_configs(python_admin, topic, "modified") == {}


def test_refuses_bad_values(python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str) -> None:
    """A bad value is answered INVALID_CONFIG for that resource."""
    python_admin.create_topics([topic])
    everywhere(topic)
    answer = python_admin.alter_configs([of_topic(topic, {"retention.ms": "soon"})])
    assert "InvalidConfiguration" in str(answer["topic"][topic])


def test_refuses_unknown_keys_and_topics(
    python_admin: KafkaAdminClient, everywhere: Callable[..., None], topic: str
) -> None:
    """The client looks first: a key that DescribeConfigs does not show is refused at its own side,
    as is a topic without configs.
    """
    python_admin.create_topics([topic])
    everywhere(topic)
    with pytest.raises(ValueError, match=r"no\.such\.key"):
        python_admin.alter_configs([of_topic(topic, {"no.such.key": "1"})])
    assert topic_configs(python_admin, f"{topic}-no") == {}


def test_changes_a_node(python_admin: KafkaAdminClient) -> None:
    """A node's own config is set at that node, seen there as dynamic, and deleted again."""
    python_admin.alter_configs([of_node(3, {"log.retention.ms": "654321"})])

    def seen() -> str:
        return str(python_admin.describe_configs([of_node(3)])["broker"]["3"].get("log.retention.ms"))

    until(seen, right=lambda text: "654321" in text)
    python_admin.reset_configs([of_node(3, ["log.retention.ms"])])
    until(seen, right=lambda text: "654321" not in text)

"""DescribeConfigs entries, against what a real Kafka 3.9.1 answered with the same configuration.

The files in tests/vectors/describe_configs hold names, values, sources and types that Kafka gave;
the sentences are ours.
"""

import json
import weakref
from pathlib import Path
from typing import Any

import pytest

from minicontroller.admin.configs.description import (
    DescribedConfig,
    broker_entries,
    default_broker_entries,
    topic_entries,
)
from minicontroller.policies.configs.tables import read_table
from minicontroller.policies.configs.values import InvalidValueError, KeyType
from minicontroller.process.settings.dynamic_keys import is_fixed_at_start
from minicontroller.process.settings.keys import OWN_TABLE
from minicontroller.process.settings.loading import config_from_mapping, load_config
from minicontroller.process.settings.node_config import ConfigSource, NodeConfig
from minicontroller.process.settings.topic_configs import TOPIC_KEYS

VECTORS = Path(__file__).parents[1] / "vectors" / "describe_configs"
OWN_KEYS = {columns[0] for columns in read_table(OWN_TABLE) if columns[4] != "plugin"}

CONTRADICTIONS = {
    "log.retention.hours": ("168", "48"),
    "log.roll.jitter.hours": ("0", "2"),
    "log.flush.scheduler.interval.ms": ("9223372036854775807", "1000"),
}
"""Once the key that goes before one of these is changed while Kafka runs, it shows the default as
their value, from the file in which another one stands. Here value and source agree: (Kafka's value,
the one in the file).
"""

Vector = dict[str, Any]


def vector(name: str) -> Vector:
    loaded: Vector = json.loads((VECTORS / f"{name}.json").read_text())
    return loaded


def node_of(recorded: Vector) -> NodeConfig:
    node = load_config("\n".join(recorded["properties"]), "server.properties")
    return node.with_dynamic(recorded["dynamic_broker"], recorded["dynamic_default"])


def as_recorded(entry: DescribedConfig) -> dict[str, Any]:
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source.name,
        "read_only": entry.read_only,
        "is_sensitive": entry.is_sensitive,
        "type": entry.type.name,
        "synonyms": [[synonym.name, synonym.value, synonym.source.name] for synonym in entry.synonyms],
    }


def same(recorded: Vector, entries: tuple[DescribedConfig, ...]) -> None:
    ours = {entry.name: as_recorded(entry) for entry in entries if entry.name not in OWN_KEYS}
    theirs = {entry["name"]: entry for entry in recorded["entries"]}
    for name, (shown, written) in CONTRADICTIONS.items():
        if name in theirs and theirs[name]["value"] == shown:
            theirs[name]["value"] = written
    assert ours.keys() == theirs.keys()
    for name in theirs:  # a running Kafka takes them, and a running node shows what is in force
        if is_fixed_at_start(name) and theirs[name]["source"] == "DYNAMIC_BROKER_CONFIG":
            theirs[name] = ours[name]
    assert ours == theirs


@pytest.mark.parametrize("when", ["static", "dynamic"])
def test_every_config_of_a_node_is_described_as_kafka_describes_it(when: str) -> None:
    """Names, values, sources, types, read-only, sensitive and synonyms of every broker key are
    Kafka's.
    """
    recorded = vector(f"broker_{when}")
    assert len(recorded["entries"]) > 310
    same(recorded, broker_entries(node_of(recorded)))


@pytest.mark.parametrize("when", ["static", "dynamic"])
def test_the_cluster_default_has_what_was_set_for_all_nodes_and_nothing_else(when: str) -> None:
    """The resource with the empty name lists the dynamic defaults alone, each with itself as its
    only synonym.
    """
    recorded = vector(f"cluster_default_{when}")
    same(recorded, default_broker_entries(node_of(recorded)))


@pytest.mark.parametrize("when", ["static", "dynamic"])
@pytest.mark.parametrize("which", ["topic", "topic_with_overrides"])
def test_every_config_of_a_topic_is_described_as_kafka_describes_it(which: str, when: str) -> None:
    """A topic's configs come from its overrides, then the node's levels, units converted, with
    Kafka's synonyms.
    """
    recorded = vector(f"{which}_{when}")
    same(recorded, topic_entries(recorded["overrides"], node_of(recorded)))


def test_what_kafka_does_not_know_is_described_too() -> None:
    """Keys of our own stand among the node's configs, typed and documented like the others."""
    entries = {entry.name: entry for entry in broker_entries(config_from_mapping({"metadata.completion": "cluster"}))}
    completion = entries["metadata.completion"]
    assert (completion.value, completion.source) == ("cluster", ConfigSource.STATIC_BROKER_CONFIG)
    assert (completion.type, completion.read_only) == (KeyType.STRING, True)
    assert entries["policy.timeout.ms"].value == "5000"
    assert entries.keys() >= OWN_KEYS


def test_every_config_is_documented() -> None:
    """No entry of a topic or a node goes without a sentence."""
    node = config_from_mapping({"broker.id": "1"})
    assert all(entry.documentation.endswith(".") for entry in (*topic_entries({}, node), *broker_entries(node)))


def test_secrets_are_never_shown() -> None:
    """A password stands neither in a value nor in a synonym nor in the configuration's repr."""
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="hunter2";'
    node = config_from_mapping(
        {"listener.name.ext.plain.sasl.jaas.config": jaas, "sasl.jaas.config": jaas, "ssl.key.password": "hunter2"}
    )
    assert "hunter2" not in repr(broker_entries(node))
    assert "hunter2" not in repr(node)


def test_topics_without_overrides_share_their_entries() -> None:
    """CreateTopics answers thousands of topics: what no override touches is made once per
    configuration.
    """
    node = config_from_mapping({})
    plain = topic_entries({}, node)
    assert topic_entries({}, node) is plain
    assert [entry.name for entry in plain] == sorted(TOPIC_KEYS)
    changed = topic_entries({"retention.ms": "5"}, node)
    assert [one is other for one, other in zip(plain, changed, strict=True)].count(False) == 1


def test_an_override_that_no_table_knows_is_shown_without_its_value() -> None:
    """What another program wrote into a topic's znode may be a secret, and does not break the
    description of the rest.
    """
    node = config_from_mapping({})
    entries = topic_entries({"no.such.config": "x"}, node)
    (unknown,) = (entry for entry in entries if entry.name == "no.such.config")
    assert (unknown.value, unknown.is_sensitive, unknown.type, unknown.source) == (
        None,
        True,
        KeyType.UNKNOWN,
        ConfigSource.TOPIC_CONFIG,
    )
    assert tuple(entry for entry in entries if entry is not unknown) == topic_entries({}, node)


def test_a_value_that_others_wrote_and_that_is_none_is_not_described() -> None:
    """A tool that writes to ZooKeeper may write what the key's type does not take: it is not in
    force, and so it is not shown.
    """
    with pytest.raises(InvalidValueError, match="Invalid value 870 for configuration preallocate"):
        topic_entries({"preallocate": "870"}, config_from_mapping({}))


def test_a_description_is_freed_with_its_configuration() -> None:
    """A configuration that is no longer in force is not held by what was described of it."""
    node = config_from_mapping({"log.retention.ms": "1000"}).with_dynamic({}, {"log.retention.ms": "2000"})
    assert broker_entries(node) is broker_entries(node)
    assert topic_entries({}, node) is topic_entries({}, node)
    reference = weakref.ref(node)
    del node
    assert reference() is None

"""The declared keys: complete, well-formed, and found under every name they may have."""

import json
from pathlib import Path

import pytest

from minicontroller.policies.configs.values import KeyType
from minicontroller.process.settings.environment import (
    doubts_about,
    faults_of_variables,
    key_of_variable,
    settings_of,
    variable_of_key,
)
from minicontroller.process.settings.foreign_keys import NEWER, REMOVED, explained
from minicontroller.process.settings.keys import KEYS, UpdateMode, base_name, key_named, nearest_key, synonyms_of
from minicontroller.process.settings.topic_configs import TOPIC_KEYS
from tests.support.grouped import grouped

RECORDED = Path(__file__).parents[1] / "vectors" / "describe_configs" / "broker_static.json"


def test_every_key_of_a_kafka_broker_is_declared() -> None:
    """What Kafka 3.9.1 describes of a broker can stand in a file, with Kafka's type and way to
    change it.
    """
    for entry in json.loads(RECORDED.read_text())["entries"]:
        key = key_named(entry["name"])
        assert key is not None, entry["name"]
        if entry["type"] != "UNKNOWN":
            assert key.type.name == entry["type"], key.name
            assert (key.update_mode is UpdateMode.READ_ONLY) == entry["read_only"], key.name


@grouped("name", {"all keys": [(name,) for name in sorted(KEYS)]})
def test_every_default_is_valid(name: str) -> None:
    """A default is a value that its key would take, or no value, or the empty one."""
    default = KEYS[name].default
    if default:
        assert KEYS[name].parse(default) == KEYS[name].default_value


def test_every_key_has_a_sentence_of_its_own_table() -> None:
    """Each says in one sentence what it is for, and no topic key is forgotten."""
    assert all(key.documentation.endswith(".") for key in KEYS.values())
    assert all(topic_key.key.documentation.endswith(".") for topic_key in TOPIC_KEYS.values())
    assert len(TOPIC_KEYS) == 36
    assert all(synonym.name in KEYS for topic_key in TOPIC_KEYS.values() for synonym in topic_key.synonyms)


@pytest.mark.parametrize(
    ("name", "base", "kind"),
    [
        ("listener.name.internal.sasl.enabled.mechanisms", "sasl.enabled.mechanisms", KeyType.LIST),
        ("listener.name.internal.plain.sasl.jaas.config", "sasl.jaas.config", KeyType.PASSWORD),
        ("listener.name.internal.sasl.jaas.config", "sasl.jaas.config", KeyType.PASSWORD),
        ("listener.name.internal.scram-sha-256.connections.max.reauth.ms", "connections.max.reauth.ms", KeyType.LONG),
        ("listener.name.x.max.connections", "max.connections", KeyType.INT),
        ("num.partitions", "num.partitions", KeyType.INT),
    ],
)
def test_a_key_is_found_behind_the_prefix_of_a_listener(name: str, base: str, kind: KeyType) -> None:
    """listener.name.<listener>. and a mechanism after it leave the key what it is."""
    key = key_named(name)
    assert key is not None
    assert (base_name(name), key.type, key.name) == (base, kind, name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "brokr.id",
        "listener.name.x",
        "listener.name.x.",
        "listener.name.x.nope",
        "listener.dialect.",
        "listener.dialect.a.b",
    ],
)
def test_what_means_nothing_is_no_key(name: str) -> None:
    """A prefix alone, or before a word that is no key, does not make one."""
    assert key_named(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "confluent.license.topic",
        "rsm.config.bucket",
        "topic.management.policy.config.max.partitions",
        "authorizer.zookeeper.url",
    ],
)
def test_what_a_plugin_understands_is_let_through(name: str) -> None:
    """A plugin's values are not shown, since nobody knows whether they are secrets."""
    key = key_named(name)
    assert key is not None
    assert key.is_sensitive


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("brokr.id", "broker.id"),
        ("listner", "listeners"),
        ("zookeeper.conect", "zookeeper.connect"),
        ("Num.Partitions", "num.partitions"),
        ("metadata.complete", "metadata.completion"),
        ("listener.name.internal.sasl.enabled.mechanism", "listener.name.internal.sasl.enabled.mechanisms"),
        ("xyzzy", None),
    ],
)
def test_the_nearest_key_is_proposed(name: str, meant: str | None) -> None:
    """A slip of the pen finds what was meant, a word from elsewhere finds nothing."""
    assert nearest_key(name) == meant


def test_synonyms_stand_in_their_order() -> None:
    """Milliseconds go before minutes, minutes before hours; a listener's key before
    the plain one.
    """
    assert synonyms_of("log.retention.hours") == ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    assert synonyms_of("log.flush.scheduler.interval.ms") == ("log.flush.scheduler.interval.ms",)
    assert synonyms_of("listener.name.x.max.connections") == ("listener.name.x.max.connections", "max.connections")


@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("KAFKA_BROKER_ID", "broker.id"),
        ("KAFKA_LISTENER_NAME_INTERNAL_PLAIN_SASL_JAAS_CONFIG", "listener.name.internal.plain.sasl.jaas.config"),
        ("KAFKA_LISTENER_NAME_SASL__PLAIN_MAX_CONNECTIONS", "listener.name.sasl_plain.max.connections"),
        ("KAFKA_LISTENER_NAME_A___B_MAX_CONNECTIONS", "listener.name.a-b.max.connections"),
        ("KAFKA_ZOOKEEPER_CLIENTCNXNSOCKET", "zookeeper.clientCnxnSocket"),
    ],
)
def test_environment_variables_are_read_as_kafkas_images_read_them(variable: str, key: str) -> None:
    """One underscore is a dot, two an underscore, three a dash."""
    assert key_of_variable(variable) == key


def test_variables_that_mean_no_key_are_nobodys_mistake() -> None:
    """What Java and Kubernetes set is ignored; whatever else has the prefix and no key is named."""
    environ = {
        "KAFKA_HOME": "/opt/kafka",
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
        "KAFKA_SERVICE_HOST": "10.0.0.1",
        "KAFKA_SERVICE_PORT_CLIENTS": "9092",
        "KAFKA_ZOOKEEPER_PORT_2181_TCP": "tcp://10.0.0.2:2181",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_OPTS": "-Xss1m",
        "KAFKA_LOG4J_LOGGERS": "kafka=INFO",
        "BROKER_ID": "7",
        "KAFKA_BROKER_ID": "3",
        "KAFKA_TOPIC": "x",
        "KAFKA_BOOTSTRAP_SERVERS": "y",
    }
    assert list(settings_of(environ)) == [("KAFKA_BROKER_ID", "broker.id", "3")]
    assert list(faults_of_variables(environ)) == []
    assert list(doubts_about(environ)) == [
        "Environment variables that name no key are ignored: KAFKA_BOOTSTRAP_SERVERS, KAFKA_TOPIC."
    ]


@grouped(
    "variable, value, sentence",
    {
        "of other images": [
            ("KAFKA_CFG_LISTENERS", "SASL_SSL://:9093", "set KAFKA_LISTENERS, which is listeners."),
            ("KAFKA_CFG_SUPER_USERS", "User:admin", "set KAFKA_SUPER_USERS, which is super.users."),
            ("KAFKA_CFG_MAX__X", "1", "it means max_x, and there is no such key."),
            ("KAFKA_CFG_BROKR_ID", "1", "it means brokr.id, and there is no such key; did you mean broker.id?"),
            ("KAFKA_CFG_HOST_NAME", "h", "it means host.name, and there is no such key, which Kafka 3.0 removed: set listeners."),
            ("KAFKA_CFG_", "h", "it means nothing, and there is no such key."),
            ("KAFKA_ADVERTISED_HOST_NAME", "h", "set KAFKA_ADVERTISED_LISTENERS, such as PLAINTEXT://kafka:9092."),
            ("KAFKA_PORT", "9092", "set KAFKA_LISTENERS."),
            ("KAFKA_CLIENT_PASSWORDS", "planted-secret", "set sasl.jaas.config for the mechanism of a listener"),
            ("KAFKA_ENABLE_KRAFT", "yes", "nodes keep their metadata in ZooKeeper; set KAFKA_ZOOKEEPER_CONNECT."),
            ("KAFKA_SSL_KEYSTORE_FILENAME", "k", "the image keeps no secrets in files of its own; set KAFKA_SSL_KEYSTORE_LOCATION."),
        ],
        "of other releases": [
            ("KAFKA_GROUP_SHARE_ASSIGNORS", "x", "it means group.share.assignors, which Kafka has since 4.0 and nodes"),
            ("KAFKA_QUOTA_PRODUCER_DEFAULT", "1", "it means quota.producer.default, which Kafka 3.0 removed"),
        ],
        "almost of a key": [
            ("KAFKA_LISTENER", "x", "it means listener, which is no key; did you mean KAFKA_LISTENERS, listeners?"),
            ("KAFKA_SUPER_USER", "x", "did you mean KAFKA_SUPER_USERS, super.users?"),
            ("KAFKA_AUDIT_DRI", "x", "did you mean KAFKA_AUDIT_DIR, audit.dir?"),
        ],
        "for Kafka's Java": [
            ("KAFKA_OPTS", "-Dzookeeper.client.secure=true", "set zookeeper.ssl.client.enable, or KAFKA_ZOOKEEPER_SSL_CLIENT_ENABLE."),
            ("KAFKA_OPTS", "-Xmx1g -Dzookeeper.ssl.keyStore.location=k", "set zookeeper.ssl.keystore.location"),
        ],
    },
)  # fmt: skip
def test_what_means_to_set_something_and_does_not_is_refused(variable: str, value: str, sentence: str) -> None:
    """The sentence names the variable and what sets the same here, and never the value."""
    [fault] = faults_of_variables({variable: value, "KAFKA_BROKER_ID": "1"})
    assert fault.startswith(f"environment variable {variable}") and sentence in fault
    assert list(doubts_about({variable: value})) == [] and "planted" not in fault


@grouped("key", {"all keys": [(name,) for name in sorted(KEYS)]})
def test_each_key_has_a_variable(key: str) -> None:
    """The variable that a sentence recommends sets the key."""
    assert key_of_variable(variable_of_key(key)) == key


def test_a_key_of_another_release_is_no_slip_of_the_pen() -> None:
    """Keys of Kafka 4.x and of 2.x are called so, with a listener's prefix, too."""
    assert not NEWER & KEYS.keys() and not REMOVED.keys() & KEYS.keys()
    assert "since 4.0" in explained("listener.name.x.sasl.oauthbearer.scope")
    assert explained("advertised.host.name") == ", which Kafka 3.0 removed: set advertised.listeners."
    assert explained("brokr.id") == "; did you mean broker.id?"
    assert explained("xyzzy") == "."
    assert key_named("alter.config.policy.kraft.compatibility.enable") is not None

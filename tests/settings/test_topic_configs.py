"""A topic's configs are valid or not as a real Kafka 3.9.1 answered to the same requests."""

import pytest

from minicontroller.cluster.errors import Refusal
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.process.settings.topic_configs import topic_defaults, validate_topic_configs
from minicontroller.protocol.error_codes import ErrorCode

NODE = config_from_mapping({})
TIERED = config_from_mapping({"remote.log.storage.system.enable": "true"})


def refusal(configs: dict[str, str | None], node: NodeConfig = NODE, altered_topic: str | None = None) -> str:
    with pytest.raises(Refusal) as caught:
        validate_topic_configs(configs, node, altered_topic=altered_topic)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return caught.value.message or ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-1"),
        ("retention.ms", " +5 "),
        ("retention.bytes", "-9223372036854775808"),
        ("preallocate", " TRUE "),
        ("cleanup.policy", ""),
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", " delete , compact"),
        ("compression.type", " zstd "),
        ("compression.gzip.level", "-1"),
        ("compression.zstd.level", "-131072"),
        ("min.cleanable.dirty.ratio", "0x1p-1"),
        ("min.cleanable.dirty.ratio", "-0.0"),
        ("min.insync.replicas", "2147483647"),
        ("follower.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,"),
        ("message.format.version", "0.10.2.1"),
        ("message.timestamp.type", "LogAppendTime"),
        ("local.retention.ms", "99999999999"),
    ],
)
def test_what_kafka_takes_is_taken(name: str, value: str) -> None:
    """Each of these configs, with which Kafka 3.9.1 created a topic, is taken."""
    validate_topic_configs({name: value}, NODE)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("retention.ms", "abc", "Not a number of type LONG"),
        ("retention.ms", "", "Not a number of type LONG"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("retention.ms", "99999999999999999999", "Not a number of type LONG"),
        ("segment.bytes", "3000000000", "Not a number of type INT"),
        ("segment.bytes", "1", "Value must be at least 14"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("cleanup.policy", "foo", "String must be one of: compact, delete"),
        ("compression.type", "ZSTD", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("min.cleanable.dirty.ratio", "1.1", "Value must be no more than 1"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("message.timestamp.type", "createtime", "String must be one of: CreateTime, LogAppendTime"),
        ("message.format.version", "foo", "Version foo is not a valid version"),
        ("min.cleanable.dirty.ratio", "NaN", "Not a number of type DOUBLE"),
    ],
)
def test_a_value_that_its_key_does_not_take_is_refused(name: str, value: str, reason: str) -> None:
    """K4-C8a: INVALID_CONFIG in Kafka's words (NaN, which Kafka takes, is refused on purpose)."""
    assert refusal({name: value}) == f"Invalid value {value} for configuration {name}: {reason}"


def test_a_refusal_shows_what_was_understood() -> None:
    """A double is shown as Java writes it, a list in brackets, of a list of words only the wrong
    one.
    """
    assert refusal({"min.cleanable.dirty.ratio": "5."}).startswith("Invalid value 5.0 for")
    assert refusal({"cleanup.policy": "delete, foo"}).startswith("Invalid value foo for")
    assert refusal({"follower.replication.throttled.replicas": "0:1,*"}).startswith("Invalid value [0:1, *] for")


def test_unknown_names_and_null_values() -> None:
    """Null values are refused before unknown names, those before bad values."""
    assert refusal({"foo": "bar", "retention.ms": "abc"}) == "Unknown topic config name: foo"
    assert refusal({"": "5"}) == "Unknown topic config name: "
    assert refusal({"retention.ms": None, "foo": "x", "segment.ms": None}) == (
        "Null value not supported for topic configs: retention.ms,segment.ms"
    )


def test_of_a_topic_that_exists_the_resource_is_named() -> None:
    """Alter*Configs says which topic a bad value is of; other refusals stay as they are."""
    bad = "Invalid value abc for configuration retention.ms: Not a number of type LONG"
    assert refusal({"retention.ms": "abc"}, altered_topic="over") == (
        f"Invalid config value for resource ConfigResource(type=TOPIC, name='over'): {bad}"
    )
    assert refusal({"foo": "abc"}, altered_topic="over") == "Unknown topic config name: foo"


def test_lags_of_compaction_must_fit() -> None:
    """The smallest lag may not be larger than the largest, be it an override or a default of the
    node.
    """
    conflict = "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    assert refusal({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}) == conflict
    assert (
        refusal({"min.compaction.lag.ms": "10"}, config_from_mapping({"log.cleaner.max.compaction.lag.ms": "5"}))
        == conflict
    )
    assert (
        refusal(
            {},
            config_from_mapping({"log.cleaner.max.compaction.lag.ms": "5", "log.cleaner.min.compaction.lag.ms": "10"}),
        )
        == conflict
    )
    validate_topic_configs({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}, NODE)


@pytest.mark.parametrize("name", ["remote.log.copy.disable", "remote.log.delete.on.disable"])
def test_what_only_kraft_can_do_is_refused(name: str) -> None:
    """Two configs of tiered storage may not be true where the metadata lives in ZooKeeper."""
    assert refusal({name: "true"}) == (
        "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` under Zookeeper's mode."
    )
    validate_topic_configs({name: "false"}, NODE)


def test_tiered_storage_needs_a_node_that_has_it() -> None:
    """Whether the node has tiered storage is judged before anything else about it."""
    text = "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage."
    assert refusal({"remote.storage.enable": "true", "cleanup.policy": "compact"}) == text
    assert refusal({"remote.storage.enable": "true"}, altered_topic="t").endswith(f"name='t'): {text}")


@pytest.mark.parametrize(
    ("configs", "fault"),
    [
        ({}, None),
        ({"cleanup.policy": "compact"}, "Remote log storage is unsupported for the compacted topics"),
        ({"cleanup.policy": "compact,delete"}, "Remote log storage is unsupported for the compacted topics"),
        (
            {"retention.ms": "5", "local.retention.ms": "6"},
            "Invalid value 6 for configuration local.retention.ms: Value must not be more than retention.ms property value: 5",
        ),
        (
            {"retention.ms": "5", "local.retention.ms": "-1"},
            "Invalid value -1 for configuration local.retention.ms: Value must not be -1 as retention.ms value is set as 5.",
        ),
        ({"retention.ms": "-1", "local.retention.ms": "-1"}, None),
        ({"retention.ms": "-1", "local.retention.ms": "7"}, None),
        (
            {"retention.bytes": "5", "local.retention.bytes": "6", "retention.ms": "5", "local.retention.ms": "6"},
            (
                "Invalid value 6 for configuration local.retention.bytes: "
                "Value must not be more than retention.bytes property value: 5"
            ),
        ),
        ({"retention.bytes": "5", "local.retention.bytes": "-2"}, None),
        ({"retention.bytes": "-5", "local.retention.bytes": "-1"}, None),
        ({"retention.bytes": "0", "local.retention.bytes": "0"}, None),
    ],
)
def test_what_is_kept_locally_is_part_of_what_is_kept(configs: dict[str, str | None], fault: str | None) -> None:
    """With tiered storage: no compaction, and no more locally than altogether; bytes are looked at
    before time.
    """
    configs = {"remote.storage.enable": "true", **configs}
    if fault is None:
        validate_topic_configs(configs, TIERED)
    else:
        assert refusal(configs, TIERED) == fault


@pytest.mark.parametrize(
    ("settings", "name", "value"),
    [
        ({}, "retention.ms", 604800000),
        ({"log.retention.hours": "2"}, "retention.ms", 7200000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, "retention.ms", 180000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, "retention.ms", 4),
        ({"log.retention.hours": "-1"}, "retention.ms", -1),
        ({"log.retention.ms": "-5"}, "retention.ms", -1),
        ({"log.roll.hours": "1"}, "segment.ms", 3600000),
        ({"log.roll.jitter.hours": "1", "log.roll.jitter.ms": "7"}, "segment.jitter.ms", 7),
        ({"log.flush.scheduler.interval.ms": "9"}, "flush.ms", 9),
        ({"message.max.bytes": "9"}, "max.message.bytes", 9),
        ({"log.cleanup.policy": "compact, delete"}, "cleanup.policy", ("compact", "delete")),
        ({"log.message.format.version": "2.8"}, "message.format.version", "3.0-IV1"),
        (
            {"log.message.format.version": "2.8", "inter.broker.protocol.version": "3.4"},
            "message.format.version",
            "3.0-IV1",
        ),
        ({}, "remote.storage.enable", False),
    ],
)
def test_a_topic_takes_its_defaults_from_the_node(settings: dict[str, str], name: str, value: object) -> None:
    """The first synonym that is set, in the topic's unit; any negative retention is -1."""
    node = config_from_mapping(settings)
    assert topic_defaults(node)[name] == value


def test_defaults_follow_what_is_set_while_the_node_runs() -> None:
    """A dynamic default of all nodes is a default of their topics."""
    node = NODE.with_dynamic({}, {"log.retention.ms": "1000"})
    assert topic_defaults(node)["retention.ms"] == 1000
    assert topic_defaults(NODE)["retention.ms"] == 604800000

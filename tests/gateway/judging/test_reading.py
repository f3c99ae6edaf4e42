"""The gateway reads a cluster's answers about itself."""

from collections.abc import Iterator

import pytest

from minicontroller.gateway.judging.reading import defaults_of, told_keys
from minicontroller.policies.configs.canonical import LEARNED, MOST, canonical, learn_keys
from minicontroller.policies.configs.values import KeyType
from minicontroller.process.observe.secrets import redact_configs
from minicontroller.process.settings.node_config import ConfigSource, NodeConfig
from minicontroller.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def test_a_default_of_all_brokers_counts() -> None:
    """A new Kafka 4.1 has such a default from the start."""
    synonym = DescribeConfigsSynonym(
        name="min.insync.replicas", value="2", source=ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    )
    row = DescribeConfigsResourceResult(name="min.insync.replicas", value="2", synonyms=[synonym])
    defaults = defaults_of(NodeConfig({}), DescribeConfigsResult(configs=[row]))
    assert defaults.differing == {"min.insync.replicas": "2"}
    assert defaults.altered(of_all={"min.insync.replicas": "3"}) == {"min.insync.replicas": "3"}


def test_defaults_of_newer_keys_count() -> None:
    """What a topic gets of a config that Kafka 3.9 does not have is what the brokers have."""
    row = DescribeConfigsResourceResult(name="log.remote.copy.lag.ms", value="7", config_source=5)
    defaults = defaults_of(NodeConfig({}), DescribeConfigsResult(configs=[row]))
    assert defaults.differing == {"remote.copy.lag.ms": "7"}
    assert defaults.altered(of_all={"min.insync.replicas": "3"}) == {
        "remote.copy.lag.ms": "7",
        "min.insync.replicas": "3",
    }


@pytest.fixture(name="_nothing_is_learned")
def nothing_is_learned() -> Iterator[None]:
    before = dict(LEARNED)
    LEARNED.clear()
    yield
    LEARNED.clear()
    LEARNED.update(before)


@pytest.mark.usefixtures("_nothing_is_learned")
def test_keys_are_learned_from_what_is_described() -> None:
    """A key that no table has is shown and read by its type once the cluster says that it is no
    secret; the names of loggers are no keys.
    """
    rows = [
        DescribeConfigsResourceResult(name="vendor.tier.enable", config_type=KeyType.BOOLEAN),
        DescribeConfigsResourceResult(name="vendor.tier.key", config_type=KeyType.PASSWORD, is_sensitive=True),
        DescribeConfigsResourceResult(name="vendor.other", config_type=99),
    ]
    told = [
        DescribeConfigsResult(resource_type=2, configs=[]),
        DescribeConfigsResult(resource_type=2, configs=rows),
        DescribeConfigsResult(resource_type=8, configs=[DescribeConfigsResourceResult(name="kafka.log")]),
    ]
    configs = {"vendor.tier.enable": " TRUE", "vendor.tier.key": "s3cret", "vendor.other": " x", "kafka.log": "INFO"}
    assert set(redact_configs(configs).values()) == {"[hidden]"}
    assert canonical("vendor.tier.enable", " TRUE") == " TRUE"
    learn_keys(told_keys(told))
    assert redact_configs(configs) == {**configs, "vendor.tier.key": "[hidden]", "kafka.log": "[hidden]"}
    assert canonical("vendor.tier.enable", " TRUE") == "true"
    learn_keys({f"key.{number}": KeyType.STRING for number in range(2 * MOST)} | {"a.password": KeyType.PASSWORD})
    assert len(LEARNED) == MOST and "a.password" not in LEARNED


@pytest.mark.parametrize(
    ("key", "text", "shown"),
    [
        ("max.decompressed.message.bytes", "+05", "5"),
        ("errors.deadletterqueue.topic.name", " dlq.x", "dlq.x"),
        ("cordoned.log.dirs", "/a, /b", "/a,/b"),
        ("sasl.oauthbearer.assertion.private.key.passphrase", "s3cret", "[hidden]"),
    ],
)
def test_keys_of_newer_kafkas_are_known(key: str, text: str, shown: str) -> None:
    """Rules judge what Kafka 4 has besides, and passwords stay hidden."""
    assert redact_configs({key: canonical(key, text)}) == {key: shown}

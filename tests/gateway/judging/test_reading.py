"""The gateway reads a cluster's answers about itself."""

from minicontroller.controller.config.node_config import ConfigSource, NodeConfig
from minicontroller.gateway.judging.reading import defaults_of
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

"""DescribeConfigs: topics, nodes, the cluster's default, the keys asked for, synonyms and
documentation.
"""

from collections.abc import Sequence
from typing import Any

from tests.conformance.case import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    Case,
    creation,
    each_version,
    new_topic,
)

CONFIGS = {"retention.ms": "1000", "cleanup.policy": "compact,delete", "preallocate": "true"}
SETUP = [new_topic("dc-set", placed={0: [1]}, configs=CONFIGS), new_topic("dc-plain", placed={0: [1]})]

NODE_KEYS = [
    "auto.create.topics.enable", "broker.id", "background.threads", "compression.type", "default.replication.factor",
    "delete.topic.enable", "log.cleanup.policy", "log.flush.interval.ms", "log.retention.bytes", "log.retention.hours",
    "log.retention.minutes", "log.retention.ms", "log.segment.bytes", "max.connections", "max.connections.per.ip",
    "message.max.bytes", "min.insync.replicas", "num.partitions", "offsets.topic.num.partitions",
    "unclean.leader.election.enable",
]  # fmt: skip


def resource(kind: int, name: str, keys: Sequence[str] | None = None) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "configuration_keys": None if keys is None else list(keys)}


def asked(*resources: dict[str, Any], synonyms: bool = False, documentation: bool = False) -> dict[str, Any]:
    return {"resources": list(resources), "include_synonyms": synonyms, "include_documentation": documentation}


def newest(name: str, *resources: dict[str, Any], synonyms: bool = False, node_1: bool = False) -> Case:
    return Case(name, "DescribeConfigs", 4, asked(*resources, synonyms=synonyms), node_1=node_1)


CASES = [
    Case("setup describe configs", "CreateTopics", 7, creation(*SETUP)),
    *each_version("topic", "DescribeConfigs", asked(resource(TOPIC, "dc-set"))),
    *each_version("topic with synonyms", "DescribeConfigs", asked(resource(TOPIC, "dc-set"), synonyms=True), since=1),
    *each_version(
        "keys", "DescribeConfigs", asked(resource(TOPIC, "dc-set", ["retention.ms", "no.such", "segment.ms"]), synonyms=True)
    ),
    *each_version("no keys", "DescribeConfigs", asked(resource(TOPIC, "dc-plain", []))),
    *each_version("only unknown keys", "DescribeConfigs", asked(resource(TOPIC, "dc-plain", ["no.such"]))),
    *each_version(
        "documentation", "DescribeConfigs",
        asked(resource(TOPIC, "dc-set", ["retention.ms", "segment.ms"]), documentation=True), since=3,
    ),
    *each_version("unknown topic", "DescribeConfigs", asked(resource(TOPIC, "dc-nobody"))),
    *each_version("illegal name", "DescribeConfigs", asked(resource(TOPIC, "bad name!"))),
    *each_version("nothing", "DescribeConfigs", asked()),
    *each_version("own node", "DescribeConfigs", asked(resource(BROKER, "1", NODE_KEYS), synonyms=True), node_1=True),
    *each_version("other node", "DescribeConfigs", asked(resource(BROKER, "2", NODE_KEYS)), node_1=True),
    *each_version("cluster default", "DescribeConfigs", asked(resource(BROKER, ""))),
    *each_version("unknown type", "DescribeConfigs", asked(resource(0, "x"))),
    newest("topic twice", resource(TOPIC, "dc-set", ["retention.ms"]), resource(TOPIC, "dc-set", ["segment.ms"])),
    newest("key twice", resource(TOPIC, "dc-set", ["retention.ms", "retention.ms"])),
    newest("neighbours", resource(TOPIC, "dc-nobody"), resource(TOPIC, "dc-set", ["retention.ms"]), resource(BROKER, "2"), node_1=True),
    newest("unknown type beside a topic", resource(TOPIC, "dc-set", ["retention.ms"]), resource(0, "x")),
    newest("empty topic name", resource(TOPIC, "")),
    newest("node that is no number", resource(BROKER, "abc"), node_1=True),
    newest("negative node", resource(BROKER, "-1"), node_1=True),
    newest("node with a zero in front", resource(BROKER, "01", ["broker.id"]), node_1=True),
    newest("node with a blank", resource(BROKER, " 1", ["broker.id"]), node_1=True),
    newest("node with a plus", resource(BROKER, "+1", ["broker.id"]), node_1=True),
    newest("node with an underline", resource(BROKER, "1_0", ["broker.id"]), node_1=True),
    newest("node in full width", resource(BROKER, "\uff11", ["broker.id"]), node_1=True),
    newest("node beyond 32 bits", resource(BROKER, "2147483648", ["broker.id"]), node_1=True),
    newest("logger without node", resource(BROKER_LOGGER, ""), node_1=True),
    newest("logger of another node", resource(BROKER_LOGGER, "2"), node_1=True),
    newest("logger of no number", resource(BROKER_LOGGER, "x"), node_1=True),
    newest("client metrics", resource(CLIENT_METRICS, "x")),
    newest("group", resource(GROUP, "x")),
    newest("type any", resource(1, "x")),
    newest("type 99", resource(99, "x")),
    newest("type -1", resource(-1, "x")),
]  # fmt: skip

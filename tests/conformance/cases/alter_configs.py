"""AlterConfigs and IncrementalAlterConfigs: what is asked before any resource is looked at, then
topics, nodes and the default.
"""

from collections.abc import Iterable
from typing import Any

from tests.conformance.case import (
    APPEND,
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    Case,
    creation,
    each_version,
    new_topic,
)

SETUP = [new_topic(f"ac-{n}", placed={0: [1]}) for n in ("one", "two", "inc", "list")]
SETUP += [new_topic("ac-set", placed={0: [1]}, configs={"retention.ms": "1", "segment.ms": "2"})]

NODE_NAMES = [" 1", "1 ", "+1", "01", "1_0", "1_", "-1", "1.0", "0x1", "2147483648", "\uff11", "\u0661", "+", "1\n"]
"""Java's Integer.parseInt takes some of them for 1."""

Setting = tuple[str, str | None]
Operation = tuple[str, int, str | None]


def whole(kind: int, name: str, *configs: Setting) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": key, "value": value} for key, value in configs],
    }


def steps(kind: int, name: str, *configs: Operation) -> dict[str, Any]:
    return {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": key, "config_operation": operation, "value": value} for key, operation, value in configs],
    }


def asked(resources: Iterable[dict[str, Any]], *, validate_only: bool = False) -> dict[str, Any]:
    return {"resources": list(resources), "validate_only": validate_only}


def alter(name: str, *resources: dict[str, Any], validate_only: bool = False, node_1: bool = False) -> list[Case]:
    return each_version(name, "AlterConfigs", asked(resources, validate_only=validate_only), node_1=node_1)


def step(name: str, *resources: dict[str, Any], validate_only: bool = False, node_1: bool = False) -> list[Case]:
    return each_version(name, "IncrementalAlterConfigs", asked(resources, validate_only=validate_only), node_1=node_1)


def look(name: str, kind: int, resource: str, *keys: str, node_1: bool = False) -> Case:
    body = {
        "resources": [{"resource_type": kind, "resource_name": resource, "configuration_keys": list(keys) or None}],
        "include_synonyms": True,
    }
    return Case(name, "DescribeConfigs", 4, body, settles=True, node_1=node_1)


CASES = [
    Case("setup alter configs", "CreateTopics", 7, creation(*SETUP)),
    # The whole set of a topic.
    *alter("set", whole(TOPIC, "ac-one", ("retention.ms", "5000"), ("cleanup.policy", "compact"))),
    look("what set left", TOPIC, "ac-one", "retention.ms", "cleanup.policy", "segment.ms"),
    *alter("replaces", whole(TOPIC, "ac-set", ("retention.ms", "7"))),
    look("what replaces left", TOPIC, "ac-set", "retention.ms", "segment.ms"),
    *alter("to nothing", whole(TOPIC, "ac-set")),
    look("what to nothing left", TOPIC, "ac-set", "retention.ms", "segment.ms"),
    *alter("validate only", whole(TOPIC, "ac-two", ("retention.ms", "5000")), validate_only=True),
    look("what validate only left", TOPIC, "ac-two", "retention.ms"),
    *alter("nothing"),
    *alter("unknown topic", whole(TOPIC, "ac-nobody", ("retention.ms", "1"))),
    *alter("empty topic name", whole(TOPIC, "", ("retention.ms", "1"))),
    *alter("illegal topic name", whole(TOPIC, "bad name!", ("retention.ms", "1"))),
    *alter("unknown config", whole(TOPIC, "ac-two", ("no.such.config", "1"))),
    *alter("bad value", whole(TOPIC, "ac-two", ("retention.ms", "abc"))),
    *alter("out of range", whole(TOPIC, "ac-two", ("retention.ms", "-2"))),
    *alter("null value", whole(TOPIC, "ac-two", ("retention.ms", None), ("segment.ms", None))),
    *alter("key twice", whole(TOPIC, "ac-two", ("retention.ms", "1"), ("retention.ms", "2"))),
    *alter("lags cross", whole(TOPIC, "ac-two", ("min.compaction.lag.ms", "2"), ("max.compaction.lag.ms", "1"))),
    *alter("unknown type", whole(0, "x", ("a", "1"))),
    *alter("client metrics", whole(CLIENT_METRICS, "x", ("a", "1"))),
    *alter("group", whole(GROUP, "x", ("a", "1"))),
    *alter("type 99", whole(99, "x", ("a", "1"))),
    *alter("logger", whole(BROKER_LOGGER, "1", ("kafka", "DEBUG")), node_1=True),
    *alter("null before unknown topic", whole(TOPIC, "ac-nobody", ("retention.ms", None))),
    *alter(
        "neighbours",
        whole(TOPIC, "ac-nobody", ("retention.ms", "1")), whole(TOPIC, "ac-two", ("retention.ms", "9")), whole(0, "x"),
    ),
    look("what neighbours left", TOPIC, "ac-two", "retention.ms"),
    Case("topic twice", "AlterConfigs", 2, asked([whole(TOPIC, "ac-two", ("retention.ms", "1"))] * 2)),
    # Of a node and of the cluster's default.
    *alter("other node", whole(BROKER, "2", ("log.retention.ms", "1")), node_1=True),
    *alter("node that is no number", whole(BROKER, "abc", ("log.retention.ms", "1")), node_1=True),
    *alter("node's bad value", whole(BROKER, "1", ("log.retention.ms", "abc")), node_1=True),
    *alter("node's static config", whole(BROKER, "1", ("broker.id", "2")), node_1=True),
    *alter("node", whole(BROKER, "1", ("log.retention.ms", "120000")), node_1=True),
    look("what node left", BROKER, "1", "log.retention.ms", node_1=True),
    look("what node left to a topic", TOPIC, "ac-inc", "retention.ms", node_1=True),
    *alter("default", whole(BROKER, "", ("log.retention.ms", "240000"))),
    look("what default left", BROKER, ""),
    look("what both left to a topic", TOPIC, "ac-inc", "retention.ms", node_1=True),
    *alter("node to nothing", whole(BROKER, "1"), node_1=True),
    look("what default left to a topic", TOPIC, "ac-inc", "retention.ms"),
    *alter("default to nothing", whole(BROKER, "")),
    look("what nothing left to a topic", TOPIC, "ac-inc", "retention.ms"),
    *alter("default's static config", whole(BROKER, "", ("broker.id", "2"))),
    *alter("default's listener config", whole(BROKER, "", ("listener.name.x.ssl.keystore.location", "/a"))),
    # Two faults, and names of nodes that Java takes for numbers.
    *alter("key twice before null value", whole(TOPIC, "ac-two", ("retention.ms", "1"), ("retention.ms", None))),
    *alter("unknown topic before unknown config", whole(TOPIC, "ac-nobody", ("no.such.config", "1"))),
    *alter("unknown config before bad value", whole(TOPIC, "ac-two", ("retention.ms", "x"), ("no.such.config", "1"))),
    *alter("null value before unknown type", whole(0, "x", ("a", None))),
    *alter("null value before another node", whole(BROKER, "2", ("log.retention.ms", None)), node_1=True),
    *alter("another node before a static config", whole(BROKER, "2", ("broker.id", "7")), node_1=True),
    *alter("static config before bad value", whole(BROKER, "1", ("log.retention.ms", "x"), ("broker.id", "7")), node_1=True),
    *alter("null value before empty topic name", whole(TOPIC, "", ("retention.ms", None))),
    *alter("key twice and its neighbour", whole(TOPIC, "ac-two", ("a", "1"), ("a", "1")), whole(TOPIC, "ac-nobody", ("a", "1"))),
    *[case for name in NODE_NAMES for case in alter(f"node {name!r}", whole(BROKER, name), validate_only=True, node_1=True)[-1:]],
    # In steps.
    *step("set", steps(TOPIC, "ac-inc", ("retention.ms", SET, "5000"), ("segment.ms", SET, "6000"))),
    *step("delete one", steps(TOPIC, "ac-inc", ("segment.ms", DELETE, None), ("flush.ms", DELETE, None))),
    look("what steps left", TOPIC, "ac-inc", "retention.ms", "segment.ms", "flush.ms"),
    *step("append", steps(TOPIC, "ac-list", ("cleanup.policy", APPEND, "compact"))),
    look("what append left", TOPIC, "ac-list", "cleanup.policy"),
    *step("subtract", steps(TOPIC, "ac-list", ("cleanup.policy", SUBTRACT, "delete,foo"))),
    look("what subtract left", TOPIC, "ac-list", "cleanup.policy"),
    *step("append throttled", steps(TOPIC, "ac-list", ("leader.replication.throttled.replicas", APPEND, "0:1,1:2"))),
    *step("subtract throttled", steps(TOPIC, "ac-list", ("leader.replication.throttled.replicas", SUBTRACT, "0:1"))),
    look("what throttled left", TOPIC, "ac-list", "leader.replication.throttled.replicas"),
    *step("validate only", steps(TOPIC, "ac-inc", ("retention.ms", SET, "1")), validate_only=True),
    look("what step validate only left", TOPIC, "ac-inc", "retention.ms"),
    *step("nothing"),
    *step("no steps", steps(TOPIC, "ac-inc")),
    *step("unknown topic", steps(TOPIC, "ac-nobody", ("retention.ms", SET, "1"))),
    *step("empty topic name", steps(TOPIC, "", ("retention.ms", SET, "1"))),
    *step("illegal topic name", steps(TOPIC, "bad name!", ("retention.ms", SET, "1"))),
    *step("unknown config", steps(TOPIC, "ac-inc", ("no.such.config", SET, "1"))),
    *step("delete unknown config", steps(TOPIC, "ac-inc", ("no.such.config", DELETE, None))),
    *step("append unknown config", steps(TOPIC, "ac-inc", ("no.such.config", APPEND, "1"))),
    *step("bad value", steps(TOPIC, "ac-inc", ("retention.ms", SET, "abc"))),
    *step("append no list", steps(TOPIC, "ac-inc", ("retention.ms", APPEND, "1"))),
    *step("subtract no list", steps(TOPIC, "ac-inc", ("retention.ms", SUBTRACT, "1"))),
    *step("append bad value", steps(TOPIC, "ac-inc", ("cleanup.policy", APPEND, "foo"))),
    *step("null value", steps(TOPIC, "ac-inc", ("retention.ms", SET, None), ("segment.ms", APPEND, None))),
    *step("delete with value", steps(TOPIC, "ac-inc", ("retention.bytes", DELETE, "1"))),
    *step("key twice", steps(TOPIC, "ac-inc", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None))),
    *step("topic twice", *[steps(TOPIC, "ac-inc", ("retention.ms", SET, "1"))] * 2),
    *step("unknown operation", steps(TOPIC, "ac-inc", ("retention.ms", 9, "1"))),
    *step("unknown type", steps(0, "x", ("a", SET, "1"))),
    *step("type 99", steps(99, "x", ("a", SET, "1"))),
    *step("client metrics", steps(CLIENT_METRICS, "x", ("interval.ms", SET, "1000"))),
    *step("group", steps(GROUP, "x", ("a", SET, "1"))),
    *step("lags cross with what is set", steps(TOPIC, "ac-inc", ("min.compaction.lag.ms", SET, "9223372036854775807"), ("max.compaction.lag.ms", SET, "5"))),
    *step(
        "neighbours",
        steps(TOPIC, "ac-nobody", ("retention.ms", SET, "1")), steps(TOPIC, "ac-one", ("retention.ms", SET, "42")),
        steps(TOPIC, "ac-two", ("retention.ms", SET, "x")),
    ),
    look("what step neighbours left", TOPIC, "ac-one", "retention.ms", "cleanup.policy"),
    *step("node", steps(BROKER, "1", ("log.retention.ms", SET, "120000")), node_1=True),
    look("what step node left", BROKER, "1", "log.retention.ms", node_1=True),
    *step("node delete", steps(BROKER, "1", ("log.retention.ms", DELETE, None)), node_1=True),
    look("what step node delete left", BROKER, "1", "log.retention.ms", node_1=True),
    *step("default", steps(BROKER, "", ("log.retention.ms", SET, "240000"), ("log.cleaner.threads", SET, "2"))),
    look("what step default left", BROKER, ""),
    *step("default delete", steps(BROKER, "", ("log.retention.ms", DELETE, None), ("log.cleaner.threads", DELETE, None))),
    look("what step default delete left", BROKER, ""),
    *step("other node", steps(BROKER, "2", ("log.retention.ms", SET, "1")), node_1=True),
    *step("node that is no number", steps(BROKER, "abc", ("log.retention.ms", SET, "1")), node_1=True),
    *step("node's bad value", steps(BROKER, "1", ("log.retention.ms", SET, "abc")), node_1=True),
    *step("node's static config", steps(BROKER, "1", ("broker.id", SET, "2")), node_1=True),
    *step("node's unknown config", steps(BROKER, "1", ("my.own.key", SET, "2")), node_1=True),
    *step("node's unknown config away", steps(BROKER, "1", ("my.own.key", DELETE, None)), node_1=True),
    *step("node validate only", steps(BROKER, "1", ("log.retention.ms", SET, "1")), validate_only=True, node_1=True),
    *step("node append no list", steps(BROKER, "1", ("log.retention.ms", APPEND, "1")), node_1=True),
    *step("node append list", steps(BROKER, "1", ("log.cleanup.policy", APPEND, "compact")), validate_only=True, node_1=True),
    *step("node unknown operation", steps(BROKER, "1", ("log.retention.ms", 9, "1")), node_1=True),
    # Two faults.
    *step("key twice before null value", steps(TOPIC, "ac-inc", ("retention.ms", SET, "1"), ("retention.ms", SET, None))),
    *step("null value before unknown operation", steps(TOPIC, "ac-inc", ("retention.ms", 9, None))),
    *step("unknown topic before unknown operation", steps(TOPIC, "ac-nobody", ("retention.ms", 9, "1"))),
    *step("no list before unknown config", steps(TOPIC, "ac-inc", ("no.such.config", SET, "1"), ("retention.ms", APPEND, "1"))),
    *step("no list before bad value", steps(TOPIC, "ac-inc", ("segment.ms", SET, "x"), ("retention.ms", APPEND, "1"))),
    *step("unknown config before bad value", steps(TOPIC, "ac-inc", ("retention.ms", SET, "x"), ("no.such.config", SET, "1"))),
    *step("unknown operation before another node", steps(BROKER, "2", ("log.retention.ms", 9, "1")), node_1=True),
    *step("static config before bad value", steps(BROKER, "1", ("log.retention.ms", SET, "x"), ("broker.id", SET, "7")), node_1=True),
    *step("topic twice before null value", *[steps(TOPIC, "ac-inc", ("retention.ms", SET, None))] * 2),
    *step("unknown type twice", *[steps(0, "x", ("a", SET, "1"))] * 2),
    *step("same name, other type", steps(TOPIC, "1", ("retention.ms", SET, "1")), steps(BROKER, "1"), validate_only=True, node_1=True),
    *[case for name in ["", "x", *NODE_NAMES] for case in step(f"logger of {name!r}", steps(BROKER_LOGGER, name), node_1=True)[-1:]],
    *step("append twice the same", steps(TOPIC, "ac-list", ("cleanup.policy", APPEND, "delete,delete, compact")), validate_only=True),
    *[case for name in NODE_NAMES for case in step(f"node {name!r}", steps(BROKER, name), validate_only=True, node_1=True)[-1:]],
    *step("default's static config", steps(BROKER, "", ("broker.id", SET, "2"))),
    *step("default's bad value", steps(BROKER, "", ("log.retention.ms", SET, "abc"))),
]  # fmt: skip

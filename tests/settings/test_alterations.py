"""Changes of configs, by what a real Kafka 3.9.1 answered to the same requests."""

from collections.abc import Iterable
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.admin.configs.alterations import altered_broker, altered_topic
from minicontroller.admin.configs.broker_changes import MAX_CONFIGS
from minicontroller.cluster.errors import Refusal
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.protocol.config_resources import ConfigOperation
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.alter_configs import AlterableConfig, AlterConfigsResource
from minicontroller.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsResource,
)

NODE = config_from_mapping({"broker.id": "1", "min.insync.replicas": "3", "log.cleanup.policy": "compact"})
SET, DELETE, APPEND, SUBTRACT = ConfigOperation

Change = tuple[str, int, str | None]


def changes(*wanted: Change, of: str = "1") -> IncrementalAlterConfigsResource:
    """The operations of an IncrementalAlterConfigs request on the configs of this resource."""
    return IncrementalAlterConfigsResource(0, of, [IncrementalAlterableConfig(*each) for each in wanted])


def whole(entries: Iterable[tuple[str, str | None]], of: str = "1") -> AlterConfigsResource:
    """The same of AlterConfigs."""
    return AlterConfigsResource(0, of, [AlterableConfig(*each) for each in entries])


def topic_refusal(*wanted: Change) -> tuple[ErrorCode, str | None]:
    with pytest.raises(Refusal) as caught:
        altered_topic("over", {}, changes(*wanted), NODE)
    return caught.value.code, caught.value.message


def broker_refusal(*wanted: Change, node: NodeConfig = NODE, per_broker: bool = True) -> tuple[ErrorCode, str | None]:
    with pytest.raises(Refusal) as caught:
        altered_broker({}, changes(*wanted, of="1" if per_broker else ""), node)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ({}, ("retention.ms", SET, "5"), {"retention.ms": "5"}),
        ({"retention.ms": "5"}, ("retention.ms", SET, "6"), {"retention.ms": "6"}),
        ({"retention.ms": "5"}, ("retention.ms", DELETE, None), {}),
        ({"retention.ms": "5"}, ("retention.ms", DELETE, "whatever"), {}),
        ({}, ("no.such.key", DELETE, None), {}),
        ({}, ("cleanup.policy", APPEND, "compact"), {"cleanup.policy": "delete,compact"}),
        ({}, ("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": ""}),
    ],
)
def test_one_change_of_a_topic(before: dict[str, str], change: Change, after: dict[str, str]) -> None:
    """SET replaces, DELETE forgets, APPEND and SUBTRACT edit the override, else Kafka's default and
    not the node's.
    """
    assert altered_topic("over", before, changes(change), NODE) == after


def test_changes_are_made_in_order_and_judged_together() -> None:
    """A value that contradicts what was there is fine as long as the result is."""
    before = {"max.compaction.lag.ms": "5"}
    after = altered_topic(
        "t", before, changes(("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", DELETE, None)), NODE
    )
    assert after == {"min.compaction.lag.ms": "9"}
    assert before == {"max.compaction.lag.ms": "5"}


@pytest.mark.parametrize(
    ("wanted", "code", "text"),
    [
        ([("retention.ms", SET, None)], 42, "Null value not supported for : retention.ms"),
        ([("a", SET, None), ("b", APPEND, None), ("c", DELETE, None)], 42, "Null value not supported for : a, b"),
        ([("retention.ms", SET, None), ("retention.ms", DELETE, None)], 42, "Error due to duplicate config keys"),
        ([("retention.ms", 9, "5")], 42, "Unknown operations type 9"),
        ([("retention.ms", APPEND, "5")], 40, "Config value append is not allowed for config key: retention.ms"),
        ([("retention.ms", SUBTRACT, "5")], 40, "Config value subtract is not allowed for config key: retention.ms"),
        ([("foo", SUBTRACT, "5")], 40, "Config value subtract is not allowed for unknown config key: foo"),
        ([("foo", SET, "5")], 40, "Unknown topic config name: foo"),
        (
            [("retention.ms", SET, "abc")],
            40,
            (
                "Invalid config value for resource ConfigResource(type=TOPIC, name='over'): "
                "Invalid value abc for configuration retention.ms: Not a number of type LONG"
            ),
        ),
        (
            [("cleanup.policy", APPEND, "foo")],
            40,
            (
                "Invalid config value for resource ConfigResource(type=TOPIC, name='over'): "
                "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"
            ),
        ),
        (
            [("min.compaction.lag.ms", SET, "9"), ("max.compaction.lag.ms", SET, "5")],
            40,
            "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (5)",
        ),
    ],
)
def test_what_is_refused_of_a_topic(wanted: list[Change], code: int, text: str) -> None:
    """42 for a wrong request, 40 for a wrong config, in Kafka's words; where Kafka fails with -1
    this answers what is wrong.
    """
    assert topic_refusal(*wanted) == (code, text)


def test_replacing_the_configs_of_a_topic() -> None:
    """AlterConfigs: what is not named is gone; the request is judged before the configs."""
    assert altered_topic("t", {}, whole([("segment.bytes", "20")]), NODE) == {"segment.bytes": "20"}
    assert altered_topic("t", {}, whole([]), NODE) == {}
    for entries, code, text in (
        ([("retention.ms", None), ("foo", None)], 42, "Null value not supported for : retention.ms, foo"),
        ([("retention.ms", None), ("retention.ms", "2")], 42, "Error due to duplicate config keys"),
        ([("foo", "5")], 40, "Unknown topic config name: foo"),
    ):
        with pytest.raises(Refusal) as caught:
            altered_topic("t", {}, whole(entries), NODE)
        assert (caught.value.code, caught.value.message) == (code, text)


@pytest.mark.parametrize(
    ("change", "per_broker"),
    [
        (("log.retention.ms", SET, "1000"), True),
        (("log.retention.ms", SET, "-5"), True),
        (("log.retention.ms", SET, "2000"), False),
        (("ssl.client.auth", SET, "required"), True),
        (("listener.name.ext.ssl.keystore.location", SET, "/x"), True),
        (("listener.name.ext.broker.id", SET, "3"), True),
        (("listener.name.nope.ssl.client.auth", SET, "required"), True),
        (("listener.name.ext.max.connections", SET, "55"), False),
        (("listener.name.nope.max.connections", SET, "0"), False),
        (("max.connections.per.ip.overrides", SET, "127.0.0.1:0"), False),
        (("leader.replication.throttled.rate", SET, "700"), False),
        (("custom.key", SET, "v"), True),
        (("custom.key", SET, "v"), False),
        (("", SET, "v"), True),
        (("max.connections.per.ip.overrides", SET, "127.0.0.1:5"), True),
        (("num.io.threads", SET, "16"), True),
        (("listeners", SET, "PLAINTEXT://:1"), True),
        (("num.io.threads", SET, "4"), True),
        (("broker.id", DELETE, None), True),
        (("listeners", DELETE, None), False),
    ],
)
def test_what_may_be_changed_of_a_node(change: Change, per_broker: bool) -> None:
    """Dynamic keys for one node or all, a listener's, unknown ones; forgetting what cannot be set
    is nothing.
    """
    name, operation, value = change
    after = altered_broker({}, changes(change, of="1" if per_broker else ""), NODE)
    assert after == ({} if operation == DELETE else {name: value})


@pytest.mark.parametrize(
    ("wanted", "per_broker", "text"),
    [
        ([("broker.id", SET, "2")], True, "Cannot update these configs dynamically: Set(broker.id)"),
        ([("num.partitions", SET, "2"), ("log.dirs", SET, "/x")], False, "Cannot update these configs dynamically: Set(log.dirs, num.partitions)"),
        ([("metadata.completion", SET, "cluster")], True, "Cannot update these configs dynamically: Set(metadata.completion)"),
        ([("log.initial.task.delay.ms", SET, "5")], True, "Cannot update these configs dynamically: Set(log.initial.task.delay.ms)"),
        ([("ssl.client.auth", SET, "required"), ("broker.id", SET, "3")], False, "Cannot update these configs dynamically: Set(broker.id)"),
        (
            [("ssl.keystore.location", SET, "/x"), ("log.retention.ms", SET, "abc")],
            True,
            "These security configs can be dynamically updated only per-listener using the listener prefix: Set(ssl.keystore.location)",
        ),
        (
            [("ssl.client.auth", SET, "required"), ("log.retention.ms", SET, "abc")],
            False,
            "Invalid value abc for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            [("ssl.client.auth", SET, "required")],
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: Set(ssl.client.auth)",
        ),
        (
            [("listener.name.ext.ssl.client.auth", SET, "required")],
            False,
            "Cannot update these configs at default cluster level, broker id must be specified: Set(listener.name.ext.ssl.client.auth)",
        ),
        ([("leader.replication.throttled.rate", SET, "-1")], True, "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at least 0"),
        ([("num.io.threads", SET, "0")], True, "Invalid value 0 for configuration num.io.threads: Value must be at least 1"),
        ([("num.io.threads", SET, "17")], True, "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed for num.io.threads=17, value should not be greater than double the current value 8 for configuration Invalid dynamic configuration"),
        ([("num.io.threads", SET, "3")], False, "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation failed for num.io.threads=3, value should be at least half the current value 8 for configuration Invalid dynamic configuration"),
        ([("log.retention.ms", SET, "0")], True, "log.retention.ms must be unlimited (-1) or at least 1."),
        ([("log.roll.ms", SET, "0")], False, "log.roll.ms must be at least 1."),
        *(
            ([(f"{prefix}{name}", SET, "0")], False, f"Invalid value org.apache.kafka.common.config.ConfigException: Invalid {name} 0 for configuration Invalid dynamic configuration")
            for name in ("max.connections", "max.connection.creation.rate")
            for prefix in ("", "listener.name.plaintext.")
        ),
        ([("max.connections.per.ip", SET, "0")], False, "max.connections.per.ip can be 0 only where max.connections.per.ip.overrides is set."),
        ([("max.connections.per.ip.overrides", SET, "foo")], True, "Error parsing configuration property 'max.connections.per.ip.overrides': 'foo' is not of the form address:count"),
        ([("log.cleanup.policy", APPEND, "foo")], True, "Invalid value foo for configuration log.cleanup.policy: String must be one of: compact, delete"),
        ([("custom.key", 9, "v")], True, "Unknown operations type 9"),
        ([("log.retention.ms", SET, None)], True, "Null value not supported for : log.retention.ms"),
        ([("advertised.listeners", SET, "PLAINTEXT://h:1")], False, "Cannot update these configs at default cluster level, broker id must be specified: Set(advertised.listeners)"),
        *(
            ([(name, SET, value)], True, f"These configs can be changed only in the file of the node, which then has to be started again: Set({name})")
            for name, value in {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.ext.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.ext.plain.connections.max.reauth.ms": "5",
                "listener.name.ext.sasl.oauthbearer.expected.issuer": "x",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
            }.items()
        ),
    ],
)  # fmt: skip
def test_what_is_refused_of_a_node_is_an_invalid_request(wanted: list[Change], per_broker: bool, text: str) -> None:
    """42 and not 40, in Kafka's order; sets are shown in brackets, and what this node cannot honour
    is refused too.
    """
    assert broker_refusal(*wanted, per_broker=per_broker) == (ErrorCode.INVALID_REQUEST, text)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("log.retention.ms", APPEND, "5"), "Config value append is not allowed for config key: log.retention.ms"),
        (("custom.key", SUBTRACT, "5"), "Config value subtract is not allowed for unknown config key: custom.key"),
        (
            ("listener.name.ext.plain.sasl.jaas.config", SET, "hunter2"),
            "Invalid config value for resource ConfigResource(type=BROKER, name='1'): Password encoder secret not configured",
        ),
    ],
)
def test_a_few_refusals_of_a_node_are_invalid_configs(change: Change, text: str) -> None:
    """40, as with Kafka: lists that are none, and passwords that cannot be encoded."""
    assert broker_refusal(change) == (ErrorCode.INVALID_CONFIG, text)


def test_passwords_stay_in_the_file() -> None:
    """Passwords are refused without being shown, also with a secret to encode them."""
    node = config_from_mapping({"broker.id": "1", "password.encoder.secret": "s"})
    code, text = broker_refusal(("listener.name.ext.ssl.key.password", SET, "hunter2"), node=node)
    assert code is ErrorCode.INVALID_CONFIG
    assert text is not None
    assert "listener.name.ext.ssl.key.password is a password" in text
    assert "hunter" not in text


def test_a_default_for_all_nodes_is_judged_with_what_this_node_has() -> None:
    """A value that this node's own hides cannot be wrong for it."""
    node = NODE.with_dynamic({"log.retention.ms": "1000", "num.io.threads": "9"}, {})
    wanted = changes(("log.retention.ms", SET, "0"), ("num.io.threads", SET, "500"), of="")
    after = altered_broker({}, wanted, node)
    assert after == {"log.retention.ms": "0", "num.io.threads": "500"}


def test_lists_of_a_node_are_edited_upon_kafkas_default() -> None:
    """What the file says does not count: APPEND to the default `delete`, not to the file's
    `compact`.
    """
    assert altered_broker({}, changes(("log.cleanup.policy", APPEND, "compact")), NODE) == {
        "log.cleanup.policy": "delete,compact"
    }


def test_replacing_the_configs_of_a_node() -> None:
    """AlterConfigs: the whole set, judged like a change."""
    assert altered_broker({}, whole([("message.max.bytes", "500")]), NODE) == {"message.max.bytes": "500"}
    with pytest.raises(Refusal, match="Cannot update these configs dynamically") as caught:
        altered_broker({}, whole([("broker.id", "3")]), NODE)
    assert caught.value.code is ErrorCode.INVALID_REQUEST


NAMES = st.sampled_from(
    ["retention.ms", "cleanup.policy", "segment.bytes", "foo", "leader.replication.throttled.replicas"]
)
VALUES = st.none() | st.sampled_from(["5", "20", "compact", "delete", "compact,delete", "0:1", "*", "", "x"])
CHANGES = st.lists(st.tuples(NAMES, st.integers(-1, 4), VALUES), max_size=4).map(lambda wanted: changes(*wanted))


@given(CHANGES, CHANGES)
def test_whatever_is_accepted_is_valid_and_stays_so(
    first: IncrementalAlterConfigsResource, second: IncrementalAlterConfigsResource
) -> None:
    """A change gives a valid set or a Refusal, never touches what was there, and no change leaves
    it as it is.
    """
    overrides = MappingProxyType[str, str]({})
    for wanted in (first, second):
        before = dict(overrides)
        try:
            altered = altered_topic("t", overrides, wanted, NODE)
        except Refusal:
            altered = dict(overrides)
        assert overrides == before
        assert altered_topic("t", altered, changes(), NODE) == altered
        assert altered_topic("t", {}, whole(list(altered.items())), NODE) == altered
        overrides = MappingProxyType(altered)


def test_a_broker_has_so_many_configs_at_most() -> None:
    """Brokers take keys that nobody knows: what one request names, and what many requests pile up,
    has an end.
    """
    full = {f"k{number}": "1" for number in range(MAX_CONFIGS)}
    assert len(altered_broker({}, whole(list(full.items())), NODE)) == MAX_CONFIGS
    with pytest.raises(Refusal, match="2001 configs of one resource are named"):
        altered_broker({}, whole([*full.items(), ("one", "more")]), NODE)
    with pytest.raises(Refusal, match="2001 configs of one resource would be there"):
        altered_broker(full, changes(("one", SET, "more"), of=""), NODE)

"""One node's configuration: loading, every kind of mistake, and the values that hold."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.network.limits import connection_limits
from minicontroller.network.memory import DEFAULT_BYTES
from minicontroller.process.settings.in_force import in_force
from minicontroller.process.settings.loading import config_from_mapping, load_config
from minicontroller.process.settings.node_config import ConfigSource

JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="n" password="hunter2" user_n="hunter2";'
)
SAMPLE = Path(__file__).parents[2] / "config" / "server.properties"

LIMIT, OVERRIDES = "max.connections.per.ip", "max.connections.per.ip.overrides"


def mistakes(*lines: str, overrides: tuple[str, ...] = (), environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load_config("\n".join(lines), "server.properties", overrides, environ or {})
    return str(caught.value).split("\n")


def test_defaults_are_kafkas() -> None:
    """A node that is told nothing is a Kafka broker that is told nothing."""
    node = config_from_mapping({})
    assert node.integer("num.partitions") == 1
    assert node.boolean("auto.create.topics.enable") is True
    assert node.strings("sasl.enabled.mechanisms") == ("GSSAPI",)
    assert node.string("metadata.completion") == "local"
    assert node.optional_string("broker.rack") is None
    assert node.string("broker.rack") == ""
    assert node.optional_integer("log.retention.ms") is None
    assert node.decimal("log.cleaner.min.cleanable.ratio") == 0.5
    assert node.integer("policy.timeout.ms") == 5000
    assert node.boolean("controller.forwarding.enable") is True
    assert node.source("num.partitions") is ConfigSource.DEFAULT_CONFIG


def test_overrides_go_before_the_environment_and_that_before_the_file() -> None:
    """The later place holds, and all of them count as static."""
    node = load_config(
        "broker.id=1\nnum.partitions=1\ndefault.replication.factor=1\n",
        "server.properties",
        ["num.partitions=3"],
        {"KAFKA_NUM_PARTITIONS": "2", "KAFKA_DEFAULT_REPLICATION_FACTOR": "2"},
    )
    values = [node.integer(key) for key in ("broker.id", "default.replication.factor", "num.partitions")]
    assert values == [1, 2, 3]
    assert node.source("num.partitions") is ConfigSource.STATIC_BROKER_CONFIG


def test_the_text_stays_as_it_was_written() -> None:
    """The value is parsed, the text is what people wrote."""
    node = config_from_mapping({"log.cleanup.policy": " compact , delete "})
    assert node.text("log.cleanup.policy") == " compact , delete "
    assert node.strings("log.cleanup.policy") == ("compact", "delete")
    assert node.text("num.partitions") == "1"


def test_what_is_not_declared_cannot_be_asked_for() -> None:
    """A slip in our own code is found by the first test that passes it."""
    node = config_from_mapping({})
    with pytest.raises(KeyError):
        node.integer("num.partition")
    with pytest.raises(AssertionError):
        node.boolean("num.partitions")
    with pytest.raises(AssertionError):
        node.integer("log.retention.ms")


def test_all_mistakes_of_all_places_are_told_at_once() -> None:
    """Each is a sentence with its place, its key, what is wrong, and what may have been meant."""
    assert mistakes(
        "# mine",
        "brokr.id=1",
        "num.partitions=abc",
        "num.io.threads=0",
        "xyzzy=1",
        overrides=("policy.timeout.ms=soon", "polcy.timeout.ms=1"),
        environ={"KAFKA_COMPRESSION_TYPE": "zip"},
    ) == [
        "server.properties, line 2: there is no key brokr.id; did you mean broker.id?",
        "server.properties, line 3: Invalid value abc for configuration num.partitions: Not a number of type INT.",
        "server.properties, line 4: Invalid value 0 for configuration num.io.threads: Value must be at least 1.",
        "server.properties, line 5: there is no key xyzzy.",
        (
            "environment variable KAFKA_COMPRESSION_TYPE: Invalid value zip for configuration compression.type: "
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer."
        ),
        "--set policy.timeout.ms: Invalid value soon for configuration policy.timeout.ms: Not a number of type LONG.",
        "--set polcy.timeout.ms: there is no key polcy.timeout.ms; did you mean policy.timeout.ms?",
    ]


def test_a_misspelt_authorizer_is_no_key_of_a_plugin() -> None:
    """Keys that begin with `authorizer.` are an authorizer's own, but for a slip that would leave
    the cluster without one.
    """
    hint = "; did you mean authorizer.class.name?"
    assert mistakes("authorizer.class.nam=x", environ={"KAFKA_AUTHORIZER_CLAS_NAME": "y"}) == [
        f"server.properties, line 1: there is no key authorizer.class.nam{hint}",
        f"environment variable KAFKA_AUTHORIZER_CLAS_NAME: there is no key authorizer.clas.name{hint}",
    ]
    assert config_from_mapping({"authorizer.zookeeper.url": "x"}).text("authorizer.zookeeper.url") == "x"


def test_an_override_without_a_value_is_told() -> None:
    """--set takes key=value."""
    assert mistakes(overrides=("num.partitions",)) == ["--set num.partitions: write it as key=value."]


def test_a_key_that_stands_twice_is_a_warning() -> None:
    """A key that stands twice is a warning and not an error, since Kafka takes it."""
    node = load_config("num.partitions=1\nnum.partitions=2", "f", (), {"KAFKA_TOPIC": "1"})
    assert node.integer("num.partitions") == 2
    assert [warning.split(" ")[:3] for warning in node.warnings] == [
        ["f,", "line", "2:"],
        ["Environment", "variables", "that"],
    ]


@pytest.mark.parametrize("older", ["create.topic.policy.class.name", "alter.config.policy.class.name"])
def test_a_topic_management_policy_excludes_the_older_policies(older: str) -> None:
    """K201-10: both together are a configuration error at start."""
    assert mistakes("topic.management.policy.class.name=a:B", f"{older}=c:D") == [
        (
            f"server.properties, line 2: {older} and topic.management.policy.class.name exclude each other: "
            "the second judges all that the first does."
        )
    ]
    assert config_from_mapping({older: "c:D"}).string(older) == "c:D"


@pytest.mark.parametrize(
    ("setting", "fault"),
    [
        ("broker.id=1001", "broker.id must be within -1 and reserved.broker.max.id, 1000."),
        ("log.retention.hours=0", "log.retention.hours must be unlimited (-1) or at least 1."),
        ("log.roll.ms=0", "log.roll.ms must be at least 1."),
        ("log.roll.jitter.ms=-1", "log.roll.jitter.ms must be at least 0."),
        ("zookeeper.session.timeout.ms=0", "zookeeper.session.timeout.ms must be at least 1000."),
        (
            "max.connections.per.ip=0",
            "max.connections.per.ip can be 0 only where max.connections.per.ip.overrides is set.",
        ),
        (
            "max.connections.per.ip.overrides=x",
            "max.connections.per.ip.overrides: 'x' is not of the form address:count.",
        ),
        ("log.dirs=,", "log.dirs or log.dir must name at least one directory."),
    ],
)
def test_what_kafka_refuses_at_its_start_is_refused(setting: str, fault: str) -> None:
    """Values that are fine by themselves and senseless for a node."""
    assert mistakes("", setting) == [f"server.properties, line 2: {fault}"]


def test_one_request_has_room_among_all() -> None:
    """`queued.max.request.bytes`, where it is set, is at least as much as one request may have, and
    without it there is room for the largest.
    """
    assert mistakes("", "queued.max.request.bytes=1000000") == [
        "server.properties, line 2: queued.max.request.bytes must be at least socket.request.max.bytes, 104857600."
    ]
    of_all, of_one = "queued.max.request.bytes", "socket.request.max.bytes"
    for values, most in (
        ({}, DEFAULT_BYTES),
        ({of_all: "200000000"}, 200_000_000),
        ({of_all: "2000", of_one: "2000"}, 2000),
        ({of_one: "1000000000"}, 1_000_000_000),
    ):
        assert connection_limits(config_from_mapping(values), 10).max_unfinished_bytes == most


def test_generated_ids_need_no_number() -> None:
    """Without a number a node may be given one, unless that is turned off."""
    assert config_from_mapping({}).integer("broker.id") == -1
    assert mistakes("broker.id.generation.enable=false") == [
        "broker.id must be at least 0 where broker.id.generation.enable is false."
    ]
    above = config_from_mapping({"broker.id": "5000", "broker.id.generation.enable": "false"})
    assert above.integer("broker.id") == 5000


def test_node_id_and_broker_id_are_one() -> None:
    """Whichever is set sets the other; two different ones are a mistake."""
    assert config_from_mapping({"node.id": "4"}).integer("broker.id") == 4
    assert config_from_mapping({"broker.id": "4"}).integer("node.id") == 4
    assert mistakes("broker.id=1", "node.id=2") == [
        "server.properties, line 2: node.id is another name of broker.id, which is 1 and not 2."
    ]


def test_limits_for_single_addresses_may_name_ipv6() -> None:
    """The count stands after the last colon."""
    node = config_from_mapping({"max.connections.per.ip.overrides": "127.0.0.1:5, ::1:7,[::2]:9,host:0"})
    assert node.max_connections_per_ip_overrides == {"127.0.0.1": 5, "::1": 7, "::2": 9, "host": 0}


def test_secrets_are_in_no_error() -> None:
    """What is wrong about a password's key is told without the password."""
    told = mistakes(f"listener.name.internal.plain.sasl.jaas.config={JAAS} x", "sasl.jaas.config=hunter2")
    assert [sentence.split(":")[0] for sentence in told] == ["server.properties, line 1", "server.properties, line 2"]
    assert "hunter" not in "".join(told)


def test_the_keys_of_a_listener_go_before_the_plain_ones() -> None:
    """With its mechanism, with its name alone, without: the first that is set holds for the
    listener.
    """
    node = config_from_mapping(
        {
            "max.connections": "10",
            "listener.name.internal.max.connections": "5",
            "listener.name.internal.plain.sasl.jaas.config": JAAS,
        }
    )
    assert node.integer(node.of_listener("INTERNAL", "max.connections")) == 5
    assert node.integer(node.of_listener("CLIENT", "max.connections")) == 10
    jaas = node.jaas("INTERNAL", "PLAIN")
    assert jaas is not None
    assert (jaas.username, jaas.users) == ("n", {"n": "hunter2"})
    assert node.jaas("CLIENT", "PLAIN") is None


def test_each_listener_speaks_its_dialect() -> None:
    """The kafka dialect; the other one is known by name, and refused until it is served."""
    config_from_mapping({"listener.dialect.a": "kafka"})
    assert mistakes("listener.dialect.drafts=kip") == [
        "server.properties, line 1: listener.dialect.drafts=kip is not served: every listener speaks Kafka's own dialect in this version."
    ]
    assert mistakes("listener.dialect.x=old") == [
        "server.properties, line 1: Invalid value old for configuration listener.dialect.x: String must be one of: kafka, kip."
    ]


def test_what_is_set_while_the_node_runs_goes_before_the_file() -> None:
    """What is this node's own before all nodes', both before the file; the configuration it began
    with stays as it was.
    """
    began = config_from_mapping({"message.max.bytes": "1", "num.io.threads": "9", "compression.type": "zstd"})
    now = began.with_dynamic(
        {"message.max.bytes": "3"}, {"message.max.bytes": "2", "num.io.threads": "8", "custom.key": "x"}
    )
    assert [now.integer(key) for key in ("message.max.bytes", "num.io.threads")] == [3, 8]
    assert now.string("compression.type") == "zstd"
    assert [now.source(key).name for key in ("message.max.bytes", "num.io.threads", "compression.type")] == [
        "DYNAMIC_BROKER_CONFIG",
        "DYNAMIC_DEFAULT_BROKER_CONFIG",
        "STATIC_BROKER_CONFIG",
    ]
    assert began.integer("message.max.bytes") == 1
    assert now.with_dynamic({}, {}).integer("message.max.bytes") == 1


def test_what_cannot_hold_is_ignored_where_it_stands_in_the_store() -> None:
    """A bad value in ZooKeeper does not stop a running node, nor does a key that is not dynamic."""
    node = config_from_mapping({"broker.id": "1"}).with_dynamic(
        {
            "broker.id": "2",
            "message.max.bytes": "x",
            "listeners": "SSL://:1",
            "sasl.jaas.config": "x",
            "max.connections": "7",
        },
        {"ssl.client.auth": "required", "max.connections": "8", "log.retention.ms": "-"},
    )
    assert dict(node.dynamic_broker) == {"max.connections": "7"}
    assert dict(node.dynamic_default) == {"max.connections": "8"}
    assert node.integer("broker.id") == 1
    assert node.listeners[0].name == "PLAINTEXT"


@pytest.mark.parametrize(
    ("broker", "default", "held"),
    [
        ({}, {LIMIT: "0", "max.connections": "8"}, ({}, {"max.connections": "8"})),
        ({LIMIT: "0"}, {LIMIT: "9"}, ({}, {LIMIT: "9"})),
        ({LIMIT: "0"}, {OVERRIDES: "h:1"}, ({LIMIT: "0"}, {OVERRIDES: "h:1"})),
        ({OVERRIDES: ""}, {LIMIT: "0", OVERRIDES: "h:1"}, ({}, {LIMIT: "0", OVERRIDES: "h:1"})),
        ({"max.connections": "0", "log.retention.ms": "0"}, {"max.connections": "0", "log.roll.ms": "0"}, ({}, {})),
        ({}, {"listener.name.plaintext.max.connection.creation.rate": "0"}, ({}, {})),
        ({"log.retention.ms": "7"}, {"log.retention.ms": "0"}, ({"log.retention.ms": "7"}, {"log.retention.ms": "0"})),
    ],
)
def test_stored_configs_that_break_a_rule_together_are_ignored(
    broker: dict[str, str], default: dict[str, str], held: tuple[dict[str, str], dict[str, str]]
) -> None:
    """A node goes without its own first, then without those of all nodes, and keeps the others."""
    node = in_force(config_from_mapping({"broker.id": "1"}), broker, default)
    assert (dict(node.dynamic_broker), dict(node.dynamic_default)) == held


def test_the_file_may_have_what_its_own_overrides_make_possible() -> None:
    """A stored config that takes the overrides away is ignored, and the file holds."""
    node = in_force(config_from_mapping({"broker.id": "1", LIMIT: "0", OVERRIDES: "h:1"}), {}, {OVERRIDES: ""})
    assert (node.integer(LIMIT), node.string(OVERRIDES)) == (0, "h:1")


def test_the_sample_works_as_it_stands() -> None:
    """config/server.properties loads without a warning and says what its comments say."""
    node = load_config(SAMPLE.read_text(), "config/server.properties")
    assert not node.warnings
    [listener] = node.listeners
    assert (listener.name, listener.needs_sasl, listener.port) == ("PLAINTEXT", False, 9092)
    assert node.inter_broker_listener is listener
    assert node.string("zookeeper.connect") == "127.0.0.1:2181/minicontroller"


def test_the_sample_works_with_its_policy() -> None:
    """The sample's lines that are commented out are valid too."""
    text = SAMPLE.read_text()
    for key in ("topic.management.policy.class.name", "policy.timeout.ms", "broker.rack"):
        assert f"\n#{key}=" in text
        text = text.replace(f"\n#{key}=", f"\n{key}=")
    assert load_config(text, "f").string("topic.management.policy.class.name") == "config/policy.py:PlatformPolicy"
    module, _, name = "config/policy.py:PlatformPolicy".partition(":")
    assert f"class {name}" in (SAMPLE.parents[1] / module).read_text()


def test_the_sample_with_tls_is_valid() -> None:
    """`config/tls.properties` is what a node accepts, without a doubt."""
    node = load_config(SAMPLE.with_name("tls.properties").read_text(), "config/tls.properties")
    assert [each.needs_tls for each in node.listeners] == [True, True, True]
    assert node.warnings == ()


LINES = st.tuples(
    st.sampled_from(["broker.id", "listeners", "advertised.listeners", "listener.security.protocol.map", "broker.rack",
                     "inter.broker.listener.name", "sasl.jaas.config", "max.connections.per.ip.overrides", "x.y",
                     "security.inter.broker.protocol", "control.plane.listener.name", "log.retention.ms"]),
    st.text('ABSL:/,=0129.[]-é \\"', max_size=12) | st.sampled_from(["SSL", "PLAINTEXT://h:1", "A://[::1]:0", "A:SSL", "7"]),
)  # fmt: skip


@given(st.lists(LINES, max_size=5))
def test_any_file_gives_a_configuration_or_a_configuration_error(lines: list[tuple[str, str]]) -> None:
    """Nothing else is raised, and what is loaded can be asked for its listeners."""
    try:
        node = load_config("\n".join(f"{key}={value}" for key, value in lines), "f")
    except ConfigurationError:
        return
    assert node.inter_broker_listener in node.listeners
    assert node.control_plane_listener in node.listeners


@pytest.mark.parametrize(
    ("key", "value", "needed"),
    [
        ("audit.flush", "always", "audit.dir"),
        ("http.bearer.token", "t", "http.listen"),
        ("policy.timeout.ms", "9", "policy.rules.files or topic.management.policy.class.name"),
        ("topic.management.policy.config.most", "9", "topic.management.policy.class.name"),
    ],
)
def test_a_key_without_what_it_needs_is_warned_of(key: str, value: str, needed: str) -> None:
    """Whoever writes the key believes in a log, a port or a policy that is not there; with it,
    nothing is said.
    """
    assert config_from_mapping({key: value}).warnings == (
        f"configuration, {key}: {key} has no effect without {needed}.",
    )
    for other in needed.split(" or "):
        assert config_from_mapping({key: value, other: "127.0.0.1:80"}).warnings == ()

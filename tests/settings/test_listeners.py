"""Listeners, by the cases that a real Kafka 3.9.1 was asked."""

import pytest

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.process.settings.listeners import ConfiguredListener
from minicontroller.process.settings.loading import load_config
from minicontroller.process.settings.node_config import NodeConfig


def node_of(*settings: str) -> NodeConfig:
    return load_config("\n".join(settings), "f")


def shown(listener: ConfiguredListener) -> str:
    return f"{listener.name} {listener.host}:{listener.port} {listener.security_protocol}"


@pytest.mark.parametrize(
    ("listeners", "expected"),
    [
        ("PLAINTEXT://:9092", ["PLAINTEXT :9092 PLAINTEXT"]),
        ("PLAINTEXT://h:0", ["PLAINTEXT h:0 PLAINTEXT"]),
        ("PLAINTEXT://[::1]:9092", ["PLAINTEXT ::1:9092 PLAINTEXT"]),
        ("PLAINTEXT://::1:9092", ["PLAINTEXT ::1:9092 PLAINTEXT"]),
        ("plaintext://ho_st:9092", ["PLAINTEXT ho_st:9092 PLAINTEXT"]),
        (" PLAINTEXT://h:1 ,, SSL://h:2 ,", ["PLAINTEXT h:1 PLAINTEXT", "SSL h:2 SSL"]),
        ("PLAINTEXT://127.0.0.1:1,SSL://[::1]:1", ["PLAINTEXT 127.0.0.1:1 PLAINTEXT", "SSL ::1:1 SSL"]),
        ("PLAINTEXT://h:0,SSL://h:0", ["PLAINTEXT h:0 PLAINTEXT", "SSL h:0 SSL"]),
    ],
)
def test_listeners_are_read_as_kafka_reads_them(listeners: str, expected: list[str]) -> None:
    """Names become upper case; IPv6 may lack brackets, a host be empty, a port 0, and an IPv4 and
    an IPv6 address share a port.
    """
    assert [shown(listener) for listener in node_of(f"listeners={listeners}").listeners] == expected


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        (["listeners="], "line 1: listeners: there must be at least one listener"),
        (["listeners=PLAINTEXT://h"], "'PLAINTEXT://h' is not of the form NAME://host:port"),
        (["listeners=PLAINTEXT:h:1"], "is not of the form NAME://host:port"),
        (["listeners=PLAINTEXT://h o:1"], "is not of the form NAME://host:port"),
        (["listeners=PLAINTEXT://h:65536"], "the port of 'PLAINTEXT://h:65536' is not within 0 to 65535"),
        (["listeners=PLAINTEXT://h:-1"], "is not within 0 to 65535"),
        (["listeners=PLAINTEXT://h:99999999999999999999"], "is not within 0 to 65535"),
        (["listeners=PLAINTEXT://h:1,PLAINTEXT://h:2"], "PLAINTEXT stands there twice"),
        (["listeners=PLAINTEXT://h:1,SSL://g:1"], "PLAINTEXT and SSL have 1"),
        (["listeners=FOO://h:1"], "no security protocol is defined for listener FOO"),
        (["listeners=PLAINTEXT://0.0.0.0:1"], "line 1: listeners: 0.0.0.0 is every interface"),
        (["listeners=PLAINTEXT://:1", "advertised.listeners=PLAINTEXT://0.0.0.0:1"], "line 2: advertised.listeners: 0.0.0.0"),
        (["advertised.listeners=SSL://h:1"], "listener SSL is advertised, but listeners has only PLAINTEXT"),
        (["advertised.listeners=PLAINTEXT://h:1,PLAINTEXT://h:2"], "listener PLAINTEXT stands there twice"),
        (["listener.security.protocol.map=FOO"], "'FOO' is not of the form NAME:PROTOCOL"),
        (["listener.security.protocol.map=FOO:NOPE"], "'NOPE' is none of PLAINTEXT, SSL"),
        (["inter.broker.listener.name=FOO"], "line 1: inter.broker.listener.name names FOO, which"),
        (["inter.broker.listener.name=SSL"], "must name one of the advertised listeners, PLAINTEXT; it is SSL."),
        (["security.inter.broker.protocol=SSL"], "line 1: inter.broker.listener.name must name one of the"),
        (["inter.broker.listener.name=PLAINTEXT", "security.inter.broker.protocol=PLAINTEXT"], "line 2: only one of"),
        (["security.inter.broker.protocol=ssl"], "String must be one of: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (["control.plane.listener.name=SSL"], "must name one of the advertised listeners, PLAINTEXT; it is SSL."),
        (["control.plane.listener.name=PLAINTEXT"], "must name another listener than inter.broker.listener.name does"),
        (
            ["listeners=SASL_PLAINTEXT://h:1", "inter.broker.listener.name=SASL_PLAINTEXT", "sasl.enabled.mechanisms=PLAIN"],
            "sasl.mechanism.inter.broker.protocol is GSSAPI, which listener SASL_PLAINTEXT of the nodes does not offer",
        ),
    ],
)  # fmt: skip
def test_what_kafka_refuses_is_refused_with_its_place(settings: list[str], fault: str) -> None:
    """Each mistake names the key that has to be mended; ports that no socket has are
    mistakes too.
    """
    with pytest.raises(ConfigurationError) as caught:
        node_of(*settings)
    assert fault in str(caught.value)


def test_a_listener_need_not_be_advertised() -> None:
    """advertised.listeners may name fewer, with other hosts and ports, even one port for two."""
    node = node_of(
        "listeners=PLAINTEXT://:1,SSL://:2,SASL_SSL://:3", "advertised.listeners=PLAINTEXT://[::1]:9,SSL://b:9"
    )
    assert [(listener.advertised_host, listener.advertised_port) for listener in node.listeners] == [
        ("::1", 9),
        ("b", 9),
        (None, None),
    ]
    assert [(listener.needs_tls, listener.needs_sasl) for listener in node.listeners] == [
        (False, False),
        (True, False),
        (True, True),
    ]


def test_without_advertised_listeners_the_listeners_are_advertised() -> None:
    """An empty host is left for whoever registers the node: this machine's own name."""
    (listener,) = node_of("listeners=PLAINTEXT://:9092").listeners
    assert (listener.advertised_host, listener.advertised_port) == ("", 9092)


def test_the_listener_of_the_nodes_is_named_or_follows_from_the_protocol() -> None:
    """inter.broker.listener.name, in any case, else the listener named like
    security.inter.broker.protocol.
    """
    mapped = "listener.security.protocol.map=client:plaintext,INTERNAL:SASL_PLAINTEXT,INTERNAL:PLAINTEXT"
    node = node_of("listeners=CLIENT://:1,INTERNAL://:2", mapped, "inter.broker.listener.name=internal")
    assert shown(node.inter_broker_listener) == "INTERNAL :2 PLAINTEXT"
    node = node_of("listeners=PLAINTEXT://:1,SSL://:2", "security.inter.broker.protocol=SSL")
    assert node.inter_broker_listener.name == "SSL"
    assert node_of().inter_broker_listener.name == "PLAINTEXT"


def test_the_control_plane_is_the_listener_of_the_nodes_unless_named() -> None:
    """control.plane.listener.name gives the controller a listener of its own."""
    node = node_of("listeners=PLAINTEXT://:1,SSL://:2", "control.plane.listener.name=ssl")
    assert (node.inter_broker_listener.name, node.control_plane_listener.name) == ("PLAINTEXT", "SSL")
    single = node_of()
    assert single.control_plane_listener is single.inter_broker_listener


def test_the_nodes_may_offer_sasl_on_their_listener_alone() -> None:
    """The mechanism between nodes is looked for among those of their listener, not among
    everybody's.
    """
    node = node_of(
        "listeners=SASL_PLAINTEXT://h:1",
        "inter.broker.listener.name=SASL_PLAINTEXT",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN",
        "sasl.mechanism.inter.broker.protocol=PLAIN",
    )
    assert node.inter_broker_listener.needs_sasl


def test_an_advertised_wildcard_is_a_doubt() -> None:
    """Kafka starts with `[::]` alone, and so does a node, which says where that leads."""
    node = load_config("listeners=PLAINTEXT://[::]:9092", "f")
    assert node.listeners[0].advertised_host == "::"
    [doubt] = node.warnings
    assert doubt.startswith("f, line 1: listeners gives clients the address [::]")
    assert (
        load_config(
            "listeners=A://[::]:1\nadvertised.listeners=A://h:1\nlistener.security.protocol.map=A:PLAINTEXT\ninter.broker.listener.name=A",
            "f",
        ).warnings
        == ()
    )


def test_a_key_of_a_listener_that_is_not_there_is_a_doubt() -> None:
    """Kafka says nothing, and a misspelt name would leave the real listener as open as it was."""
    misspelt = "listener.name.plaintxt.ssl.client.auth"
    node = load_config(
        f"listeners=PLAINTEXT://h:1\n{misspelt}=required\nlistener.name.plaintext.max.connections=5", "f"
    )
    assert node.warnings == (f"f, line 2: {misspelt} has no effect while listeners has only PLAINTEXT.",)

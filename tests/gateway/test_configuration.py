"""A gateway's configuration is right, or a sentence says where it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.client.configuration import Address
from minicontroller.controller.errors import ConfigurationError
from minicontroller.gateway.configuration import GatewayConfig, load_gateway_config
from minicontroller.gateway.patterns import HostPattern, PortRange

SNI = "route.by=sni\nsecurity.protocol=SSL"
HERE = Address("127.0.0.1", 19092)


def loaded(
    text: str = "",
    *settings: str,
    upstream: str = "kafka-1:9092",
    listen: Address = HERE,
    rules: tuple[str, ...] = (),
) -> GatewayConfig:
    return load_gateway_config(text, "gateway.properties", settings, upstream=upstream, listen=listen, rules=rules)


def test_options_are_enough() -> None:
    """Without any key, clients are given the address that is listened at."""
    config = loaded(upstream="kafka-1:9092,[::1]:9093")
    assert config.upstream.bootstrap_servers == (Address("kafka-1", 9092), Address("::1", 9093))
    assert (config.listen, config.broker_host.text, config.begin_host.text) == (HERE, "127.0.0.1", "127.0.0.1")


def test_the_keys() -> None:
    """The way up has the keys of a client, and an option of the command overrides the file."""
    text = "advertised.host=gateway.example.com\nupstream.client.id=g\nupstream.request.timeout.ms=5000\n"
    config = loaded(text, "upstream.client.id=of the command")
    assert config.broker_host == config.begin_host == HostPattern("gateway.example.com")
    assert config.upstream.client_id == "of the command"
    assert config.upstream.request_timeout_seconds == 5.0


def test_fixed_ports() -> None:
    """Ranges of ids have the ports that follow the first one; 0 is a free port for each."""
    config = loaded("broker.ports=0-2:19093, 100:0", "advertised.host=b$(nodeId)", "advertised.bootstrap.host=b")
    assert config.broker_ports == (PortRange(0, 2, 19093), PortRange(100, 100, 0))
    assert [each.port_of(each.last_id) for each in config.broker_ports] == [19095, 0]
    assert (config.broker_host.host_of(7), config.begin_host.text) == ("b7", "b")


def test_names() -> None:
    """With SNI each broker has a name, and may have a port that another one leads to."""
    names = ("advertised.host=b-$(nodeId).example:443", "advertised.bootstrap.host=b.example:443")
    config = loaded("route.by=sni\nsecurity.protocol=SSL", *names)
    assert config.by_name
    assert (config.broker_host, config.begin_host) == (
        HostPattern("b-$(nodeId).example", 443),
        HostPattern("b.example", 443),
    )


@given(st.integers(0, 2**31 - 1), st.text("abc-.0123456789", max_size=5), st.text("abc-.", max_size=5))
def test_the_name_of_a_broker_is_its_own(broker_id: int, before: str, after: str) -> None:
    """The name that a pattern makes of an id names this id, in capitals, too."""
    pattern = HostPattern(f"{before}x$(nodeId)y{after}")
    name = pattern.host_of(broker_id)
    assert pattern.broker_called(name) == pattern.broker_called(name.upper()) == broker_id


@given(st.text(max_size=30) | st.from_regex(r"b-[0-9]{0,40}\.k", fullmatch=True))
def test_any_name(name: str) -> None:
    """Whatever a client calls, it is the name of one broker or of none."""
    pattern = HostPattern("b-$(nodeId).k")
    broker_id = pattern.broker_called(name)
    assert broker_id is None or pattern.host_of(broker_id) == name.lower()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_everywhere_is_no_address_for_clients(host: str) -> None:
    """A gateway that listens everywhere has to be told which host clients are given."""
    with pytest.raises(ConfigurationError, match=r"advertised\.host is missing: clients cannot connect to"):
        loaded(listen=Address(host, 19092))
    assert loaded("advertised.host=g", listen=Address(host, 19092)).broker_host.text == "g"
    with pytest.raises(ConfigurationError, match=r"advertised\.bootstrap\.host is missing"):
        loaded("advertised.host=g-$(nodeId)", listen=Address(host, 19092))


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        ("\nadvertised.hots=x", (), r"gateway\.properties, line 2: .*Do you mean advertised\.host\?"),
        ("", ("rules=x",), "--set rules: rules is no key of a gateway"),
        ("upstream.bootstrap.servers=x:1", (), "are the option --upstream"),
        ("upstream.security.protocol=TLS", (), "security.protocol must be one of"),
        ("", ("security.protocol=SASL_SSL",), "must be one of PLAINTEXT, SSL. A login passes on to the broker"),
        ("", ("max.connections=many",), "max.connections"),
        ("", ("route.by=name",), "route.by must be one of port, sni"),
        ("", ("route.by=sni",), "route.by=sni needs security.protocol=SSL"),
        (SNI, ("advertised.host=b",), r"needs advertised\.host with \$\(nodeId\), such as"),
        (SNI, ("advertised.host=b$(nodeId)",), r"and advertised\.bootstrap\.host"),
        (SNI, ("advertised.host=b$(nodeId)", "advertised.bootstrap.host=b1"), "is the name of a broker"),
        (SNI, ("advertised.host=b$(nodeId):0", "advertised.bootstrap.host=b"), "advertised.host has a port that is no"),
        (SNI, ("advertised.host=b$(nodeId):x", "advertised.bootstrap.host=b"), "advertised.host has a port that is no"),
        (SNI, ("advertised.host=b $(nodeId)", "advertised.bootstrap.host=b"), "is a name of letters, digits"),
        (SNI, ("broker.ports=0:1",), "is not followed with route.by=sni"),
        ("", ("advertised.host=$(nodeId)$(nodeId)",), "twice"),
        ("", ("advertised.bootstrap.host=$(nodeId)",), "is one host for all brokers"),
        ("", ("broker.ports=0-2",), "as in 0-2:19093,100:19200"),
        ("", ("broker.ports=2-0:1",), "as in 0-2:19093"),
        ("", ("broker.ports=0-99999999999:1",), "as in 0-2:19093"),
        ("", ("broker.ports=0-2147483647:1",), "more than 1000 ports"),
        ("", ("broker.ports=0-2:19093,2:19200",), "has the id 2 twice"),
        ("", ("broker.ports=0-2:19093,3:19095",), "has the port 19095 twice"),
        ("", ("broker.ports=0-2:65534",), "needs the port 65536"),
        ("", ("advertised.host=a b",), "advertised.host is a name of letters, digits"),
        ("", ("advertised.host=\x1b[31m",), "advertised.host is a name of letters, digits"),
        ("", ("observe=true",), r"observe is without effect: there are neither rules \(--rules\)"),
        ("", ("on.failure=pass",), "on.failure is without effect"),
        ("", ("audit.dir=", "metadata.max.age.ms=200"), "metadata.max.age.ms is without effect"),
        ("", ("ssl.client.auth=required",), "ssl.client.auth is without effect: security.protocol says"),
    ],
)
def test_mistakes(text: str, settings: tuple[str, ...], said: str) -> None:
    """A key that is unknown or wrong is named with its place."""
    with pytest.raises(ConfigurationError, match=said):
        loaded(text, *settings)


@pytest.mark.parametrize("upstream", ["", "kafka-1", "kafka-1:0", "kafka-1:70000"])
def test_no_brokers_to_begin_with(upstream: str) -> None:
    """Text that is no list of addresses is refused before anything starts."""
    with pytest.raises(ConfigurationError):
        loaded(upstream=upstream)


def test_options_that_name_nothing() -> None:
    """An empty option is a mistake, and not a gateway that judges nothing: a variable was empty."""
    with pytest.raises(ConfigurationError, match="--rules names no file"):
        loaded(rules=("rules.toml", ""))
    with pytest.raises(ConfigurationError, match="--upstream is empty"):
        loaded(upstream=" ,")


def test_an_address_of_ipv6_is_a_host() -> None:
    """Clients may be given an address with colons."""
    assert loaded("advertised.host=fd00::1").broker_host.text == "fd00::1"

"""A gateway's configuration is right, or a sentence says where it is not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.client.configuration import Address
from minicontroller.cluster.errors import ConfigurationError
from minicontroller.gateway.configuration import GatewayConfig, load_gateway_config
from minicontroller.gateway.patterns import HostPattern, PortRange
from tests.cli.command import complaint

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
        ("upstream.bootstrap.servers=x:1", (), "the option --upstream names the brokers"),
        ("upstream.security.protocol=TLS", (), "security.protocol must be one of"),
        ("", ("security.protocol=SASL_SSL",), "must be one of PLAINTEXT, SSL. The gateway relays logins to the broker"),
        ("", ("max.connections=many",), "max.connections"),
        ("", ("route.by=name",), "route.by must be one of port, sni"),
        ("", ("route.by=sni",), "route.by=sni needs security.protocol=SSL"),
        (SNI, ("advertised.host=b",), r"needs advertised\.host with \$\(nodeId\), such as"),
        (SNI, ("advertised.host=b$(nodeId)",), r"and advertised\.bootstrap\.host"),
        (SNI, ("advertised.host=b$(nodeId)", "advertised.bootstrap.host=b1"), "is also the name of a broker"),
        (SNI, ("advertised.host=b$(nodeId):0", "advertised.bootstrap.host=b"), "advertised.host has a port that is no"),
        (SNI, ("advertised.host=b$(nodeId):x", "advertised.bootstrap.host=b"), "advertised.host has a port that is no"),
        (SNI, ("advertised.host=b $(nodeId)", "advertised.bootstrap.host=b"), "must be a name of letters, digits"),
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
        ("", ("advertised.host=a b",), "advertised.host must be a name of letters, digits"),
        ("", ("advertised.host=\x1b[31m",), "advertised.host must be a name of letters, digits"),
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


def mistakes(text: str, *settings: str, upstream: str = "kafka-1:9092") -> list[str]:
    with pytest.raises(ConfigurationError) as fault:
        loaded(text, *settings, upstream=upstream)
    return str(fault.value).split("\n")


def test_all_mistakes_at_once() -> None:
    """Mistakes of the file, of --set, of the way up, of the listeners and of what a node knows are
    reported by one start, each with its place; what only follows from another one is left out.
    """
    text = """route.by=name
upstream.request.timeout.ms=soon
upstream.security.protocl=SSL
upstream.ssl.truststore.location=authority.pem
broker.ports=0-2
max.connections=many
advertised.host=a b
"""
    assert mistakes(text, "gateway.id=-1", "observe", upstream="k,l:0") == [
        "--set observe: write it as key=value.",
        "gateway.properties, line 3: upstream.security.protocl is no key of a gateway. Do you mean upstream.security.protocol?",
        "gateway.properties, line 2: upstream.request.timeout.ms is a number of milliseconds.",
        "--upstream: 'k' is not HOST:PORT (an IPv6 address stands in brackets: [::1]:9092).",
        "--upstream: 'l:0' is not HOST:PORT (an IPv6 address stands in brackets: [::1]:9092).",
        "gateway.properties, line 1: route.by must be one of port, sni.",
        "gateway.properties, line 7: advertised.host must be a name of letters, digits, dots and hyphens, which may contain $(nodeId).",
        "--set gateway.id: gateway.id must be a whole number from 0 on.",
        "gateway.properties, line 6: Invalid value many for configuration max.connections: Not a number of type INT.",
        "gateway.properties, line 5: broker.ports lists ids of brokers with the port of the first one, as in 0-2:19093,100:19200.",
    ]


def test_all_mistakes_of_the_identity_at_once() -> None:
    """So are those of logins, of brokers and of controllers; a key that both use is told once."""
    text = """identity=envelope
security.protocol=SASL_PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
upstream.security.protocol=SASL_SSL
upstream.sasl.mechanism=GSSAPI
upstream.ssl.truststore.location=/none
upstream.controllers=c
"""
    assert [mistake.partition(" (")[0] for mistake in mistakes(text)] == [
        "gateway.properties, line 5: upstream.sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512: other mechanisms are not supported.",
        "upstream.sasl.jaas.config is missing: it has a login module with a username and a password.",
        "gateway.properties, line 6: upstream.ssl.truststore.location names a file that cannot be read: /none: No such file or directory.",
        "identity.credentials.file is missing: the brokers ask for a login, and this file names the user for each client.",
        "identity.scram.file is missing: it names the users who log in by SCRAM.",
        "gateway.properties, line 7: upstream.controllers: 'c' is not HOST:PORT",
    ]


def test_a_start_names_the_mistakes_of_files_too(tmp_path: Path) -> None:
    """The command names what is wrong with keys, rules, stores and users together."""
    files = {
        "rules.toml": '[[partitions]]\nmax = "many"\n',
        "users": "alice=x\nbob=y\n",
        "gateway.properties": """identity=map
security.protocol=SASL_SSL
sasl.enabled.mechanisms=PLAIN
ssl.keystore.location=none.pem
identity.credentials.file=users
upstream.security.protocol=SASL_PLAINTEXT
upstream.sasl.mechanism=PLAIN
upstream.sasl.jaas.config=M required username=g password=g;
on.failure=perhaps
http.listen=everywhere
""",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    options = ("--upstream", "k:1", "--config", "gateway.properties", "--rules", "rules.toml")
    told = complaint("gateway", *options, folder=tmp_path).split("\n")
    for said in (
        "gateway.properties, line 9: on.failure must be one of refuse, pass.",
        "users, line 1: this is not a login module",
        "users, line 2: this is not a login module",
        "ssl.keystore.location",
        "rules.toml:2:1: ",
        "http.listen",
    ):
        assert any(said in line for line in told), (said, told)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("upstream.security.protocl", "is no key of a gateway. Do you mean upstream.security.protocol?"),
        ("upstream.controller.client.di", "is no key of a gateway. Do you mean upstream.controller.client.id?"),
        ("upstream.controllersx", "is no key of a gateway. Do you mean upstream.controllers?"),
        ("upstream.group.id", "is no key of a gateway."),
        ("upstream.ssl.engine.factory.class", "is not supported: leave it out."),
        ("upstream.controller.bootstrap.servers", "upstream.controllers names the controllers."),
        (
            "upstream.ssl.truststore.location",
            "without effect: upstream.security.protocol says that connections have no TLS",
        ),
        ("upstream.sasl.mechanism", "without effect: upstream.security.protocol says that connections have no login"),
        ("audit.dri", "is no key of a gateway. Do you mean audit.dir?"),
        ("log.dirs", "is no key of a gateway."),
    ],
)
def test_a_key_that_would_not_be_followed(key: str, said: str) -> None:
    """Whatever is configured is carried out or refused: no key of a gateway is passed over."""
    (told,) = [each for each in mistakes(f"\n{key}=x\n") if "identity" not in each]
    assert told.startswith(f"gateway.properties, line 2: {key} ") and said in told


def test_keys_of_a_client_that_change_nothing() -> None:
    """A key of Kafka's clients for which the gateway has no use is accepted, because files for them
    have it; a key that is repeated is a warning.
    """
    config = loaded("upstream.retries=3\nupstream.metadata.max.age.ms=5\nupstream.retries=4\n")
    assert config.warnings == (
        "gateway.properties, line 3: upstream.retries stands on line 1 already; this one holds.",
    )


def test_a_key_without_what_it_needs() -> None:
    """A key of a log or a port that the gateway does not have is a warning, as at a node."""
    assert loaded("observe=false\n").node.warnings == ()
    (warning,) = loaded("audit.flush=always\n").node.warnings
    assert warning == "gateway.properties, line 1: audit.flush has no effect without audit.dir."


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

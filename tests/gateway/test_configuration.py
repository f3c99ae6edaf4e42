"""A gateway's configuration is right, or a sentence says where it is not."""

import pytest

from minicontroller.client.configuration import Address
from minicontroller.controller.errors import ConfigurationError
from minicontroller.gateway.configuration import GatewayConfig, load_gateway_config

HERE = Address("127.0.0.1", 19092)


def loaded(text: str = "", *settings: str, upstream: str = "kafka-1:9092", listen: Address = HERE) -> GatewayConfig:
    return load_gateway_config(text, "gateway.properties", settings, upstream=upstream, listen=listen)


def test_options_are_enough() -> None:
    """Without any key, clients are given the address that is listened at."""
    config = loaded(upstream="kafka-1:9092,[::1]:9093")
    assert config.upstream.bootstrap_servers == (Address("kafka-1", 9092), Address("::1", 9093))
    assert (config.listen, config.advertised_host) == (HERE, "127.0.0.1")


def test_the_keys() -> None:
    """The way up has the keys of a client, and an option of the command overrides the file."""
    text = "advertised.host=gateway.example.com\nupstream.client.id=g\nupstream.request.timeout.ms=5000\n"
    config = loaded(text, "upstream.client.id=of the command")
    assert config.advertised_host == "gateway.example.com"
    assert config.upstream.client_id == "of the command"
    assert config.upstream.request_timeout_seconds == 5.0


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_everywhere_is_no_address_for_clients(host: str) -> None:
    """A gateway that listens everywhere has to be told which host clients are given."""
    with pytest.raises(ConfigurationError, match=r"advertised\.host is missing: clients cannot connect to"):
        loaded(listen=Address(host, 19092))
    assert loaded("advertised.host=g", listen=Address(host, 19092)).advertised_host == "g"


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        ("\nadvertised.hots=x", (), r"gateway\.properties, line 2: .*Do you mean advertised\.host\?"),
        ("", ("rules=x",), "--set rules: rules is no key of a gateway"),
        ("upstream.bootstrap.servers=x:1", (), "are the option --upstream"),
        ("upstream.security.protocol=TLS", (), "security.protocol must be one of"),
        ("", ("security.protocol=SASL_SSL",), "must be one of PLAINTEXT, SSL. A login passes on to the broker"),
        ("", ("max.connections=many",), "max.connections"),
    ],
)
def test_mistakes(text: str, settings: tuple[str, ...], said: str) -> None:
    """A key that is unknown or wrong is named with its place."""
    with pytest.raises(ConfigurationError, match=said):
        loaded(text, *settings)


@pytest.mark.parametrize("upstream", ["", "kafka-1", "kafka-1:0", "kafka-1:70000"])
def test_no_brokers_to_begin_with(upstream: str) -> None:
    """What is no list of addresses is refused before anything starts."""
    with pytest.raises(ConfigurationError):
        loaded(upstream=upstream)

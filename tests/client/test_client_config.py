"""A client's properties file, and whom one becomes by it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from minicontroller.client.configuration import Address, load_client_config, parse_addresses
from minicontroller.cluster.errors import ConfigurationError
from tests.cli.command import call, complaint
from tests.support.cluster import MiniCluster, running_cluster

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SASL = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
PASSWORD = "planted-secret"


def read(text: str) -> object:
    return load_client_config(text, "client.properties", bootstrap=None, default_bootstrap="127.0.0.1:9092")


def test_addresses_of_every_kind() -> None:
    """Several addresses, by name, IPv4 and IPv6, with spaces between, are read."""
    assert parse_addresses("node:1, 127.0.0.1:2,[::1]:3,") == (
        Address("node", 1),
        Address("127.0.0.1", 2),
        Address("::1", 3),
    )
    assert str(Address("::1", 3)) == "[::1]:3"


def test_kafkas_own_keys_are_read() -> None:
    """K117-3a: the addresses, the client's name and its times; what changes nothing here is taken
    in silence.
    """
    text = "bootstrap.servers=a:1\nclient.id=me\nrequest.timeout.ms=1500\nretry.backoff.ms=10\nmetadata.max.age.ms=5\n"
    config = load_client_config(text, "client.properties", bootstrap=None, default_bootstrap="b:2")
    assert (config.bootstrap_servers, config.client_id) == ((Address("a", 1),), "me")
    assert (config.request_timeout_seconds, config.retry_backoff_seconds, config.warnings) == (1.5, 0.01, ())


def test_an_unknown_key_is_a_warning_with_its_line() -> None:
    """Kafka warns, too: a file may have been written for a newer client. What was probably meant is
    named.
    """
    text = "\nclient.di=me\nssl.trustore.location=a.pem\nnonsense=1\n"
    config = load_client_config(text, "client.properties", bootstrap="a:1", default_bootstrap="b:2")
    assert config.warnings == (
        "client.properties, line 2: Kafka's clients have no key client.di; did you mean client.id?",
        "client.properties, line 3: Kafka's clients have no key ssl.trustore.location; did you mean ssl.truststore.location?",
        "client.properties, line 4: Kafka's clients have no key nonsense.",
    )


def test_what_is_not_followed_is_a_warning() -> None:
    """A key that would change whom Kafka's client trusts, or what a value means, is not passed over
    in silence.
    """
    text = "ssl.engine.factory.class=TLS_AES_128_GCM_SHA256\nconfig.providers=file\nconfig.providers.file.class=X\n"
    config = load_client_config(text, "client.properties", bootstrap="a:1", default_bootstrap="b:2")
    assert [warning.partition(": ")[2] for warning in config.warnings] == [
        "ssl.engine.factory.class is not supported by this client.",
        "config.providers is not supported by this client.",
        "config.providers.file.class is not supported by this client.",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("request.timeout.ms=soon", "line 1: request.timeout.ms is a number of milliseconds"),
        ("security.protocol=SASL", "security.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI", "line 2: sasl.mechanism must be one of PLAIN"),
        (f"{SASL}sasl.jaas.config={LOGIN} password={PASSWORD}", "line 3: sasl.jaas.config cannot be read"),
        (f"{SASL}sasl.jaas.config={LOGIN} password={PASSWORD};", "line 3: sasl.jaas.config lacks a username"),
        ("bootstrap.servers=,", "bootstrap.servers is empty"),
    ],
)
def test_a_mistake_is_a_sentence_without_secrets(text: str, said: str) -> None:
    """File, line, key and what to do; never a value that may be a password."""
    with pytest.raises(ConfigurationError) as raised:
        read(text)
    assert said in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    """One run names every mistake of a file, each on a line of its own; what is doubtful is said by
    every command that reads such a file.
    """
    (tmp_path / "client.properties").write_text(
        "bootstrap.servers=a,b:0\nrequest.timeout.ms=soon\nretry.backoff.ms=x\nsecurity.protocol=SASL_SSL\n"
        "sasl.mechanism=GSSAPI\nsasl.jaas.config=M\nssl.truststore.location=none\nssl.keystore.location=no\n"
    )
    options = ("--command-config", "client.properties")
    told = complaint("topics", "list", *options, folder=tmp_path, code=2).split("\n")
    assert [line.partition(": ")[2].partition(" ")[0].rstrip(":") for line in told] == [
        *("request.timeout.ms", "sasl.mechanism", "bootstrap.servers", "bootstrap.servers", "sasl.jaas.config"),
        *("ssl.truststore.location", "ssl.keystore.location", "retry.backoff.ms"),
    ]
    (tmp_path / "client.properties").write_text("security.protocl=SSL\n")
    warned = call("ping", "127.0.0.1:1", *options, folder=tmp_path).stderr.split("\n")[0]
    assert warned.endswith("no key security.protocl; did you mean security.protocol?")


@pytest.fixture(scope="module")
def secured() -> Iterator[MiniCluster]:
    """Its clients authenticate by PLAIN."""
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
        "listener.name.plaintext.plain.sasl.jaas.config": f'{LOGIN} user_alice="{PASSWORD}";',
    }
    with running_cluster(brokers=1, settings=settings) as cluster:
        yield cluster


def test_whoever_is_known_is_let_in(secured: MiniCluster, tmp_path: Path) -> None:
    """A client authenticates by SASL/PLAIN with the keys that Kafka's own tools take."""
    login = f'sasl.jaas.config={LOGIN} username="alice" password="{PASSWORD}";\n'
    (tmp_path / "client.properties").write_text(f"bootstrap.servers={secured.bootstrap}\n{SASL}{login}")
    outcome = call("topics", "create", "a", "--command-config", "client.properties", folder=tmp_path)
    assert (outcome.code, outcome.stderr) == (0, "")


def test_whoever_is_not_known_is_told_so(secured: MiniCluster, tmp_path: Path) -> None:
    """A wrong password is a sentence and code 3, and stands in no output."""
    login = f'sasl.jaas.config={LOGIN} username="alice" password="{PASSWORD}-not";\n'
    (tmp_path / "client.properties").write_text(f"bootstrap.servers={secured.bootstrap}\n{SASL}{login}")
    outcome = call("topics", "list", "--command-config", "client.properties", folder=tmp_path)
    assert (outcome.code, outcome.stdout) == (3, "")
    assert "does not accept us as 'alice'" in outcome.stderr
    assert PASSWORD not in outcome.stderr

"""The administrative client at a real Kafka 3.9.1 that authenticates its clients, over TLS and
without.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from minicontroller.client.admin_client import AdminClient
from minicontroller.client.configuration import load_client_config
from minicontroller.client.errors import ClusterUnreachable
from tests.cli.command import call
from tests.client.secured_kafka import (
    LOGIN,
    MECHANISMS,
    PASSWORD,
    PLAIN_PASSWORD,
    PLAIN_USER,
    USER,
    SecuredKafka,
    running_secured_kafka,
)
from tests.support.certificates import Authority

pytestmark = pytest.mark.slow

LET_IN = "let in"


@pytest.fixture(scope="module")
def kafka() -> Iterator[SecuredKafka]:
    """One broker, with a listener for each way of being let in."""
    with running_secured_kafka() as secured:
        yield secured


def tls(kafka: SecuredKafka, protocol: str = "SSL") -> str:
    return f"security.protocol={protocol}\nssl.truststore.type=PEM\nssl.truststore.location={kafka.authority.file}\n"


def login(mechanism: str, user: str = USER, password: str = PASSWORD) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    if mechanism == "PLAIN":
        user, password = user.replace(USER, PLAIN_USER), password.replace(PASSWORD, PLAIN_PASSWORD)
    return f'sasl.mechanism={mechanism}\nsasl.jaas.config={LOGIN}.{module} required username="{user}" password="{password}";\n'


async def attempt(kafka: SecuredKafka, listener: str, text: str) -> str:
    """What comes of a client with this configuration: a sentence, unless it is let in."""
    config = load_client_config(text, "client.properties", bootstrap=kafka.address(listener), default_bootstrap="")
    try:
        async with AdminClient.connect(config) as admin:
            seen = await admin.describe_cluster()
    except ClusterUnreachable as error:
        return str(error)
    assert [broker.port for broker in seen.brokers] == [kafka.ports[listener]]
    return LET_IN


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("listener", "protocol"), [("LOGIN", "SASL_PLAINTEXT"), ("BOTH", "SASL_SSL")])
def test_the_command_does_its_work(
    kafka: SecuredKafka, tmp_path: Path, listener: str, protocol: str, mechanism: str
) -> None:
    """By each mechanism, with TLS and without: a topic is created, described and deleted. Kafka
    takes names with `=` and `,`, and passwords as they are: SASLprep would change this one.
    """
    text = tls(kafka, protocol) + login(mechanism) + f"bootstrap.servers={kafka.address(listener)}\n"
    (tmp_path / "client.properties").write_text(text)
    config = ("--command-config", "client.properties")
    topic = f"{listener}-{mechanism}"
    made = call("topics", "create", topic, "--partitions", "2", *config, folder=tmp_path)
    assert made == (0, f"{topic}: created, partitions 2, replication factor 1\n", "")
    assert call("topics", "describe", topic, *config, folder=tmp_path).stdout.startswith(f"{topic}: 2 partitions")
    assert call("topics", "delete", topic, *config, folder=tmp_path) == (0, f"{topic}: deleted\n", "")


async def test_tls_without_a_login(kafka: SecuredKafka) -> None:
    """SSL: the certificate of Kafka is checked, and nobody asks who we are."""
    assert await attempt(kafka, "TLS", tls(kafka)) == LET_IN


async def test_a_certificate_of_ours(kafka: SecuredKafka, tmp_path: Path) -> None:
    """Where Kafka wants one it gets the one of ssl.keystore.location; without it, or with a
    stranger's, that key is named.
    """
    ours = kafka.authority.issue("client", "client.example", password="locked")
    keystore = "ssl.keystore.type=PEM\nssl.key.password=locked\nssl.keystore.location="
    assert await attempt(kafka, "MUTUAL", f"{tls(kafka)}{keystore}{ours}\n") == LET_IN
    stranger = Authority(tmp_path).issue("client", "client.example")
    for more in ("", f"{keystore}{stranger}\n"):
        said = await attempt(kafka, "MUTUAL", tls(kafka) + more)
        assert "it wants a certificate of the client that it trusts" in said
        assert said.endswith("ssl.keystore.location names ours.")


async def test_versions_of_tls(kafka: SecuredKafka) -> None:
    """`ssl.enabled.protocols` is followed: a listener of TLSv1.3 alone lets in who has it."""
    assert await attempt(kafka, "NEWEST", tls(kafka) + "ssl.enabled.protocols=TLSv1.2,TLSv1.3\n") == LET_IN
    said = await attempt(kafka, "NEWEST", tls(kafka) + "ssl.enabled.protocols=TLSv1.2\n")
    assert said.endswith("it speaks no version of TLS that is allowed here (ssl.enabled.protocols).")


@pytest.mark.parametrize(
    ("listener", "protocol", "mechanism", "said"),
    [
        (
            "TLS",
            "PLAINTEXT",
            "",
            "TLS arrived on a connection without TLS: only one end has a security protocol with SSL",
        ),
        ("BOTH", "SASL_PLAINTEXT", "PLAIN", "TLS arrived on a connection without TLS"),
        ("PLAINTEXT", "SSL", "", "as a listener does whose security protocol is not SSL or SASL_SSL."),
        ("LOGIN", "PLAINTEXT", "", "if the listener requires authentication, set security.protocol and sasl.mechanism"),
        ("BOTH", "SSL", "", "if the listener requires authentication, set security.protocol and sasl.mechanism"),
        (
            "PLAINTEXT",
            "SASL_PLAINTEXT",
            "PLAIN",
            "nobody authenticates at this listener: its security protocol is one without",
        ),
        ("TLS", "SASL_SSL", "SCRAM-SHA-256", "nobody authenticates at this listener"),
        (
            "ONLY512",
            "SASL_PLAINTEXT",
            "SCRAM-SHA-256",
            "does not take the SASL mechanism SCRAM-SHA-256; it offers SCRAM-SHA-512.",
        ),
        ("ELSEWHERE", "SSL", "", "its certificate is another host's (IP address mismatch"),
    ],
)
async def test_two_who_do_not_speak_alike(
    kafka: SecuredKafka, listener: str, protocol: str, mechanism: str, said: str
) -> None:
    """Each way of asking a listener in another security protocol than its own has a sentence that
    says so.
    """
    text = tls(kafka, protocol) + (login(mechanism) if mechanism else "")
    outcome = await attempt(kafka, listener, text)
    assert said in outcome
    assert kafka.address(listener) in outcome


async def test_an_unknown_authority_is_not_trusted(kafka: SecuredKafka, tmp_path: Path) -> None:
    """Kafka's certificate is not believed where another authority is trusted, nor by default."""
    other = tls(kafka).replace(str(kafka.authority.file), str(Authority(tmp_path).file))
    for text in (other, "security.protocol=SSL\n"):
        assert "its certificate is not trusted (" in await attempt(kafka, "TLS", text)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [(USER, "guessed"), ("mallory", PASSWORD)])
async def test_a_wrong_password_is_told_in_kafkas_words(
    kafka: SecuredKafka, mechanism: str, user: str, password: str
) -> None:
    """A wrong password is told in Kafka's words, and neither password is in the sentence."""
    said = await attempt(kafka, "LOGIN", tls(kafka, "SASL_PLAINTEXT") + login(mechanism, user, password))
    shown = PLAIN_USER if (mechanism, user) == ("PLAIN", USER) else user
    assert f"it does not accept us as {shown!r}: Authentication failed" in said
    assert not [secret for secret in (PASSWORD, PLAIN_PASSWORD, "guessed") if secret in said]

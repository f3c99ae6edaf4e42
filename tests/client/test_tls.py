"""TLS by Kafka's own keys: whom the client trusts, as whom it comes, and what it says when it is
not to be.
"""

import ssl
import subprocess
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import trio

from minicontroller.client.admin_client import AdminClient
from minicontroller.client.configuration import load_client_config
from minicontroller.client.errors import ClusterUnreachable
from minicontroller.cluster.errors import ConfigurationError
from minicontroller.protocol.api_keys import ApiKey
from tests.client.fake_node import HOST, FakeNode, metadata, with_nodes
from tests.support.certificates import Authority, server_context

PASSWORD = "planted-secret"
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
LET_IN = "let in"
SSL = "security.protocol=SSL\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> ssl.SSLContext:
    """The TLS of a server that is who it says it is."""
    return server_context(authority.issue("server", HOST))


def trusting(authority: Authority) -> str:
    return f"{SSL}ssl.truststore.type=PEM\nssl.truststore.location={authority.file}\n"


def as_property(pem: str) -> str:
    """A value over several lines."""
    return pem.strip().replace("\n", "\\n\\\n")


LOGIN_WITHOUT_TLS = """
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="x";
"""


async def attempt(text: str, tls: ssl.SSLContext | None, *, host: str = HOST) -> str:
    """What comes of a client with this configuration at a node with this TLS: a sentence, unless it
    is let in.
    """
    node = FakeNode({}, tls)
    node.answers[ApiKey.METADATA] = lambda _: metadata(1, {1: node})
    outcome = ""

    async def test() -> None:
        nonlocal outcome
        config = load_client_config(text, "client.properties", bootstrap=f"{host}:{node.port}", default_bootstrap="")
        assert config.warnings == ()
        try:
            async with AdminClient.connect(config) as admin:
                await admin.list_topics()
            outcome = LET_IN
        except ClusterUnreachable as error:
            outcome = str(error)

    await with_nodes([node], test)
    return outcome


# ------------------------------------------------------------------ whom it trusts


async def test_an_authority_of_a_file_is_trusted(authority: Authority, server: ssl.SSLContext) -> None:
    """`ssl.truststore.location` in PEM: a server with a certificate of that authority is asked."""
    assert await attempt(trusting(authority), server) == LET_IN


@pytest.mark.parametrize("joined", [False, True], ids=["lines", "one line"])
async def test_an_authority_of_the_configuration_is_trusted(
    authority: Authority, server: ssl.SSLContext, *, joined: bool
) -> None:
    """`ssl.truststore.certificates` holds the certificate itself, with its lines or, as Java reads
    it too, without.
    """
    pem = authority.file.read_text()
    value = pem.strip().replace("\n", " ") if joined else as_property(pem)
    assert await attempt(f"{SSL}ssl.truststore.type=PEM\nssl.truststore.certificates={value}\n", server) == LET_IN


async def test_whatever_is_in_the_truststore_is_an_anchor(authority: Authority, tmp_path: Path) -> None:
    """As in Java, an authority whose own issuer is not known is trusted as it stands in the
    truststore.
    """
    child = Authority(tmp_path, "child", parent=authority)
    assert await attempt(trusting(child), server_context(child.issue("server", HOST))) == LET_IN


async def test_an_unknown_authority_is_not_trusted(server: ssl.SSLContext, tmp_path: Path) -> None:
    """Without a truststore the system's authorities hold, with one its own: neither knows this
    server, and the key is named.
    """
    for text in (SSL, trusting(Authority(tmp_path))):
        said = await attempt(text, server)
        assert "its certificate is not trusted (" in said
        assert said.endswith("ssl.truststore.location names whom to trust.")


async def test_a_certificate_of_another_host_is_not_believed(authority: Authority) -> None:
    """The name is compared unless ssl.endpoint.identification.algorithm is empty, as in Kafka."""
    elsewhere = server_context(authority.issue("elsewhere", "elsewhere.example"))
    said = await attempt(trusting(authority), elsewhere)
    assert "its certificate is another host's" in said
    assert "'127.0.0.1'" in said
    unchecked = trusting(authority) + "ssl.endpoint.identification.algorithm=\n"
    assert await attempt(unchecked, elsewhere) == LET_IN


async def test_a_name_is_compared_as_it_was_typed(authority: Authority) -> None:
    """A certificate for `localhost` is for who asked for `localhost`, not for who asked for its
    address.
    """
    named = server_context(authority.issue("named", "localhost"))
    assert "another host's" in await attempt(trusting(authority), named)
    assert "another host's" not in await attempt(trusting(authority), named, host="localhost")


async def test_an_expired_certificate_is_told_as_such(authority: Authority) -> None:
    """An expired certificate is not told as one that a truststore could mend."""
    expired = server_context(authority.issue("expired", HOST, until=LONG_AGO))
    assert (await attempt(trusting(authority), expired)).endswith("its certificate has expired.")


# ------------------------------------------------------------------ as whom it comes


@pytest.mark.parametrize("password", [None, PASSWORD], ids=["open key", "locked key"])
@pytest.mark.parametrize("inline", [False, True], ids=["file", "inline"])
async def test_a_certificate_of_ours_is_shown(authority: Authority, password: str | None, *, inline: bool) -> None:
    """`ssl.keystore.location`, or the chain and the key in the configuration; the key may be locked
    by ssl.key.password.
    """
    keystore = authority.issue("client", "client.example", password=password)
    text = trusting(authority) + "ssl.keystore.type=PEM\n"
    if inline:
        key, mark, chain = keystore.read_text().partition("-----BEGIN CERTIFICATE")
        text += f"ssl.keystore.key={as_property(key)}\nssl.keystore.certificate.chain={as_property(mark + chain)}\n"
    else:
        text += f"ssl.keystore.location={keystore}\n"
    text += "" if password is None else f"ssl.key.password={password}\n"
    assert await attempt(text, server_context(authority.issue("strict", HOST), clients=authority)) == LET_IN


# ------------------------------------------------------------------ two who do not speak alike


async def test_tls_at_a_port_without(authority: Authority) -> None:
    """A sentence that names the security protocol, whether the port ends the connection or answers
    in something else.
    """
    assert "security protocol is not SSL or SASL_SSL" in await attempt(trusting(authority), None)

    async def http(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, http, 0, host=HOST))
        port = listener.socket.getsockname()[1]
        for text, said in (
            (trusting(authority), "does not speak TLS"),
            ("", "HTTP arrived instead of Kafka's protocol"),
        ):
            config = load_client_config(text, "client.properties", bootstrap=f"{HOST}:{port}", default_bootstrap="")
            with pytest.raises(ClusterUnreachable, match=said):
                async with AdminClient.connect(config) as admin:
                    await admin.list_topics()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("text", ["", LOGIN_WITHOUT_TLS], ids=["nobody", "a user"])
async def test_no_tls_at_a_port_with_it(text: str) -> None:
    """Such a port ends the connection without a word, so that the client has to say what may be
    wrong.
    """

    async def end(stream: trio.SocketStream) -> None:
        await stream.receive_some()

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, end, 0, host=HOST))
        port = listener.socket.getsockname()[1]
        config = load_client_config(text, "client.properties", bootstrap=f"{HOST}:{port}", default_bootstrap="")
        with pytest.raises(ClusterUnreachable, match=r"if the listener has TLS, set security\.protocol to SSL"):
            async with AdminClient.connect(config) as admin:
                await admin.list_topics()
        nursery.cancel_scope.cancel()


async def test_a_handshake_that_never_ends_is_given_up(authority: Authority) -> None:
    """A port that takes a connection and says nothing costs the time that was allowed, no more."""
    text = trusting(authority) + "request.timeout.ms=100\n"

    async def silence(_: trio.SocketStream) -> None:
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, silence, 0, host=HOST))
        port = listener.socket.getsockname()[1]
        config = load_client_config(text, "client.properties", bootstrap=f"{HOST}:{port}", default_bootstrap="")
        with pytest.raises(ClusterUnreachable, match=r"does not answer within 0\.1 seconds"):
            async with AdminClient.connect(config) as admin:
                await admin.list_topics()
        nursery.cancel_scope.cancel()


# ------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("security.protocol=TLS", "line 1: security.protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL."),
        (
            f"{SSL}ssl.truststore.location=FOLDER@/none.pem",
            "names a file that cannot be read: FOLDER@/none.pem: No such file",
        ),
        (f"{SSL}ssl.truststore.location=FOLDER@", "names a file that cannot be read: FOLDER@: Is a directory"),
        (f"{SSL}ssl.truststore.location=PEM@", "is in PEM, so that its type must be PEM"),
        (f"{SSL}ssl.truststore.type=PEM\nssl.truststore.location=JKS@", "holds nothing in PEM"),
        (f"{SSL}ssl.truststore.type=PEM\nssl.truststore.location=EMPTY@", "holds no certificate that can be read"),
        (f"{SSL}ssl.truststore.type=BKS\nssl.truststore.location=JKS@", "must be one of PEM, JKS, PKCS12"),
        (f"{SSL}ssl.truststore.certificates=EMPTY@", "ssl.truststore.type must be PEM"),
        (f"{SSL}ssl.truststore.type=PEM\nssl.truststore.location=PEM@\nssl.truststore.certificates=x", "are both set"),
        (f"{SSL}ssl.endpoint.identification.algorithm=ldaps", "is https, or empty"),
        (f"{SSL}ssl.enabled.protocols=TLSv1,SSLv3", "allows neither TLSv1.2 nor TLSv1.3"),
        (f"{SSL}ssl.keystore.type=PEM\nssl.keystore.location=PEM@", "must hold a certificate and the private key"),
        (f"{SSL}ssl.keystore.key={PASSWORD}", "has no certificate beside it"),
        (f"{SSL}ssl.keystore.type=PEM\nssl.keystore.location=LOCKED@", "ssl.key.password is missing"),
        (
            f"{SSL}ssl.keystore.type=PEM\nssl.keystore.location=LOCKED@\nssl.key.password={PASSWORD}-not",
            "line 4: ssl.key.password does not open the private key",
        ),
    ],
)
def test_a_mistake_is_a_sentence_without_secrets(authority: Authority, tmp_path: Path, text: str, said: str) -> None:
    """A mistake is told with file, line, key and what to do, and with neither a
    password nor a key.
    """
    (tmp_path / "store.jks").write_bytes(b"\xfe\xed\xfe\xed\x00")
    (tmp_path / "empty.pem").write_text("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n")
    locked = authority.issue("locked", "client.example", password=PASSWORD)
    places = {"FOLDER": tmp_path, "PEM": authority.file, "JKS": tmp_path / "store.jks", "LOCKED": locked}
    places["EMPTY"] = tmp_path / "empty.pem"
    for place, path in places.items():
        text = text.replace(f"{place}@", str(path))
    with pytest.raises(ConfigurationError) as raised:
        load_client_config(text, "client.properties", bootstrap="a:1", default_bootstrap="")
    assert said.replace("FOLDER@", str(tmp_path)) in str(raised.value)
    assert str(raised.value).startswith("client.properties")
    assert PASSWORD not in str(raised.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.parametrize("store", ["truststore", "keystore"])
async def test_a_store_of_java_is_read(authority: Authority, tmp_path: Path, store: str, kind: str) -> None:
    """What keytool writes as PKCS #12 is read, also where the configuration calls it JKS, which is
    the default. Its older format is refused with the command that converts it.
    """
    file = tmp_path / f"{store}.{kind.lower()}"
    own = make_store(authority, file, store, kind)
    server = server_context(authority.issue("server", HOST))
    if store == "keystore":
        server.verify_mode = ssl.CERT_REQUIRED
        server.load_verify_locations(cadata=own)
    begin = trusting(authority) if store == "keystore" else SSL
    text = f"{begin}ssl.{store}.password={PASSWORD}\nssl.{store}.location="
    if kind == "JKS":
        with pytest.raises(ConfigurationError, match=f"ssl.{store}.location is a store of type JKS") as raised:
            load_client_config(f"{text}{file}\n", "client.properties", bootstrap="a:1", default_bootstrap="")
        way = str(raised.value).split("`")[1]
        run = partial(subprocess.run, ["sh", "-ec", way], input=f"{PASSWORD}\n" * 3, text=True, check=True)
        await trio.to_thread.run_sync(partial(run, capture_output=True))
        file = Path(f"{file}.p12")
    for type_key in ("", f"ssl.{store}.type=PKCS12\n"):
        assert await attempt(f"{text}{file}\n{type_key}", server) == LET_IN


def make_store(authority: Authority, file: Path, store: str, kind: str) -> str:
    """By Java's own tool; returns the certificate in a key store."""
    keytool = ["keytool", "-keystore", str(file), "-storetype", kind, "-storepass", PASSWORD, "-alias", "a"]
    if store == "truststore":
        what = ["-importcert", "-noprompt", "-file", str(authority.file)]
    else:
        what = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=client", "-keypass", PASSWORD]
    subprocess.run([*keytool, *what], check=True, capture_output=True)
    if store == "truststore":
        return ""
    return subprocess.run([*keytool, "-exportcert", "-rfc"], check=True, capture_output=True, text=True).stdout

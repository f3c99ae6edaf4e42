"""The TLS of a listener: who is let in, what becomes of those who are not, and what a handshake may
cost.
"""

import contextlib
import resource
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.network import tls
from minicontroller.network.limits import ConnectionLimits
from minicontroller.network.tls import RECORD_BYTES, RECORDS_A_READ, TlsTransport, start_tls
from minicontroller.network.transport import Disconnected
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.process.settings.node_config import NodeConfig
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataResponse
from minicontroller.security import listener_tls
from minicontroller.security.caller import Listener
from minicontroller.security.listeners import server_listeners
from minicontroller.security.mechanisms import LoginSources
from tests.support.certificates import Authority
from tests.support.small_server import Client, Served, serving, until

HOST = "127.0.0.1"
ALL = MetadataRequest(topics=None)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


def tls_listener(authority: Authority, **settings: str) -> Listener:
    return server_listeners(tls_config(authority, **settings), LoginSources())[0]


def tls_config(authority: Authority, **settings: str) -> NodeConfig:
    """The first listener has TLS by Kafka's keys; those of `settings` have underscores for dots."""
    keys = {
        "listeners": "SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("server", HOST, "localhost")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
    return config_from_mapping(keys)


def client_context(authority: Authority, keystore: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.file))
    if keystore is not None:
        context.load_cert_chain(keystore)
    return context


async def open_tls(served: Served, context: ssl.SSLContext) -> Client:
    stream = await trio.open_tcp_stream(HOST, served.server.ports["SSL"])
    return Client(trio.SSLStream(stream, context, server_hostname="localhost", https_compatible=True))


async def without_tls(served: Served) -> Client:
    return Client(await trio.open_tcp_stream(HOST, served.server.ports["SSL"]))


async def told(served: Served, context: ssl.SSLContext) -> str | None:
    """The principal by which a client is answered, or `nobody` if it is not."""
    async with await open_tls(served, context) as client:
        try:
            await client.ask(1, ALL, MetadataResponse)
        except (trio.BrokenResourceError, EOFError):
            return "nobody"
    return served.node.seen[-1].origin.principal


async def kinds(served: Served) -> Mapping[str, int]:
    failures = served.server.failures.failed_handshakes
    await until(lambda: bool(failures))
    return failures


# ------------------------------------------------------------------ who it is


@pytest.mark.parametrize(
    ("settings", "with_certificate", "without"),
    [
        ({}, None, None),
        ({"ssl_client_auth": "requested"}, "User:OU=client,O=tests", None),
        ({"ssl_client_auth": "required"}, "User:OU=client,O=tests", "nobody"),
        (
            {"ssl_client_auth": "required", "ssl_principal_mapping_rules": "RULE:^OU=(\\w+).*$/$1/U,DEFAULT"},
            "User:CLIENT",
            "nobody",
        ),
        ({"ssl_client_auth": "required", "ssl_principal_mapping_rules": "RULE:^CN=(.*)$/$1/"}, "nobody", "nobody"),
    ],
    ids=["not asked", "requested", "required", "mapped", "mapped to nobody"],
)
async def test_a_certificate_names_its_owner(
    authority: Authority, settings: dict[str, str], with_certificate: str | None, without: str | None
) -> None:
    """A client is who its certificate says, by the rules of the listener, and nobody in particular
    without one; where certificates are required it is not let in without one.
    """
    async with serving(listeners=[tls_listener(authority, **settings)]) as served:
        mine = client_context(authority, authority.issue("client", "client.example"))
        assert await told(served, mine) == with_certificate
        assert await told(served, client_context(authority)) == without


# ------------------------------------------------------------------ who is not let in


async def test_a_failed_handshake_is_counted_by_its_reason(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has a sentence that says what to check, and the metric the kind of failure."""
    stranger = Authority(tmp_path)
    old = client_context(authority, authority.issue("client", "client.example"))
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    cases = (
        ("expired", "has expired", client_context(authority, authority.issue("old", "old.example", until=LONG_AGO))),
        (
            "unknown_authority",
            "ssl.truststore.location of this listener",
            client_context(authority, stranger.issue("s", "s.example")),
        ),
        ("no_certificate", "ssl.client.auth=required", client_context(authority)),
        ("no_common_version", "ssl.enabled.protocols", old),
    )
    listener = tls_listener(authority, ssl_client_auth="required", ssl_enabled_protocols="TLSv1.3")
    for kind, sentence, context in cases:
        async with serving(listeners=[listener]) as served:
            assert await told(served, context) == "nobody"
            assert await kinds(served) == {kind: 1}
        assert sentence in caplog.records[-1].getMessage()
        assert "TLS handshake of 127.0.0.1:" in caplog.records[-1].getMessage()


async def test_a_client_that_does_not_trust_us_is_told_apart(authority: Authority, tmp_path: Path) -> None:
    """Its alert says so, and our sentence names its trust store; it has one, too."""
    async with serving(listeners=[tls_listener(authority)]) as served:
        stream = await trio.open_tcp_stream(HOST, served.server.ports["SSL"])
        with pytest.raises(Disconnected, match=r"is not trusted \(.*ssl\.truststore\.location names whom to trust"):
            await start_tls(stream, client_context(Authority(tmp_path)), "localhost")
        assert await kinds(served) == {"refused_ours": 1}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"\0\0\0\x1a\0\x12\0\3", "is not TLS: "),
        (b"GET / HTTP/1.1\r\n\r\n", "is not TLS but HTTP: "),
        (b"PROXY TCP4 192.0.2.1 192.0.2.2 5 9092\r\n", "is not TLS but a PROXY header: "),
        (b"\r\n\r\n\0\r\nQUIT\n", "is not TLS but a PROXY header: "),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "is not TLS but SSH: "),
        (b"\x16\3\1\xff\xff" + bytes(20), "it began like TLS, and what followed is no handshake (packet length"),
    ],
)
async def test_who_does_not_speak_tls_is_told_apart(
    authority: Authority, sent: bytes, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A client without TLS is the commonest mistake, and has its own kind; what it speaks is
    named.
    """
    async with serving(listeners=[tls_listener(authority)]) as served, await without_tls(served) as client:
        for number in range(len(sent)):
            await client.send(sent[number : number + 1])
        await client.send(sent * 20)
        assert await kinds(served) == {"not_tls": 1}
    assert said in caplog.text


async def test_no_suite_in_common_is_told_apart(authority: Authority) -> None:
    """Java's names of cipher suites hold, and leave the others out."""
    listener = tls_listener(authority, ssl_cipher_suites="TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384")
    async with serving(listeners=[listener]) as served:
        context = client_context(authority)
        assert await told(served, context) is None
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
        assert await told(served, context) == "nobody"
        assert await kinds(served) == {"no_common_cipher": 1}


# ------------------------------------------------------------------ what a handshake may cost


async def test_half_a_handshake_is_given_up(authority: Authority, autojump_clock: MockClock) -> None:
    """Whoever says nothing, or stops in the middle, has ten seconds."""
    async with serving(listeners=[tls_listener(authority)]) as served:
        silent = await trio.open_tcp_stream(HOST, served.server.ports["SSL"])
        half = await trio.open_tcp_stream(HOST, served.server.ports["SSL"])
        await half.send_all(hello(authority)[:100])
        before = trio.current_time()
        await until(lambda: len(served.server.connections) == 2)
        for stream in (half, silent):
            async with Client(stream) as client:
                assert await client.ended()
        assert trio.current_time() - before == 10
        assert served.server.failures.failed_handshakes == {"too_slow": 2}


async def test_a_handshake_without_end_is_ended(authority: Authority) -> None:
    """What a handshake may bring is bounded: certificates without end are not collected."""
    listener = tls_listener(authority, ssl_client_auth="requested")
    async with serving(listeners=[listener]) as served, await without_tls(served) as client:
        record = b"\x16\x03\x01\x40\x00" + b"\x01\x00\xff\xff" + bytes(0x4000 - 4)
        with contextlib.suppress(trio.BrokenResourceError):
            for _ in range(20):
                await client.send(record)
        assert sum((await kinds(served)).values()) == 1


async def test_unfinished_handshakes_make_room_first(authority: Authority) -> None:
    """In a full node whoever has not finished the handshake is closed before anybody else, however
    few connections its address has.
    """
    limits = ConnectionLimits(max_connections=20)
    async with serving(listeners=[tls_listener(authority)], limits=limits) as served:
        port = served.server.ports["SSL"]
        clients = [await open_tls(served, client_context(authority)) for _ in range(15)]
        for client in clients:
            await client.ask(1, ALL, MetadataResponse)
        halves = [await trio.open_tcp_stream(HOST, port, local_address=f"127.0.0.{n}") for n in range(2, 7)]
        await until(lambda: len(served.server.connections) == 20)
        async with await open_tls(served, client_context(authority)) as newcomer:
            await newcomer.ask(1, ALL, MetadataResponse)
        for client in clients:
            await client.ask(1, ALL, MetadataResponse)
            await client.stream.aclose()
        for half in halves:
            await half.aclose()


async def test_a_thousand_half_handshakes_hold_up_nobody(authority: Authority) -> None:
    """Whoever comes behind them is let in and answered."""
    async with serving(listeners=[tls_listener(authority)]) as served:
        start = hello(authority)
        halves = [await trio.open_tcp_stream(HOST, served.server.ports["SSL"]) for _ in range(300)]
        for half in halves:
            await half.send_all(start)
        with trio.fail_after(10):
            assert await told(served, client_context(authority)) is None
        for half in halves:
            await half.aclose()
        await until(lambda: not served.server.connections)


async def test_half_handshakes_by_the_thousand_take_bounded_memory(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL keeps what each has sent, so that the oldest are given up for later ones."""
    monkeypatch.setattr(tls, "MOST_HANDSHAKES", 50)
    begin = b"\x16\x03\x01\x40\x00" + b"\x01\x01\xff\x00" + bytes(0x4000 - 4)
    more = (b"\x16\x03\x01\x40\x00" + bytes(0x4000)) * 6
    async with serving(listeners=[tls_listener(authority)]) as served:
        before = resident_bytes()
        halves = []
        for _ in range(1000):
            halves.append(await trio.open_tcp_stream(HOST, served.server.ports["SSL"]))
            await halves[-1].send_all(begin + more)
        await until(lambda: served.server.failures.failed_handshakes["too_slow"] == 950)
        assert resident_bytes() - before < 80_000_000  # 250 KiB for each of all would be 250 MB
        assert await told(served, client_context(authority)) is None
        for half in halves:
            await trio.aclose_forcefully(half)
        await until(lambda: not served.server.connections)


def resident_bytes() -> int:
    """How much memory this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def hello(authority: Authority) -> bytes:
    """The first bytes of a client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        client_context(authority).wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


# ------------------------------------------------------------------ changes


async def test_new_stores_hold_for_new_connections(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate is taken over when its file has stopped changing; open connections stay, and a
    file that cannot be used changes nothing.
    """
    monkeypatch.setattr(listener_tls, "LOOK_SECONDS", 0.01)
    caplog.set_level("INFO")
    store = tmp_path / "store.pem"
    store.write_bytes(authority.issue("first", "localhost").read_bytes())
    config = tls_config(authority, ssl_keystore_location=str(store))
    (listener, _) = server_listeners(config, LoginSources())
    assert listener.tls is not None
    async with serving(listeners=[listener]) as served, trio.open_nursery() as nursery:
        nursery.start_soon(listener.tls.follow, lambda: config)
        async with await open_tls(served, client_context(authority)) as client:
            await client.ask(1, ALL, MetadataResponse)
            first = shown(client)
            store.write_text("half a file")
            await logged(caplog, "The stores that were read before stay in force")
            assert await shown_to_another(served, authority) == first
            store.write_bytes(authority.issue("first", "localhost", "other.example").read_bytes())
            await logged(caplog, "listener SSL uses the stores as they are now")
            second = await shown_to_another(served, authority)
            assert second != first
            await client.ask(1, ALL, MetadataResponse)
            store.write_bytes(authority.issue("first", "other.example").read_bytes())
            await logged(caplog, "Keystore SubjectAltNames do not match: localhost would be missing")
            store.write_bytes(authority.issue("another", "localhost", "other.example").read_bytes())
            await logged(caplog, "does not match: existing=OU=first,O=tests, new=OU=another,O=tests")
            assert await shown_to_another(served, authority) == second
        nursery.cancel_scope.cancel()


async def logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    with trio.fail_after(20):
        while text not in caplog.text:  # noqa: ASYNC110 - a file is looked at in intervals
            await trio.sleep(0.01)


async def shown_to_another(served: Served, authority: Authority) -> bytes:
    async with await open_tls(served, client_context(authority)) as client:
        await client.ask(1, ALL, MetadataResponse)
        return shown(client)


def shown(client: Client) -> bytes:
    assert isinstance(client.stream, trio.SSLStream)
    certificate: bytes = client.stream.getpeercert(binary_form=True)
    return certificate


async def test_a_certificate_that_ends_soon_is_a_warning(
    authority: Authority, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says so once a day, from thirty days on, and the metric always."""
    soon = datetime.now(UTC) + timedelta(days=3, hours=1)
    store = authority.issue("soon", "localhost", until=soon)
    config = tls_config(authority, ssl_keystore_location=str(store))
    (listener, _) = server_listeners(config, LoginSources())
    assert listener.tls is not None
    assert 3 * 86_400 < listener.tls.seconds_left() < 4 * 86_400
    monkeypatch.setattr(listener_tls, "REMIND_SECONDS", 0.05)
    monkeypatch.setattr(listener_tls, "LOOK_SECONDS", 0.01)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.tls.follow, lambda: config)
        await logged(caplog, "the certificate of listener SSL expires in 3 days")
        caplog.clear()
        await logged(caplog, "the certificate of listener SSL expires in 3 days")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("auth", ["none", "required"])
def test_nodes_have_to_trust_their_own_certificate(authority: Authority, tmp_path: Path, auth: str) -> None:
    """A node whose trust store does not trust its own certificate could connect to no other: as in
    Kafka it does not start. At listeners for clients alone that is right.
    """
    stranger = str(Authority(tmp_path).file)
    settings = {"ssl_truststore_location": stranger, "ssl_client_auth": auth}
    assert tls_listener(authority, **settings).tls is not None
    for more in ({}, {"ssl_endpoint_identification_algorithm": ""}):
        with pytest.raises(ConfigurationError, match="Listener SSL: nodes could not connect to each other"):
            tls_listener(authority, **settings, security_inter_broker_protocol="SSL", **more)
    tls_listener(authority, ssl_client_auth=auth, security_inter_broker_protocol="SSL")


# ------------------------------------------------------------------ renegotiation


async def test_renegotiation_is_refused(authority: Authority) -> None:
    """A client of TLS 1.2 that wants another handshake gets none, which harms nobody."""
    async with serving(listeners=[tls_listener(authority)]) as served:
        command = ["openssl", "s_client", "-tls1_2", "-connect", f"{HOST}:{served.server.ports['SSL']}"]
        done = await trio.run_process(command, stdin=b"R\n", capture_stdout=True, capture_stderr=True, check=False)
        assert b"no renegotiation" in done.stderr
        assert await told(served, client_context(authority)) is None


# ------------------------------------------------------------------ reading


async def test_a_read_takes_few_records(authority: Authority) -> None:
    """However small the records of a stranger are, others have their turn after a few of them; what
    comes in large ones is read at once.
    """
    ours, theirs = trio.socket.socketpair()
    context = tls_listener(authority).tls
    assert context is not None
    reader = TlsTransport(trio.SocketStream(ours), context.server_context())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reader.secure)
        writer = await start_tls(trio.SocketStream(theirs), client_context(authority), "localhost")
    for _ in range(100):
        assert writer.send_nowait(b"x") == 1
    sizes: list[int] = []
    while sum(sizes) < 100:
        sizes.append(len(await reader.receive()))
    assert max(sizes) == RECORDS_A_READ
    whole = b"y" * 4 * RECORD_BYTES
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.send_rest, memoryview(whole))
        sizes.clear()
        while sum(sizes) < len(whole):
            sizes.append(len(await reader.receive()))
    assert max(sizes) > RECORD_BYTES
    reader.close()
    writer.close()

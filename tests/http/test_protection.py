"""The HTTP port where strangers reach it: TLS, and a token."""

import http.client
import json
import ssl
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.network.http.listener import open_site
from minicontroller.network.http.protection import HttpProtection
from minicontroller.process.settings.loading import config_from_mapping
from tests.support.certificates import Authority
from tests.support.cluster import MiniCluster, running_cluster
from tests.support.http import address_of
from tests.support.waiting import until

TOKEN = "planted-token-of-32-characters-xx"
BASE = {"listeners": "PLAINTEXT://127.0.0.1:0", "http.listen": "127.0.0.1:0"}


class Protected:
    """One node whose port has TLS and a token from a file."""

    def __init__(self, cluster: MiniCluster, authority: Authority, token_file: Path) -> None:
        self.cluster = cluster
        self.token_file = token_file
        self._context = ssl.create_default_context(cafile=str(authority.file))

    def status(self, path: str, authorization: str | None = None) -> int:
        headers = {} if authorization is None else {"Authorization": authorization}
        return self.answer(path, headers).status

    def told(self, path: str, headers: dict[str, str]) -> object:
        connection = self.connection()
        connection.request("GET", path, headers=headers)
        said = json.loads(connection.getresponse().read())
        connection.close()
        return said

    def connection(self) -> http.client.HTTPSConnection:
        host, port = address_of(self.cluster)
        return http.client.HTTPSConnection(host, port, timeout=30, context=self._context)

    def answer(self, path: str, headers: dict[str, str]) -> http.client.HTTPResponse:
        connection = self.connection()
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response


@pytest.fixture(scope="module", name="protected")
def protected_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Protected]:
    folder = tmp_path_factory.mktemp("protection")
    authority = Authority(folder)
    token_file = folder / "token"
    token_file.write_text(f"{TOKEN}\n")
    settings = {
        "http.ssl.keystore.location": str(authority.issue("http", "127.0.0.1")),
        "http.bearer.token.file": str(token_file),
    }
    with running_cluster(brokers=1, settings=settings) as cluster:
        yield Protected(cluster, authority, token_file)


def basic(token: str) -> str:
    return f"Basic {b64encode(f'anybody:{token}'.encode()).decode()}"


def test_a_token_opens_every_page(protected: Protected) -> None:
    """A scraper shows it as a bearer, and a browser as a password; the scheme's case is free."""
    for authorization in (f"Bearer {TOKEN}", f"bearer  {TOKEN} ", basic(TOKEN)):
        for path in ("/", "/metrics", "/api/state", "/api/decisions"):
            assert protected.status(path, authorization) == 200
        ready = {"ready": True, "reasons": [], "nodes": [{"node": 1, "ready": True, "reasons": []}]}
        assert protected.told("/health/ready", {"Authorization": authorization}) == ready


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN, basic(""), "Basic !!", f"Digest {TOKEN}"],
)
def test_without_the_token_nothing_is_told(protected: Protected, authorization: str | None) -> None:
    """Whatever is not the token gets 401 on every path but those of health, unknown paths
    included; the live page's events, too.
    """
    for path in ("/", "/metrics", "/api/state", "/events", "/nowhere", "/health", "//health/live"):
        assert protected.status(path, authorization) == 401
    headers = {} if authorization is None else {"Authorization": authorization}
    assert protected.told("/health/live", headers) == {"live": True}
    assert protected.told("/health/ready", headers) == {"ready": True}, "neither the ids of nodes nor reasons"


def test_a_browser_is_asked_for_a_password(protected: Protected) -> None:
    """A 401 names both ways to show the token."""
    challenge = protected.answer("/", {}).headers["WWW-Authenticate"]
    assert challenge == 'Bearer, Basic realm="minicontroller", charset="UTF-8"'


def test_a_redirection_stays_within_tls(protected: Protected) -> None:
    """A path with a slash too many is sent to the right one."""
    answer = protected.answer("/metrics/", {"Authorization": f"Bearer {TOKEN}"})
    host, port = address_of(protected.cluster)
    assert (answer.status, answer.headers["location"]) == (307, f"https://{host}:{port}/metrics")


def test_without_tls_nothing_is_told(protected: Protected) -> None:
    """Who speaks no TLS at a port that has it gets no HTTP."""
    connection = http.client.HTTPConnection(*address_of(protected.cluster), timeout=30)
    connection.request("GET", "/health/live")
    with pytest.raises((http.client.HTTPException, OSError)):
        connection.getresponse()
    connection.close()


def test_nobody_goes_on_listening_by_an_old_token(protected: Protected) -> None:
    """A stream of events has no end of its own; it ends when another token is in force."""
    events = protected.connection()
    events.request("GET", "/events", headers={"Authorization": f"Bearer {TOKEN}"})
    stream = events.getresponse()
    assert stream.status == 200
    assert stream.read1()
    protected.token_file.write_text(f"{TOKEN}-2")
    with suppress(OSError, http.client.IncompleteRead):
        while stream.read1():
            pass
    events.close()
    assert protected.status("/metrics", f"Bearer {TOKEN}") == 401
    protected.token_file.write_text(TOKEN)
    until(lambda: protected.status("/metrics", f"Bearer {TOKEN}") == 200)


def test_a_new_token_takes_over(protected: Protected) -> None:
    """The file is read again when it has changed; one that cannot be a token changes nothing."""
    protected.token_file.write_text("short")
    protected.cluster.wait_for("at least 16 visible characters")
    assert protected.status("/metrics", f"Bearer {TOKEN}") == 200
    protected.token_file.write_text(TOKEN[::-1])
    until(lambda: protected.status("/metrics", f"Bearer {TOKEN[::-1]}") == 200)
    assert protected.status("/metrics", f"Bearer {TOKEN}") == 401
    protected.token_file.write_text(TOKEN)
    until(lambda: protected.status("/metrics", f"Bearer {TOKEN}") == 200)
    assert TOKEN not in protected.cluster.output


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"http.bearer.token": "short"}, "http.bearer.token must be at least 16 visible characters"),
        ({"http.bearer.token": "sixteen blanks in it"}, "http.bearer.token must be at least 16 visible characters"),
        ({"http.bearer.token": TOKEN, "http.bearer.token.file": "x"}, "are both set"),
        ({"http.bearer.token.file": "/none"}, "http.bearer.token.file names a file that cannot be read: /none"),
        ({"http.ssl.keystore.location": "/none"}, "http.ssl.keystore.location names a file that cannot be read: /none"),
        ({"http.ssl.keystore.location": __file__}, "http.ssl.keystore.location must hold a certificate"),
        ({"http.ssl.keystore.location": __file__, "http.ssl.keystore.type": "X"}, "http.ssl.keystore.type must be one"),
    ],
)
def test_a_mistake_ends_the_start(settings: dict[str, str], said: str) -> None:
    """Nothing is served less protected than it was asked for, and no sentence shows the token."""
    with pytest.raises(ConfigurationError) as raised:
        HttpProtection(config_from_mapping(BASE | settings))
    assert said in str(raised.value)
    assert TOKEN not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"http.listen": "0.0.0.0:0"}, "everybody who reaches 0.0.0.0:"),
        ({"http.listen": "[::]:0"}, "everybody who reaches [::]:"),
        ({"http.listen": "0.0.0.0:0", "http.bearer.token": TOKEN}, "http.bearer.token crosses the network unencrypted"),
        ({"http.listen": "127.0.0.1:0"}, ""),
        ({"http.listen": "[::1]:0"}, ""),
        ({"http.listen": "localhost:0"}, ""),
    ],
)
async def test_a_port_that_strangers_reach_is_a_warning(
    settings: dict[str, str], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a token everybody can read the page, and without TLS the token."""
    async with trio.open_nursery() as nursery:
        await open_site("nobody.asks", None, config_from_mapping(settings), nursery)
        nursery.cancel_scope.cancel()
    assert [message[: len(told)] for message in caplog.messages] == ([told] if told else [])

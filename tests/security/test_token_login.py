"""The tokens with which nodes log in to each other: from a file or an endpoint, and when they are
replaced.
"""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from minicontroller.clock import now
from minicontroller.cluster.errors import ConfigurationError
from minicontroller.network.peer_login import log_in
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.protocol.api_keys import ApiKey
from minicontroller.protocol.errors import ProtocolError
from minicontroller.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from minicontroller.protocol.messages.sasl_handshake import SaslHandshakeResponse
from minicontroller.protocol.schema import WireStruct
from minicontroller.security import token_login
from minicontroller.security.caller import Caller, Listener
from minicontroller.security.listeners import server_listeners
from minicontroller.security.mechanisms import LoginSources
from minicontroller.security.sasl import Proved
from minicontroller.security.token_login import (
    ClientSecret,
    LoginToken,
    LoginTokenError,
    RefreshRules,
    TokenLogin,
    TokenSettings,
    read_login_token,
    seconds_until_refresh,
    token_of_answer,
)
from tests.support.certificates import Authority, server_context
from tests.support.http_endpoint import Endpoint
from tests.support.waiting import until

NOW = 1_700_000_000
SECRET = "planted/+secret"
CLIENT = ClientSecret("node one", SECRET, "a b")

cases = settings(max_examples=100, derandomize=True, database=None)


def part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def token(**changed: Any) -> str:
    claims = {"sub": "node-1", "iat": NOW, "exp": NOW + 1000, **changed}
    return f"{part({'alg': 'RS256'})}.{part({k: v for k, v in claims.items() if v is not None})}.cGxhbnRlZA"


# ------------------------------------------------------------------ one token


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (token(exp=NOW), "the token has expired"),
        (token(exp=None), "when it expires"),
        (token(exp="soon"), "when it expires"),
        (token(exp=10**400), "when it expires"),
        (token(sub=None), "names nobody in its claim sub"),
        (token(sub=" "), "names nobody"),
        (token(sub="x" * 1001), "names nobody"),
        ("planted", "no signed token"),
        ("", "no signed token"),
        ("a.b.c", "no signed token"),
        (token() + "\x01auth=Bearer x", "no signed token"),
        (token() + "." * 70_000, "too long"),
        (f"e30.{part([])}.e30", "no signed token"),
    ],
    ids=range(13),
)
def test_what_is_no_token_to_log_in_with(text: str, fault: str) -> None:
    """Others would refuse it; the reason has no part of it."""
    with pytest.raises(LoginTokenError, match=fault) as refused:
        read_login_token(text, "sub", NOW)
    assert text[:5] not in str(refused.value) or not text


def test_a_token_says_whose_it_is() -> None:
    """In the claim that the configuration names; its repr does not show it."""
    read = read_login_token(f" {token(client='x')}\n", "client", NOW)
    assert (read.subject, read.expires, read.issued) == ("x", NOW + 1000, NOW)
    assert read.text == token(client="x")
    assert "cGxhbnRlZA" not in repr(read)


@cases
@given(
    st.text(max_size=80) | st.binary(max_size=60).map(lambda data: f"e30.{base64.urlsafe_b64encode(data).decode()}.e")
)
def test_any_text_is_a_token_or_is_refused(text: str) -> None:
    """Nothing else is raised."""
    with pytest.raises(LoginTokenError):
        read_login_token(text, "sub", NOW)


@cases
@given(
    st.integers(100, 599),
    st.binary(max_size=60)
    | st.dictionaries(st.sampled_from(["access_token", "error"]), st.none() | st.text()).map(
        lambda answer: json.dumps(answer).encode()
    ),
)
def test_any_answer_of_an_endpoint_is_a_token_or_is_refused(status: int, body: bytes) -> None:
    """Nothing else is raised, and no text of the answer is repeated but the errors of RFC 6749."""
    said = ""
    try:
        assert token_of_answer(status, body)
    except LoginTokenError as error:
        said = str(error)
    assert said in {"", f"the answer has the status {status}", "the answer has no access_token"}


@pytest.mark.parametrize(
    ("expires", "rules", "share", "expected"),
    [
        (1000, RefreshRules(), 0, 700),  # 300 seconds before its end at the latest
        (1000, RefreshRules(buffer_seconds=0), 0, 800),
        (1000, RefreshRules(buffer_seconds=0), 1, 850),
        (400, RefreshRules(), 0, 100),
        (361, RefreshRules(), 0, 61),
        (300, RefreshRules(), 0, 240),  # shorter than the buffer and the period together
        (4000, RefreshRules(window_factor=0.01), 0, 400),
        (1, RefreshRules(), 0, 1),
    ],
)
def test_a_token_is_replaced_before_it_expires(
    expires: int, rules: RefreshRules, share: float, expected: float
) -> None:
    """As `sasl.login.refresh.*` says, which count for tokens that live long enough."""
    fresh = LoginToken("", "", NOW + expires, NOW)
    assert seconds_until_refresh(fresh, rules, NOW, share) == pytest.approx(expected)


def test_a_token_that_comes_old_is_not_asked_for_without_pause() -> None:
    """An endpoint may answer with the same token until it has expired."""
    old = LoginToken("", "", NOW + 200, NOW - 10_000)
    assert seconds_until_refresh(old, RefreshRules(), NOW, 0) == 20


# ------------------------------------------------------------------ where tokens come from


class Clock:
    """The seconds since 1970, which pass as trio's do."""

    def __init__(self) -> None:
        self._began = trio.current_time()

    def __call__(self) -> float:
        return NOW + trio.current_time() - self._began


@asynccontextmanager
async def running(settings: TokenSettings) -> AsyncIterator[TokenLogin]:
    async with trio.open_nursery() as nursery:
        login = TokenLogin(settings, Clock())
        nursery.start_soon(login.run)
        yield login
        nursery.cancel_scope.cancel()


def shown(login: TokenLogin) -> str:
    """The token that it shows, or why it shows none."""
    try:
        return next(login.exchange()).decode().removeprefix("n,,\x01auth=Bearer ").removesuffix("\x01\x01")
    except ProtocolError as error:
        return str(error)


async def test_a_token_in_a_file_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An expired one is a clear sentence, in the log once, until the file is replaced."""
    monkeypatch.setattr(token_login, "LOOK_SECONDS", 0.01)
    file, passed = tmp_path / "token", 0.0

    async def wait_shown(expected: str) -> None:
        await trio.to_thread.run_sync(lambda: until(lambda: shown(login), right=lambda it: it == expected))

    def none(reason: str) -> str:
        return f"this node has no valid token to log in with ({file}: {reason})"

    login = TokenLogin(TokenSettings(url=file.as_uri()), lambda: NOW + passed)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(login.run)
        await login.tried.wait()
        assert shown(login) == none("No such file or directory")
        file.write_text(token() + "\n")
        await wait_shown(token())
        assert login.username == "node-1"
        caplog.clear()
        passed = 1000.0
        await wait_shown(none("the token has expired"))
        await trio.sleep(0.1)
        assert [record.getMessage() for record in caplog.records] == [
            f"no new token to log in to other nodes can be had from {file}: the token has expired; trying again"
        ]
        newer = token(exp=NOW + 2000)
        file.write_text(newer)
        await wait_shown(newer)
        file.write_text("planted")
        await trio.to_thread.run_sync(lambda: until(lambda: "there is no signed token" in caplog.text))
        assert shown(login) == newer
        passed = 2000.0
        assert shown(login) == none("there is no signed token")
        assert "planted" not in caplog.text
        nursery.cancel_scope.cancel()


async def test_a_token_from_an_endpoint_is_refreshed(autojump_clock: MockClock) -> None:
    """With the grant of client credentials, as Kafka asks for it, before the token expires."""
    endpoint = Endpoint(json.dumps({"access_token": token()}).encode())
    async with trio.open_nursery() as nursery:
        await nursery.start(endpoint.serve)
        url = f"http://127.0.0.1:{endpoint.port}/token?planted"
        async with running(TokenSettings(url=url, client=CLIENT)) as login:
            await login.tried.wait()
            assert shown(login) == token()
            head, _, body = endpoint.asked.decode().partition("\r\n\r\n")
            assert head.startswith("POST /token?planted HTTP/1.1")
            assert base64.b64encode(f"node one:{SECRET}".encode()).decode() in head
            assert body == "grant_type=client_credentials&scope=a+b"
            await trio.sleep(600)
            assert endpoint.fetched == 1
            endpoint.body = json.dumps({"access_token": token(exp=NOW + 5000), "expires_in": 1}).encode()
            await trio.sleep(150)
            assert (endpoint.fetched, shown(login)) == (2, token(exp=NOW + 5000))
            nursery.cancel_scope.cancel()


async def test_the_certificate_of_an_endpoint_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret is shown to nobody whom the system does not trust."""
    authority = Authority(tmp_path)
    body = json.dumps({"access_token": token()}).encode()
    endpoint = Endpoint(body, server_context(authority.issue("issuer", "127.0.0.1")))
    async with trio.open_nursery() as nursery:
        await nursery.start(endpoint.serve)
        settings = TokenSettings(url=f"https://127.0.0.1:{endpoint.port}/token", client=CLIENT)
        async with running(settings) as login:
            await login.tried.wait()
            assert "its certificate is not trusted: " in shown(login)
            assert not endpoint.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        async with running(settings) as login:
            await login.tried.wait()
            assert shown(login) == token()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("500", "the answer has the status 500"),
        ("401", "the answer has the status 401 and the error invalid_client"),
        ("HTML", "the answer has no access_token"),
        ("too long", "the answer has more than 262144 bytes"),
        ("never", "no answer came within 10 seconds"),
        ("nobody there", "the address does not answer (Connection refused)"),
        ("expired", "the token has expired"),
        ("redirected", "the answer has the status 302"),
    ],
)
async def test_an_endpoint_that_answers_badly_is_a_clear_sentence(
    fault: str, reason: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in the log, without the secret; the node tries again, at longer and longer intervals."""
    good = json.dumps({"access_token": token()}).encode()
    endpoint = Endpoint(good)
    match fault:
        case "500" | "redirected" | "401":
            endpoint.status = {"500": "500 x", "401": "401 x", "redirected": "302 x\r\nLocation: http://x"}[fault]
            endpoint.body = json.dumps({"error": "invalid_client", "error_description": SECRET}).encode()
            if fault != "401":
                endpoint.body = SECRET.encode()
        case "HTML":
            endpoint.body = f"<html>{SECRET}".encode()
        case "too long":
            endpoint.body = bytes(10_000_000)
        case "never":
            endpoint.delay = 3600
        case "expired":
            endpoint.body = json.dumps({"access_token": token(exp=NOW - 1)}).encode()
    async with trio.open_nursery() as nursery:
        await nursery.start(endpoint.serve)
        port = 1 if fault == "nobody there" else endpoint.port
        url = f"http://127.0.0.1:{port}/planted"
        async with running(TokenSettings(url=url, client=CLIENT)) as login:
            await trio.sleep(60)
            assert shown(login) == f"this node has no valid token to log in with (http://127.0.0.1: {reason})"
            assert caplog.text.count("no new token to log in to other nodes can be had") == 1
            assert endpoint.fetched < 15
            assert "planted" not in caplog.text.replace("/planted HTTP", "") + repr(login._settings)
            if port != 1:
                endpoint.body, endpoint.status, endpoint.delay = good, "200 OK", 0
                await trio.sleep(30)
                assert shown(login) == token()
            nursery.cancel_scope.cancel()


# ------------------------------------------------------------------ the login


async def test_a_token_that_is_refused_is_a_clear_sentence(tmp_path: Path) -> None:
    """The other end says so by a challenge, and gives its reason when it is acknowledged."""
    file = tmp_path / "token"
    file.write_text(token())
    answers: list[WireStruct] = [
        SaslHandshakeResponse(),
        SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}'),
        SaslAuthenticateResponse(error_code=58, error_message='{"status":"invalid_token"}'),
    ]
    sent = []

    async def ask(_key: ApiKey, _version: int, message: WireStruct) -> WireStruct:
        sent.append(message)
        return answers.pop(0)

    async with running(TokenSettings(url=file.as_uri())) as login:
        await login.tried.wait()
        with pytest.raises(ProtocolError, match="it does not accept us as 'node-1': ") as refused:
            await log_in(ask, login)
    assert isinstance(sent[-1], SaslAuthenticateRequest) and sent[-1].auth_bytes == b"\x01"
    assert token() not in str(refused.value)


@pytest.mark.parametrize(
    ("subject", "is_ours", "is_node"),
    [("node-1", False, True), ("node-2", True, True), ("node-2", False, False), ("", False, False)],
)
async def test_each_node_may_have_a_subject_of_its_own(
    subject: str, is_ours: bool, is_node: bool, tmp_path: Path
) -> None:
    """It is a node by the proof between nodes; a broker of Kafka, by the same subject."""
    file = tmp_path / "token"
    if subject:
        file.write_text(token())
    async with running(TokenSettings(url=file.as_uri())) as login:
        await login.tried.wait()
        mechanisms = {"OAUTHBEARER": lambda: pytest.fail("not asked")}
        listener = Listener(name="N", sasl=True, inter_broker=True, mechanisms=mechanisms, node_user=login)
        caller = Caller(listener, "host", 1)
        assert caller.sasl is not None
        caller.sasl._mechanism, caller.sasl.username = "OAUTHBEARER", subject
        caller.is_ours = is_ours
        caller.authenticated_as(Proved(subject))
        assert caller.from_peer is is_node
        assert caller.rests_on_proof is (subject == "node-2" and is_node)  # so that it ends with the secret


# ------------------------------------------------------------------ the configuration


LOGIN = "org.apache.kafka.common.security.oauthbearer"
PREFIX = "listener.name.internal.oauthbearer"


def configured(**changed: str) -> Listener:
    keys = {
        "broker.id": "1",
        "listeners": "INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "INTERNAL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        f"{PREFIX}.sasl.jaas.config": f'{LOGIN}.OAuthBearerLoginModule required clientId="n" clientSecret="planted";',
        f"{PREFIX}.sasl.server.callback.handler.class": f"{LOGIN}.OAuthBearerValidatorCallbackHandler",
        f"{PREFIX}.sasl.login.callback.handler.class": f"{LOGIN}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": "https://issuer/keys",
        "sasl.oauthbearer.token.endpoint.url": "https://issuer/token",
    } | {name.replace("_", ".").replace("PREFIX", PREFIX): value for name, value in changed.items()}
    return server_listeners(config_from_mapping({k: v for k, v in keys.items() if v}), LoginSources())[0]


JAAS = f"{LOGIN}.OAuthBearerLoginModule required"


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"PREFIX_sasl_login_callback_handler_class": f"{LOGIN}.secured.OAuthBearerLoginCallbackHandler"},
        {"sasl_oauthbearer_token_endpoint_url": "file:///run/token", "PREFIX_sasl_jaas_config": f"{JAAS};"},
        {"sasl_oauthbearer_token_endpoint_url": "file:///run/token", "PREFIX_sasl_jaas_config": ""},
    ],
)
def test_nodes_log_in_by_tokens(changed: Mapping[str, str]) -> None:
    """With Kafka's names; no file has to be there at the start."""
    user = configured(**changed).node_user
    assert user is not None
    assert (user.mechanism, user.username) == ("OAUTHBEARER", "")


def test_the_settings_of_a_login_are_followed() -> None:
    """Those that Kafka has for it, also with the prefix of a listener."""
    user = configured(
        sasl_login_connect_timeout_ms="1500",
        sasl_login_read_timeout_ms="2500",
        sasl_login_retry_backoff_ms="5",
        sasl_login_retry_backoff_max_ms="7",
        sasl_login_refresh_buffer_seconds="11",
        sasl_login_refresh_window_factor="0.6",
        sasl_oauthbearer_sub_claim_name="client",
    ).node_user
    assert isinstance(user, TokenLogin)
    followed = user._settings
    assert (followed.connect_seconds, followed.read_seconds) == (1.5, 2.5)
    assert (followed.retry_ms, followed.max_retry_ms, followed.subject_claim) == (5, 7, "client")
    assert followed.refresh == RefreshRules(window_factor=0.6, buffer_seconds=11)
    assert followed.client == ClientSecret("n", "planted")


def test_id_and_secret_are_encoded_if_the_key_says_so() -> None:
    """With `sasl.oauthbearer.header.urlencode` they are encoded as in a URL before they are joined,
    as RFC 6749 demands; by default they go as they are, as in Kafka.
    """

    def sent(client: ClientSecret) -> str:
        return base64.b64decode(dict(client.question("https://issuer/").headers)["Authorization"].split()[1]).decode()

    as_it_is = ClientSecret("node:1", "p+l n%t")
    assert sent(as_it_is) == "node:1:p+l n%t"
    assert sent(msgspec.structs.replace(as_it_is, is_url_encoded=True)) == "node%3A1:p%2Bl+n%25t"
    for changed, expected in (
        ({"sasl_oauthbearer_header_urlencode": "true"}, True),
        ({"listener_name_internal_sasl_oauthbearer_header_urlencode": "true"}, True),
        ({}, False),
    ):
        user = configured(**changed).node_user
        assert isinstance(user, TokenLogin)
        assert user._settings.client is not None
        assert user._settings.client.is_url_encoded is expected


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"PREFIX_sasl_login_callback_handler_class": ""}, "tokens that nobody signed"),
        ({"PREFIX_sasl_login_callback_handler_class": "com.example.Handler"}, "is not served"),
        ({"sasl_oauthbearer_token_endpoint_url": ""}, "token.endpoint.url is missing"),
        ({"sasl_oauthbearer_token_endpoint_url": "ftp://host/planted"}, "it is no address"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://u:planted@host"}, "it is no address"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://host:planted/"}, "it is no address"),
        ({"sasl_oauthbearer_token_endpoint_url": "file:///planted"}, "no effect with a token from a file"),
        ({"PREFIX_sasl_jaas_config": f"{JAAS};"}, "needs a clientId and a clientSecret"),
        (
            {"PREFIX_sasl_jaas_config": f'{JAAS} clientId="n" clientSecret="planted" ssl.protocol="x";'},
            "ssl.protocol is not followed; the options are clientId, clientSecret, scope",
        ),
        (
            {"PREFIX_sasl_jaas_config": "org.apache.kafka.common.security.plain.PlainLoginModule required;"},
            "names another login module",
        ),
    ],
)
def test_what_a_node_needs_to_log_in_by_tokens(changed: Mapping[str, str], sentence: str) -> None:
    """What is missing, and what would have no effect, ends the start without a secret."""
    with pytest.raises(ConfigurationError, match=sentence) as refused:
        configured(**changed)
    assert "planted" not in str(refused.value)


def test_time_is_that_of_the_process() -> None:
    """The login of a node compares its token with the clock of its process."""
    user = configured().node_user
    assert isinstance(user, TokenLogin)
    assert user._clock is now

"""OAUTHBEARER with signed tokens: which are accepted, and whatever else a client may show."""

import base64
import hmac
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import trio
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, KeyParameters, OctKey, OKPKey, RSAKey
from trio.testing import MockClock

from minicontroller.cluster.errors import ConfigurationError
from minicontroller.process.settings.loading import config_from_mapping
from minicontroller.security.bearer_message import read_bearer_message
from minicontroller.security.issuer_keys import FETCH_SECONDS, SOONEST_SECONDS, EndpointSettings, IssuerKeys
from minicontroller.security.listeners import server_listeners
from minicontroller.security.mechanisms import LoginSources
from minicontroller.security.oauthbearer import bearer_mechanism
from minicontroller.security.sasl import Challenge, Proved, Rejected, SaslOutcome
from minicontroller.security.signed_tokens import (
    MAX_TOKEN_CHARACTERS,
    InvalidTokenError,
    KeySetError,
    PublicKey,
    TokenRules,
    read_key_set,
    verified_token,
)
from tests.support.http_endpoint import Endpoint

NOW = 1_700_000_000
RULES = TokenRules(audiences=frozenset({"kafka", "other"}), issuer="https://issuer")
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
NOT_ACCEPTED = '{"status":"invalid_token"}'
LOGIN = "org.apache.kafka.common.security"
HANDLER = f"{LOGIN}.oauthbearer.OAuthBearerValidatorCallbackHandler"

cases = settings(max_examples=60, derandomize=True, database=None)


@cache
def signer(kind: str, key_id: str = "k1") -> Any:
    parameters: KeyParameters = {"kid": key_id}
    match kind:
        case "RSA":
            return RSAKey.generate_key(2048, parameters)
        case "Ed25519":
            return OKPKey.generate_key("Ed25519", parameters)
        case _:
            return ECKey.generate_key(kind, parameters)


def public(*keys: Any) -> bytes:
    return json.dumps({"keys": [key.as_dict(private=False) for key in keys]}).encode()


class Known:
    """Keys that do not change."""

    def __init__(self, *keys: Any) -> None:
        self.keys = read_key_set(public(*keys))
        self.asked: list[str | None] = []

    def named(self, key_id: str | None) -> Sequence[PublicKey]:
        self.asked.append(key_id)
        return [key for key in self.keys if key_id in (None, key.kid)]


def claims(**changed: Any) -> dict[str, Any]:
    all_of_them = {"sub": "alice", "iss": "https://issuer", "aud": "kafka", "iat": NOW, "exp": NOW + 60, **changed}
    return {name: value for name, value in all_of_them.items() if value is not None}


def signed(key: Any = None, header: Mapping[str, Any] | None = None, **changed: Any) -> str:
    head = {"alg": "RS256", "kid": "k1", **(header or {})}
    return jwt.encode(
        {name: value for name, value in head.items() if value is not None},
        claims(**changed),
        signer("RSA") if key is None else key,
        algorithms=[head["alg"]],
    )


def part(content: object) -> str:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def verdict(token: str, rules: TokenRules = RULES) -> str:
    """The subject, or the reason why it is not believed."""
    try:
        return verified_token(token, Known(signer("RSA")), rules, NOW).subject
    except InvalidTokenError as error:
        return str(error)


def login(token: str, header: str = "n,,") -> SaslOutcome:
    exchange = bearer_mechanism(Known(signer("RSA")), RULES, lambda: NOW)()
    return exchange.step(f"{header}\x01auth=Bearer {token}\x01\x01".encode())


# ------------------------------------------------------------------ which tokens are accepted


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("RSA", "RS256"),
        ("RSA", "PS512"),
        ("P-256", "ES256"),
        ("P-384", "ES384"),
        ("P-521", "ES512"),
        ("Ed25519", "EdDSA"),
    ],
)
@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
def test_a_token_signed_by_a_key_of_the_issuer_is_accepted(kind: str, algorithm: str) -> None:
    """By every algorithm with a public key; it proves its subject until it ends."""
    key = signer(kind)
    token = signed(key, {"alg": algorithm})
    verified = verified_token(token, Known(signer("RSA", "other"), key), RULES, NOW)
    assert (verified.subject, verified.expires_ms) == ("alice", (NOW + 60) * 1000)


@pytest.mark.parametrize(
    "changed",
    [
        {"aud": ["x", "other"]},
        {"sub": " alice "},
        {"iat": NOW + 50},
        {"nbf": NOW + 29},
        {"exp": NOW + 0.5},
        {"scope": "a b"},
        {"scope": ["a", "b"]},
        {"scope": 5},
    ],
)
def test_what_kafka_accepts_is_accepted(changed: dict[str, Any]) -> None:
    """Each of these tokens was accepted by a Kafka 3.9.1."""
    assert verdict(signed(**changed)) == "alice"


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u0085", "\u3000"])
def test_only_the_spaces_of_java_are_no_part_of_a_name(space: str) -> None:
    """Whoever can choose a name with another space at its end does not become the user without."""
    assert verdict(signed(sub=f"\0 {space}alice\r\n")) == f"{space}alice"


def test_a_token_that_names_no_key_is_tried_with_all() -> None:
    """Issuers with one key name none."""
    assert verdict(signed(header={"kid": None})) == "alice"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"exp": NOW - 1}, "it has expired"),
        ({"exp": NOW}, "it has expired"),
        ({"iat": NOW + 60}, "its times contradict each other"),
        ({"exp": 10**17}, "its times contradict each other"),
        ({"nbf": NOW + 31}, "it is not valid yet"),
        ({"exp": None}, "its exp is no time"),
        ({"exp": str(NOW + 60)}, "its exp is no time"),
        ({"exp": True}, "its exp is no time"),
        ({"iat": None}, "its iat is no time"),
        ({"iat": -(10**30)}, "its iat is no time"),
        ({"nbf": "soon"}, "its nbf is no time"),
        ({"sub": None}, "it names nobody"),
        ({"sub": ""}, "it names nobody"),
        ({"sub": "  "}, "it names nobody"),
        ({"sub": 5}, "it names nobody"),
        ({"aud": None}, "it was issued for somebody else"),
        ({"aud": "zz"}, "it was issued for somebody else"),
        ({"aud": [["kafka"]]}, "it was issued for somebody else"),
        ({"iss": None}, "another issuer issued it"),
        ({"iss": "https://issuer/"}, "another issuer issued it"),
        ({"scope": ""}, "its scope has no valid form"),
        ({"scope": ["a", "a"]}, "its scope has no valid form"),
        ({"scope": ["a", 5]}, "its scope has no valid form"),
    ],
)
def test_what_a_token_has_to_say(changed: dict[str, Any], reason: str) -> None:
    """A right signature is not enough: times, issuer, audience, scope and subject count."""
    assert verdict(signed(**changed)) == reason


def test_the_names_of_claims_are_configured() -> None:
    """The subject and the scope may stand in other claims."""
    rules = TokenRules(subject_claim="client", scope_claim="scp")
    assert verdict(signed(client="bob", scp=["x"], scope=""), rules) == "bob"
    assert verdict(signed(), rules) == "it names nobody"


# ------------------------------------------------------------------ attacks


def forged(header: Mapping[str, Any], signature: bytes = b"") -> str:
    return f"{part(header)}.{part(claims())}.{part(signature)}"


def hmac_with_the_public_key() -> str:
    content = f"{part({'alg': 'HS256', 'kid': 'k1'})}.{part(claims())}"
    return f"{content}.{part(hmac.digest(signer('RSA').as_pem(private=False), content.encode(), 'sha256'))}"


def signed_by_its_own_key() -> str:
    own = RSAKey.generate_key(2048, {"kid": "k1"})
    return signed(own, {"jwk": own.as_dict(private=False)})


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (forged({"alg": "none"}), "it is no signed token"),
        (forged({"alg": "none"}, b"x"), "its algorithm is not accepted"),
        (forged({"alg": "None", "kid": "k1"}, b"x"), "its algorithm is not accepted"),
        (hmac_with_the_public_key(), "its algorithm is not accepted"),
        (signed(RSAKey.generate_key(2048, {"kid": "k1"})), "no key that is known here signed it"),
        (signed(header={"kid": "zz"}), "no key that is known here signed it"),
        (signed_by_its_own_key(), "no key that is known here signed it"),
        (signed(signer("P-256"), {"alg": "ES256"}), "no key that is known here signed it"),
        (forged({"alg": "ES256", "kid": "k1"}, bytes(64)), "no key that is known here signed it"),
        (forged({"alg": "RS256", "kid": "k1"}, b"x"), "no key that is known here signed it"),
        (signed()[:-8] + "AAAAAAAA", "no key that is known here signed it"),
        ("a.b.c.d.e", "it is no signed token"),
        ("abc", "it is no signed token"),
        ("..", "it is no signed token"),
        (f"{part(b'[' * 20_000)}.e30.e30", "it is no signed token"),
        ("a" * (MAX_TOKEN_CHARACTERS + 1), "it is too long"),
    ],
    ids=range(16),  # all processes have to give a test the same name, and tokens differ
)
def test_a_token_that_the_issuer_did_not_sign_is_refused(token: str, reason: str) -> None:
    """No algorithm of the client's choice, no key of its own, no content without a signature."""
    assert verdict(token) == reason


def signed_as_it_stands(header: str, content: str) -> str:
    """A token with a right signature, whatever its JSON is."""
    parts = ".".join(base64.urlsafe_b64encode(text.encode()).decode().rstrip("=") for text in (header, content))
    signature = signer("RSA").private_key.sign(parts.encode(), PKCS1v15(), SHA256())
    return f"{parts}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


@pytest.mark.parametrize(
    ("header", "content", "reason"),
    [
        ("", "", "alice"),
        ("", '"sub":"root",', "it has no claims"),
        ("", '"x":[{"y":1,"y":2}],', "it has no claims"),
        ('"alg":"none",', "", "it is no signed token"),
        ('"x":{"y":1,"y":2},', "", "it is no signed token"),
    ],
)
def test_a_name_that_stands_twice_is_refused(header: str, content: str, reason: str) -> None:
    """The issuer may have meant the other value; Kafka's library refuses it, too."""
    told = json.dumps(claims())
    token = signed_as_it_stands(f'{{{header}"alg":"RS256","kid":"k1"}}', f"{{{content}{told[1:]}")
    assert verdict(token) == reason


def test_headers_that_change_the_meaning_of_a_token_are_refused() -> None:
    """Extensions that must be understood are not, and the content is always encoded."""
    for header in ({"crit": ["exp"], "exp": 1}, {"b64": False, "crit": ["b64"]}):
        assert verdict(forged({"alg": "RS256", "kid": "k1", **header}, b"x")) in (
            "its algorithm is not accepted",
            "it is no signed token",
        )


@cases
@given(st.data())
def test_a_token_with_any_character_changed_is_refused(data: st.DataObject) -> None:
    """Nothing next to a right token is accepted, and nothing else is raised."""
    token = signed()
    place = data.draw(st.integers(0, len(token) - 2))  # the bits at the very end may be padding
    other = data.draw(st.characters(codec="ascii").filter(lambda each: each != token[place]))
    changed = token[:place] + other + token[place + 1 :]
    if changed.rpartition(".")[2][:-1] == token.rpartition(".")[2][:-1] and changed[:-1] == token[:-1]:
        return
    assert verdict(changed) != "alice"


@cases
@given(st.lists(st.binary(max_size=30) | st.sampled_from([b"{}", b'{"alg":"RS256"}', b"[]", b"null"]), max_size=5))
def test_any_text_in_place_of_a_token_is_refused(parts: list[bytes]) -> None:
    """A text made of any parts is nobody's token."""
    assert verdict(".".join(map(part, parts))) != "alice"


@cases
@given(st.binary(max_size=60) | st.text("n,a=lice\x01authBer .").map(str.encode))
def test_any_message_is_read_or_refused(message: bytes) -> None:
    """Nothing is raised, and nobody is let in."""
    read_bearer_message(message)
    exchange = bearer_mechanism(Known(signer("RSA")), RULES, lambda: NOW)()
    assert isinstance(exchange.step(message), Challenge | Rejected)


# ------------------------------------------------------------------ the exchange


def test_a_token_lets_its_subject_in_until_it_ends() -> None:
    """The session ends with the token."""
    assert login(signed()) == Proved("alice", expires_ms=(NOW + 60) * 1000)
    assert login(signed(), "n,a=alice,") == Proved("alice", expires_ms=(NOW + 60) * 1000)


def test_nobody_acts_for_another() -> None:
    """With Kafka's text."""
    assert login(signed(), "n,a=bob,") == Rejected(
        "Authentication failed: Client requested an authorization id (bob) that is different from "
        "the token's principal name (alice)"
    )


@pytest.mark.parametrize(("acknowledgement", "message"), [(b"\x01", NOT_ACCEPTED), (b"hello", INVALID), (b"", INVALID)])
def test_a_refused_token_is_acknowledged(acknowledgement: bytes, message: str) -> None:
    """The client learns the status, answers with ^A, and is not let in, also with a right token."""
    exchange = bearer_mechanism(Known(signer("RSA")), RULES, lambda: NOW)()
    assert exchange.step(b"n,,\x01auth=Bearer a.b.c\x01\x01") == Challenge(NOT_ACCEPTED.encode())
    outcome = exchange.step(acknowledgement)
    assert isinstance(outcome, Rejected)
    assert outcome.message == message
    assert isinstance(exchange.step(f"n,,\x01auth=Bearer {signed()}\x01\x01".encode()), Rejected)


@pytest.mark.parametrize(
    ("message", "is_read"),
    [
        ("n,,\x01auth=Bearer {}\x01\x01", True),
        ("n,,\x01auth=bearer   {}\x01\x01", True),
        ("n,,\x01host=x\x01port=1\x01auth=Bearer {}\x01\x01", True),
        ("n,,\x01auth=Bearer {}\x01logicalCluster=lkc-1\x01\x01", True),
        ("n,a=j\xfcrgen,\x01auth=Bearer {}\x01\x01", True),
        ("y,,\x01auth=Bearer {}\x01\x01", False),
        ("p=tls-unique,,\x01auth=Bearer {}\x01\x01", False),
        ("n,\x01auth=Bearer {}\x01\x01", False),
        ("n,a=,\x01auth=Bearer {}\x01\x01", False),
        ("n,,\x01auth=Basic {}\x01\x01", False),
        ("n,,\x01auth=Bearer \x01\x01", False),
        ("n,,\x01host=x\x01\x01", False),
        ("n,,\x01auth=Bearer {}\x01a1=x\x01\x01", False),
        ("n,,\x01auth=Bearer {}\x01", False),
        ("n,,\x01auth=Bearer {}\x01\x01x", False),
        ("n,,\x01auth=Bearer {}!\x01\x01", False),
        ("\x01", False),
        ("", False),
    ],
)
def test_the_form_of_a_message(message: str, is_read: bool) -> None:
    """As a Kafka 3.9.1 took them, but for Basic, at which it closes the connection."""
    read = read_bearer_message(message.format(signed()).encode())
    assert (read is not None) is is_read
    assert read is None or signed()[:50] not in repr(read)


# ------------------------------------------------------------------ the issuer's keys


def test_keys_that_must_not_check_signatures_are_left_out() -> None:
    """Shared and private keys, short ones, those for encryption, and what is no key."""
    fields = signer("RSA").as_dict(private=False)
    with pytest.warns(SecurityWarning):
        short = RSAKey.generate_key(1024)
    unusable: list[Any] = [
        OctKey.generate_key(256).as_dict(private=True),
        signer("RSA").as_dict(private=True),
        short.as_dict(private=False),
        {**fields, "use": "enc"},
        {"kty": "RSA", "n": "!", "e": "AQAB"},
        {"kty": "unheard"},
        {"kty": ["RSA"]},
        {},
    ]
    assert len(read_key_set(json.dumps({"keys": [*unusable, fields]}).encode())) == 1
    with pytest.raises(KeySetError, match="no public key"):
        read_key_set(json.dumps({"keys": unusable}).encode())


@cases
@given(
    st.binary(max_size=60)
    | st.recursive(st.none() | st.text(max_size=5), st.lists, max_leaves=5).map(
        lambda value: json.dumps({"keys": value}).encode()
    )
)
def test_any_text_is_a_key_set_or_is_refused(text: bytes) -> None:
    """Nothing else is raised."""
    with pytest.raises(KeySetError):
        read_key_set(text)


def settings_of(url: str, refresh_ms: int = 3_600_000) -> EndpointSettings:
    return EndpointSettings(url, refresh_ms, 100, 10_000)


async def test_keys_in_a_file_are_followed(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Changed keys count after the refresh time; old ones stay while none can be read."""
    file = tmp_path / "jwks.json"
    file.write_bytes(public(signer("RSA")))
    keys = IssuerKeys(settings_of(file.as_uri(), 60_000))
    assert [key.kid for key in keys.named(None)] == ["k1"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keys.run)
        await trio.sleep(1)
        file.write_bytes(public(signer("RSA", "k2")))
        assert keys.named("k1")
        await trio.sleep(61)
        assert not keys.named("k1")
        assert keys.named("k2")
        file.write_text("planted")
        await trio.sleep(600)
        assert keys.named("k2")
        nursery.cancel_scope.cancel()


async def test_keys_at_an_address_are_fetched_by_a_task(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """No token waits for them; one that names an unknown key makes the task look again soon, and
    many do not make it look often.
    """
    endpoint = Endpoint(public(signer("RSA")))
    async with trio.open_nursery() as nursery:
        await nursery.start(endpoint.serve)
        keys = IssuerKeys(settings_of(f"http://127.0.0.1:{endpoint.port}/jwks?planted"))
        assert not keys.named("k1")
        nursery.start_soon(keys.run)
        await trio.sleep(1)
        assert keys.named("k1")
        endpoint.body = public(signer("RSA", "k2"))
        for _ in range(100):
            assert not keys.named("k2")
            await trio.sleep(SOONEST_SECONDS / 200)
        await trio.sleep(SOONEST_SECONDS)
        assert keys.named("k2")
        assert endpoint.fetched == 2
        nursery.cancel_scope.cancel()
    assert "planted" not in caplog.text


@pytest.mark.parametrize("fault", ["slow", "an error", "too long", "no keys", "nobody there", "redirected"])
async def test_an_address_that_does_not_answer_rightly_changes_nothing(
    fault: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The old keys stay, the log says it once, and the task tries again until it is right."""
    endpoint = Endpoint(public(signer("RSA")))
    async with trio.open_nursery() as nursery:
        await nursery.start(endpoint.serve)
        keys = IssuerKeys(settings_of(f"http://127.0.0.1:{endpoint.port}/planted", 30_000))
        nursery.start_soon(keys.run)
        await trio.sleep(1)
        good, there = endpoint.body, endpoint.port
        match fault:
            case "slow":
                endpoint.delay = FETCH_SECONDS + 5
            case "an error":
                endpoint.status = "500 Sorry"
            case "redirected":
                endpoint.status = "302 Found\r\nLocation: http://127.0.0.1:1/"
            case "too long":
                endpoint.body = bytes(2_000_000)
            case "no keys":
                endpoint.body = b"{}"
            case _:
                keys._settings = settings_of("http://127.0.0.1:1/planted", 30_000)
        await trio.sleep(120)
        assert keys.named("k1")
        assert caplog.text.count("cannot be read from http://127.0.0.1: ") == 1
        assert "planted" not in caplog.text.replace("/planted HTTP", "")
        endpoint.body, endpoint.status, endpoint.delay = good, "200 OK", 0
        endpoint.body = public(signer("RSA", "k2"))
        keys._settings = settings_of(f"http://127.0.0.1:{there}/planted", 30_000)
        await trio.sleep(60)
        assert keys.named("k2")
        nursery.cancel_scope.cancel()


# ------------------------------------------------------------------ the configuration


def configured(jwks: str, **changed: str) -> None:
    prefix = "listener.name.client.oauthbearer"
    keys = {
        "broker.id": "1",
        "listeners": "CLIENT://127.0.0.1:0,INTERNAL://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{prefix}.sasl.jaas.config": f"{LOGIN}.oauthbearer.OAuthBearerLoginModule required;",
        f"{prefix}.sasl.server.callback.handler.class": HANDLER,
        "sasl.oauthbearer.jwks.endpoint.url": jwks,
    } | {name.replace("_", ".").replace("PREFIX", prefix): value for name, value in changed.items()}
    listener, _ = server_listeners(config_from_mapping({k: v for k, v in keys.items() if v}), LoginSources())
    assert list(listener.mechanisms) == ["OAUTHBEARER"]


def test_a_listener_offers_it(tmp_path: Path) -> None:
    """With Kafka's own names; the older name of the handler stands for the same."""
    file = tmp_path / "jwks.json"
    file.write_bytes(public(signer("RSA")))
    configured(file.as_uri())
    old = HANDLER.replace("oauthbearer.", "oauthbearer.secured.")
    configured(file.as_uri(), PREFIX_sasl_server_callback_handler_class=old)
    configured("https://issuer.example/keys")


@pytest.mark.parametrize(
    ("jwks", "changed", "sentence"),
    [
        ("", {}, "sasl.oauthbearer.jwks.endpoint.url is missing"),
        ("file:///no/such/file", {}, "sasl.oauthbearer.jwks.endpoint.url: No such file or directory"),
        ("file:///etc/hostname", {}, "it is no JSON Web Key Set"),
        ("ftp://host/keys", {}, "it is no address"),
        ("https://user:planted@host/keys", {}, "it is no address"),
        ("https://host", {"PREFIX_sasl_server_callback_handler_class": ""}, "with a token that nobody signed"),
        ("https://host", {"PREFIX_sasl_server_callback_handler_class": "com.example.Handler"}, "is not served"),
        (
            "https://host",
            {"PREFIX_sasl_jaas_config": f'{LOGIN}.oauthbearer.OAuthBearerLoginModule required a="planted";'},
            "options of the login module have no effect",
        ),
        (
            "https://host",
            {"PREFIX_sasl_jaas_config": f"{LOGIN}.plain.PlainLoginModule required;"},
            "names another login module than that of OAUTHBEARER",
        ),
    ],
)
def test_what_would_let_in_others_ends_the_start(jwks: str, changed: dict[str, str], sentence: str) -> None:
    """Kafka's unsecured default, a handler of somebody else, and keys that cannot be read."""
    with pytest.raises(ConfigurationError, match=sentence) as refused:
        configured(jwks, **changed)
    assert "planted" not in str(refused.value)

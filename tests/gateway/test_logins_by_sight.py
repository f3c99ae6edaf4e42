"""The gateway learns from a login that passes whose it is, and believes no stranger's bytes."""

import base64
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.gateway.identity.sight import Sight, bearer_name, plain_name, scram_name
from minicontroller.security.sasl import PlainExchange, Proved

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40)
SCRAM, BEARER = "SCRAM-SHA-256", "OAUTHBEARER"


def bearer(claims: object, name: str = "") -> bytes:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    header = f"a={name}" if name else ""
    return f"n,{header},\x01auth=Bearer e30.{payload}.e30\x01\x01".encode()


def by_subject(token: bytes) -> str | None:
    return bearer_name(token, "sub")


def scram(name: str, more: str = "") -> bytes:
    escaped = name.replace("=", "=3D").replace(",", "=2C")
    return f"n,,n={escaped},r=nonce{more}".encode()


@given(NAMES, st.text(min_size=1).filter(lambda text: "\0" not in text))
def test_the_name_that_a_password_proves(name: str, password: str) -> None:
    """Whoever PLAIN lets in is who the gateway takes them for."""
    token = f"\0{name}\0{password}".encode("utf-8", "replace")
    outcome = PlainExchange({name: password}).step(token)
    if isinstance(outcome, Proved):
        assert plain_name(token) == outcome.username == name


@given(NAMES)
def test_the_name_of_scram_and_of_a_token(name: str) -> None:
    """Escaped commas and equals signs are read as they were meant, and a claim as Java trims it."""
    assert scram_name(scram(name)) == name
    assert scram_name(scram(name, ",tokenauth=TRUE")) is None
    trimmed = name.strip("".join(map(chr, range(0x21))))
    assert bearer_name(bearer({"sub": name}), "sub") == trimmed
    assert bearer_name(bearer({"sub": "other", "who": name}), "who") == trimmed


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
@pytest.mark.parametrize("mechanism", ["PLAIN", SCRAM, BEARER, "GSSAPI"])
def test_strangers_bytes(mechanism: str, data: bytes) -> None:
    """Bytes that are no login give no name and no exception, and a name has what stands in them."""
    sight = Sight(mechanism)
    sight.token(data)
    if sight.name is not None:
        assert mechanism != "GSSAPI"
        sight.name.encode()


@given(st.recursive(st.none() | st.booleans() | st.integers(), lambda inner: st.lists(inner, max_size=3)))
def test_claims_that_name_nobody(value: object) -> None:
    """Only a text is a name."""
    assert bearer_name(bearer({"sub": value}), "sub") is None
    assert bearer_name(bearer(value), "sub") is None


@pytest.mark.parametrize(
    ("read", "token"),
    [
        (plain_name, b"root\0alice\0secret"),
        (plain_name, b"\0\xff\0secret"),
        (plain_name, b"alice\0secret"),
        (scram_name, b"p=tls-unique,,n=alice,r=nonce"),
        (by_subject, b"n,,\x01auth=Bearer e30.eyJzdWIiOiJhIiwic3ViIjoiYiJ9.e30\x01\x01"),
        (by_subject, b"n,,\x01auth=Bearer e30." + base64.b64encode(b"[" * 20_000) + b".e30\x01\x01"),
    ],
)
def test_what_tells_no_name(read: Callable[[bytes], str | None], token: bytes) -> None:
    """Another identity than the user's own, names that two readers could read differently, and
    bytes that are no text give no name.
    """
    assert read(token) is None


def test_when_a_login_is_complete() -> None:
    """The challenge of SCRAM and the refusal of a token are answers without an error, and prove
    nothing yet.
    """
    sight = Sight(SCRAM)
    assert not sight.may_be_complete(sight.token(scram("alice")), b"r=noncenonce,s=c2FsdA==,i=4096")
    assert sight.may_be_complete(sight.token(b"c=biws,r=nonce,p=proof"), b"v=signature")
    refused = Sight(BEARER)
    assert not refused.may_be_complete(refused.token(bearer({"sub": "alice"})), b'{"status":"invalid_token"}')
    assert Sight(BEARER).may_be_complete(1, b"")

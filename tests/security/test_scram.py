"""SCRAM as its client: the examples of the RFCs, and whatever a server may say instead."""

import base64
import hashlib
import hmac
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.security.credentials import PlainCredentials, ScramCredentials
from minicontroller.security.scram import MAX_ITERATIONS, MAX_MESSAGE_BYTES, ScramClient, ScramError
from minicontroller.security.scram_credentials import HASHES

NONCE, MORE = "abc", "XYZ"
CHALLENGE = f"r={NONCE}{MORE},s=c2FsdA==,i=4096"
SECRET = "planted-secret"

cases = settings(max_examples=40, derandomize=True, database=None)


def client(hash_name: str = "sha256") -> ScramClient:
    return ScramClient(hash_name, "user", SECRET, NONCE)


def server_signature(hash_name: str, name: str, password: str) -> bytes:
    """By which an honest server answers CHALLENGE, worked out from the RFC's formulas by hand."""
    salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), b"salt", 4096)
    key = hmac.new(salted, b"Server Key", hash_name).digest()
    signed = f"n={name},r={NONCE},{CHALLENGE},c=biws,r={NONCE}{MORE}"
    return hmac.new(key, signed.encode(), hash_name).digest()


def said(turn: Callable[[bytes], bytes | None], message: bytes) -> bytes | str | None:
    """The answer, or the sentence."""
    try:
        return turn(message)
    except ScramError as error:
        return str(error)


@pytest.mark.parametrize(
    ("hash_name", "nonce", "challenge", "final", "last"),
    [
        (
            "sha1",  # RFC 5802, section 5
            "fyko+d2lbbFgONRv9qkxdawL",
            "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
            "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
            "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
        ),
        (
            "sha256",  # RFC 7677, section 3
            "rOprNGfwEbeRWgbNEkqO",
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
        ),
    ],
)
def test_the_examples_of_the_rfcs(hash_name: str, nonce: str, challenge: str, final: str, last: str) -> None:
    """Each message is, byte by byte, the one that the document shows, and its server
    is believed.
    """
    exchange = ScramClient(hash_name, "user", "pencil", nonce)
    assert exchange.first() == f"n,,n=user,r={nonce}".encode()
    assert exchange.final(challenge.encode()) == final.encode()
    exchange.verify(last.encode())


@cases
@given(st.sampled_from(sorted(HASHES.values())), st.text(min_size=1, max_size=9), st.text(max_size=9), st.data())
def test_an_honest_server_is_believed_and_no_other(
    hash_name: str, name: str, password: str, data: st.DataObject
) -> None:
    """For any name and password the signature of one who knows it ends the exchange; with any bit
    of it wrong nobody is believed.
    """
    exchange = ScramClient(hash_name, name, password, NONCE)
    exchange.final(CHALLENGE.encode())
    shown = name.replace("=", "=3D").replace(",", "=2C")
    signature = server_signature(hash_name, shown, password)
    bit = data.draw(st.integers(0, len(signature) * 8 - 1))
    wrong = (int.from_bytes(signature) ^ 1 << bit).to_bytes(len(signature))
    for lie in (wrong, signature[:-1], signature + b"\0"):
        with pytest.raises(ScramError, match="did not prove"):
            exchange.verify(b"v=" + base64.b64encode(lie))
    exchange.verify(b"v=" + base64.b64encode(signature))


@pytest.mark.parametrize(
    ("challenge", "sentence"),
    [
        (f"r={NONCE},s=c2FsdA==,i=4096", "belongs to another exchange"),
        (f"r={MORE}{NONCE},s=c2FsdA==,i=4096", "belongs to another exchange"),
        (f"r={NONCE}{MORE},s=c2FsdA==,i=4095", "4096 to 1000000 are accepted"),
        (f"r={NONCE}{MORE},s=c2FsdA==,i={MAX_ITERATIONS + 1}", "are accepted"),
        (f"r={NONCE}{MORE},s=c2FsdA==,i={'9' * 4000}", "are accepted"),
        (f"r={NONCE}{MORE},s=c2FsdA==,i=-1", "are accepted"),
        (f"r={NONCE}{MORE},s=c2FsdA==,i=\u0664096", "are accepted"),
        (f"r={NONCE}{MORE},s=,i=4096", "its salt in SCRAM is no base64"),
        (f"r={NONCE}{MORE},s=%%%%,i=4096", "its salt in SCRAM is no base64"),
        (f"s=c2FsdA==,r={NONCE}{MORE},i=4096", "is not a nonce, a salt and a number"),
        (f"m=ext,r={NONCE}{MORE},s=c2FsdA==,i=4096", "an extension of SCRAM that nobody knows"),
        (f"r={NONCE}{MORE},i=4096,", "is not made of attributes"),
        ("", "is not made of attributes"),
        (f"r={NONCE}{'x' * MAX_MESSAGE_BYTES},s=c2FsdA==,i=4096", "is longer than"),
    ],
)
def test_a_challenge_that_must_not_be_answered(challenge: str, sentence: str) -> None:
    """Each has its sentence, none costs the work of a password, and no proof leaves."""
    with pytest.raises(ScramError, match=sentence):
        client().final(challenge.encode())


@cases
@given(st.binary(max_size=80) | st.text("rsivem=, abcXYZ0964/+").map(str.encode))
def test_any_bytes_are_answered_or_refused(message: bytes) -> None:
    """A hostile server gets an answer or is refused, at both of its turns; nothing else is raised,
    and nobody is believed.
    """
    exchange = client()
    challenged, concluded = said(exchange.final, message), said(exchange.verify, message)
    assert concluded is not None
    assert SECRET not in f"{challenged!r} {concluded!r}"


@cases
@given(st.integers(0, len(CHALLENGE) - 1), st.integers(0, 255), st.sampled_from([0, 1]))
def test_a_damaged_challenge_is_answered_or_refused(place: int, byte: int, width: int) -> None:
    """Next to what is right nothing else is raised either; the password is never part of the
    answer.
    """
    damaged = bytearray(CHALLENGE.encode())
    damaged[place : place + width] = bytes([byte])
    assert SECRET not in str(said(client().final, bytes(damaged)))


def test_a_server_that_only_says_yes_is_not_believed() -> None:
    """Before the challenge, after an error, or without a signature there is nothing to believe."""
    with pytest.raises(ScramError, match="did not prove"):
        client().verify(b"v=" + base64.b64encode(bytes(32)))
    exchange = client()
    exchange.final(CHALLENGE.encode())
    for word, sentence in ((b"e=other-error", "ends the exchange by SCRAM: other-error"), (b"r=yes", "did not prove")):
        with pytest.raises(ScramError, match=sentence):
            exchange.verify(word)


@pytest.mark.parametrize(
    "credentials", [PlainCredentials("alice", SECRET), ScramCredentials("alice", SECRET, "SCRAM-SHA-256")]
)
def test_credentials_do_not_show_the_password(credentials: PlainCredentials | ScramCredentials) -> None:
    """The password of credentials is shown neither in a log nor in a trace."""
    assert SECRET not in repr(credentials)
    assert "alice" in repr(credentials)


def test_no_two_exchanges_begin_alike() -> None:
    """Each connection has a nonce of its own."""
    credentials = ScramCredentials("alice", SECRET, "SCRAM-SHA-512")
    assert len({next(credentials.exchange()) for _ in range(5)}) == 5

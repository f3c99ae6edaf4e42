"""SASL DIGEST-MD5 as its client: the example of the RFC, and whatever a server may say instead."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.store.digest_md5 import DigestError, DigestLogin, DigestMd5

SECRET = "planted-secret"
CHALLENGE = b'realm="zk-sasl-md5",nonce="abc",charset=utf-8,algorithm=md5-sess'
cases = settings(max_examples=100, derandomize=True, database=None)


def exchange() -> DigestMd5:
    return DigestMd5(DigestLogin("user", SECRET), "own-nonce")


def test_the_exchange_of_the_rfc() -> None:
    """RFC 2831, section 4: the proof of chris, and the server's own."""
    client = DigestMd5(DigestLogin("chris", "secret"), "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com")
    challenge = b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'
    assert b"response=d388dad90d4bbd760a152321f2143af7," in client.respond(challenge)
    client.verify(b"rspauth=ea40f60335c427b5527b84dbabcdfffd")
    with pytest.raises(DigestError, match="did not prove"):
        client.verify(b"rspauth=ea40f60335c427b5527b84dbabcdfffe")


@pytest.mark.parametrize("last", [b"", b"rspauth="])
def test_a_server_that_proves_nothing_is_not_trusted(last: bytes) -> None:
    """A server that does not know the password cannot pose as one that does, by silence neither."""
    for client in (exchange(), exchange()):
        with pytest.raises(DigestError, match="did not prove"):
            client.verify(last)
    client = exchange()
    client.respond(CHALLENGE)
    with pytest.raises(DigestError, match="did not prove"):
        client.verify(last)


@pytest.mark.parametrize(
    ("challenge", "sentence"),
    [
        (b"", "not one of DIGEST-MD5"),
        (b'realm="x",algorithm=md5-sess', "not one of DIGEST-MD5"),
        (b'nonce="x",algorithm=md5', "not one of DIGEST-MD5"),
        (b'nonce="x",nonce="y",algorithm=md5-sess', "not one of DIGEST-MD5"),
        (b'nonce="x,algorithm=md5-sess', "not one of DIGEST-MD5"),
        (b'nonce="x",qop="auth-conf",algorithm=md5-sess', "use TLS"),
        (b"\xff", "not text"),
    ],
)
def test_another_challenge_is_refused(challenge: bytes, sentence: str) -> None:
    """A challenge that cannot be answered is told as such, and no secret is in what is told."""
    with pytest.raises(DigestError, match=sentence) as caught:
        exchange().respond(challenge)
    assert SECRET not in str(caught.value)


@cases
@given(st.binary(max_size=200) | st.text(max_size=60).map(lambda text: CHALLENGE + b"," + text.encode()))
def test_any_challenge_gives_an_answer_or_a_sentence(challenge: bytes) -> None:
    """Whatever a server says, nothing but an answer or a DigestError comes of it."""
    try:
        answer = exchange().respond(challenge)
    except DigestError:
        return
    assert SECRET.encode() not in answer


def test_the_password_is_in_no_text() -> None:
    """A login can be logged without its password."""
    assert SECRET not in repr(DigestLogin("user", SECRET)) + str(DigestLogin("user", SECRET))

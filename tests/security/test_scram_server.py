"""SCRAM as its server: honest clients, and whatever a client may say instead."""

import base64
import hmac

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.security.sasl import Challenge, Proved, Rejected, SaslExchange, SaslOutcome
from minicontroller.security.scram import MAX_MESSAGE_BYTES, ScramClient, ScramError
from minicontroller.security.scram_credentials import (
    HASHES,
    ScramCredential,
    TokenCredential,
    credential_text,
    derived_credential,
    parse_credential,
)
from minicontroller.security.scram_server import read_client_final, read_client_first, scram_mechanism

SHA256, SHA512 = sorted(HASHES)
SECRET = "planted-sécret,="
INVALID = f"Authentication failed during authentication due to invalid credentials with SASL mechanism {SHA256}"

cases = settings(max_examples=60, derandomize=True, database=None)


class Users:
    """Credentials of users by mechanism, and one delegation token."""

    def __init__(self, credentials: dict[tuple[str, str], ScramCredential]) -> None:
        self.credentials = credentials
        self.token = TokenCredential(derived_credential(SHA256, "hmac"), "owner", 1_000)

    def scram_credential(self, user: str, mechanism: str) -> ScramCredential | None:
        return self.credentials.get((user, mechanism))

    def token_credential(self, token_id: str, mechanism: str) -> TokenCredential | None:
        return self.token if (token_id, mechanism) == ("token-id", SHA256) else None


USERS = Users(
    {
        ("alice", SHA256): derived_credential(SHA256, SECRET, 8192),
        ("bob", SHA512): derived_credential(SHA512, SECRET),
        ("weak", SHA256): derived_credential(SHA256, SECRET, 1000),
    }
)


def begun(mechanism: str = SHA256, users: Users = USERS) -> SaslExchange:
    return scram_mechanism(mechanism, users, lambda: b"decoy")()


def challenge_of(outcome: SaslOutcome) -> bytes:
    assert isinstance(outcome, Challenge)
    return outcome.token


def login(
    name: str, password: str = SECRET, mechanism: str = SHA256, users: Users = USERS, nonce: str = "abc"
) -> SaslOutcome:
    """Return the outcome of an honest client with this password."""
    exchange, client = begun(mechanism, users), ScramClient(HASHES[mechanism], name, password, nonce)
    outcome = exchange.step(client.final(challenge_of(exchange.step(client.first()))))
    if isinstance(outcome, Proved):
        client.verify(outcome.token)
    return outcome


# ------------------------------------------------------------------ who is let in


@cases
@given(
    st.sampled_from(sorted(HASHES)),
    st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=9),
    st.text(max_size=9),
)
def test_the_right_password_is_proved_to_both_ends(mechanism: str, name: str, password: str) -> None:
    """For any name and password the client is let in, and believes the server."""
    users = Users({(name, mechanism): derived_credential(mechanism, password)})
    outcome = login(name, password, mechanism, users)
    assert isinstance(outcome, Proved)
    assert (outcome.username, outcome.expires_ms, outcome.by_token) == (name, None, False)


@pytest.mark.parametrize(
    ("name", "password"),
    [("alice", "guess"), ("nobody", SECRET), ("bob", SECRET), ("weak", SECRET), ("token-id", "hmac")],
)
def test_nobody_else_is_let_in(name: str, password: str) -> None:
    """A wrong password, an unknown user, one of another mechanism, one with too few iterations and
    a token that is not shown as one look the same to the end.
    """
    assert login(name, password) == Rejected(INVALID)


def test_an_unknown_user_is_challenged_like_a_known_one() -> None:
    """The challenge of an unknown name has a salt that is the same each time and another for each
    name and mechanism.
    """

    def salt(name: str, mechanism: str = SHA256) -> bytes:
        challenge = challenge_of(begun(mechanism).step(f"n,,n={name},r=abc".encode()))
        nonce, salt, iterations = challenge.split(b",")
        assert (nonce[:5], len(base64.b64decode(salt[2:])), iterations) == (b"r=abc", 32, b"i=4096")
        return salt

    assert salt("nobody") == salt("nobody")
    assert len({salt("nobody"), salt("noone"), salt("nobody", SHA512)}) == 3


def test_a_changed_password_counts_from_the_next_exchange() -> None:
    """The credential is looked up in each exchange."""
    users = Users({("alice", SHA256): derived_credential(SHA256, "old")})
    assert isinstance(login("alice", "old", users=users), Proved)
    users.credentials["alice", SHA256] = derived_credential(SHA256, "new")
    assert login("alice", "old", users=users) == Rejected(INVALID)
    assert isinstance(login("alice", "new", users=users), Proved)


@pytest.mark.parametrize("changed", [None, derived_credential(SHA256, "another"), derived_credential(SHA256, SECRET)])
def test_who_is_removed_amid_an_exchange_is_not_let_in(changed: ScramCredential | None) -> None:
    """Whoever keeps a challenge does not keep the right to log in by the password of that time."""
    users = Users({("alice", SHA256): derived_credential(SHA256, SECRET)})
    exchange, client = begun(users=users), ScramClient(HASHES[SHA256], "alice", SECRET, "abc")
    proof = client.final(challenge_of(exchange.step(client.first())))
    users.credentials = {} if changed is None else {("alice", SHA256): changed}
    assert exchange.step(proof) == Rejected(INVALID)


def test_a_delegation_token_stands_for_its_owner() -> None:
    """With the extension tokenauth=true the name is a token's id and the password its HMAC."""
    exchange, client = begun(), ScramClient("sha256", "token-id", "hmac", "abc", by_token=True)
    outcome = exchange.step(client.final(challenge_of(exchange.step(client.first()))))
    assert isinstance(outcome, Proved)
    assert (outcome.username, outcome.expires_ms, outcome.by_token) == ("owner", 1_000, True)


def test_an_unknown_token_is_no_user() -> None:
    """Who shows a token is not let in with a user's name and password."""
    exchange, client = begun(), ScramClient("sha256", "alice", SECRET, "abc", by_token=True)
    assert exchange.step(client.final(challenge_of(exchange.step(client.first())))) == Rejected(INVALID)


# ------------------------------------------------------------------ attacks


def test_recorded_messages_prove_nothing_in_another_exchange() -> None:
    """All that an honest client sent, sent again, meets another nonce of the server."""
    client, exchange = ScramClient("sha256", "alice", SECRET, "abc"), begun()
    final = client.final(challenge_of(exchange.step(client.first())))
    assert isinstance(exchange.step(final), Proved)
    again = begun()
    challenge_of(again.step(client.first()))
    assert again.step(final) == Rejected(INVALID)


@cases
@given(st.data())
def test_a_proof_with_any_bit_wrong_proves_nothing(data: st.DataObject) -> None:
    """A proof that is too short, too long, or of zeros proves nothing either."""
    client, exchange = ScramClient("sha256", "alice", SECRET, "abc"), begun()
    final = client.final(challenge_of(exchange.step(client.first())))
    head, _, proof = final.rpartition(b",p=")
    right = base64.b64decode(proof)
    bit = data.draw(st.integers(0, len(right) * 8 - 1))
    wrong = (int.from_bytes(right) ^ 1 << bit).to_bytes(len(right))
    lie = data.draw(st.sampled_from([wrong, right[:-1], right + b"\0", b"", bytes(32)]))
    assert exchange.step(head + b",p=" + base64.b64encode(lie)) == Rejected(INVALID)


def test_what_a_server_stores_does_not_let_anybody_in() -> None:
    """The stored key in place of the client's key proves nothing."""
    credential = USERS.credentials["alice", SHA256]
    exchange = begun()
    challenge = challenge_of(exchange.step(b"n,,n=alice,r=abc")).decode()
    without_proof = f"c=biws,{challenge.partition(',')[0]}"
    mask = hmac.digest(credential.stored_key, f"n=alice,r=abc,{challenge},{without_proof}".encode(), "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(mask, credential.stored_key, strict=True))).decode()
    assert exchange.step(f"{without_proof},p={proof}".encode()) == Rejected(INVALID)


@pytest.mark.parametrize(
    "final",
    [
        "c=eSws,r={nonce},p={proof}",  # a downgrade: the client saw another header
        "c=,r={nonce},p={proof}",
        "c=biws,r=abc,p={proof}",
        "c=biws,r={nonce}x,p={proof}",
        "c=biws,r={nonce},x=1,p={proof}",
        "c=biws,p={proof},r={nonce}",
        "c=biws,r={nonce},p={proof},x=1",
        "c=biws,r={nonce},p=!{proof}",
        "r={nonce},c=biws,p={proof}",
        "c=biws,r={nonce}",
        "n,,n=alice,r=abc",
        "",
    ],
)
def test_a_final_message_in_another_form_proves_nothing(final: str) -> None:
    """A proof that would be right in the right form does not help."""
    client, exchange = ScramClient("sha256", "alice", SECRET, "abc"), begun()
    honest = client.final(challenge_of(exchange.step(client.first()))).decode()
    nonce = honest.split(",")[1][2:]
    message = final.format(nonce=nonce, proof=honest.rpartition(",p=")[2])
    assert exchange.step(message.encode()) == Rejected(INVALID)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"n,,",
        b"n,,n=alice",
        b"n,,n=,r=abc",
        b"n,,n=alice,r=",
        b"n,,r=abc,n=alice",
        b"y,,n=alice,r=abc",
        b"p=tls-unique,,n=alice,r=abc",
        b"p=tls-server-end-point,,n=alice,r=abc",
        b"n,,m=must,n=alice,r=abc",
        b"n,b=alice,n=alice,r=abc",
        b"n,a=,n=alice,r=abc",
        b"n,,n=al=ice,r=abc",
        b"n,,n=al=3dice,r=abc",
        b"n,,n=al\0ice,r=abc",
        b"n,,n=alice,r=a b",
        b"n,,n=alice,r=\xc3\xa9",
        b"n,,n=alice,r=abc,x",
        b"n,,n=alice,r=abc,1=x",
        b"\xff\xfe",
        b"n,,n=alice,r=" + b"a" * MAX_MESSAGE_BYTES,
    ],
)
def test_a_first_message_in_another_form_ends_the_exchange(first: bytes) -> None:
    """No channel binding, no escapes that are none, and nothing without bounds."""
    assert begun().step(first) == Rejected(INVALID)


@pytest.mark.parametrize(("identity", "is_let_in"), [("alice", True), ("bob", False), ("al=3Dice", False)])
def test_nobody_acts_for_another(identity: str, is_let_in: bool) -> None:
    """An authorization identity has to be the user's own name."""
    exchange = begun()
    outcome = exchange.step(f"n,a={identity},n=alice,r=abc".encode())
    if not is_let_in:
        assert outcome == Rejected(
            "Authentication failed: Client requested an authorization id that is different from username"
        )
    else:
        assert isinstance(outcome, Challenge)


@cases
@given(st.binary(max_size=60) | st.text("nrapcesm=,2CD0 b64+/").map(str.encode), st.binary(max_size=60))
def test_any_bytes_are_challenged_or_rejected(first: bytes, final: bytes) -> None:
    """Nothing else comes of them, nothing is raised, and nobody is let in."""
    exchange = begun()
    outcomes = [exchange.step(first), exchange.step(final)]
    assert all(isinstance(outcome, Challenge | Rejected) for outcome in outcomes)
    read_client_first(final)
    read_client_final(first)


@cases
@given(st.integers(0, 60), st.integers(0, 255), st.sampled_from([0, 1]), st.booleans())
def test_a_damaged_message_is_rejected(place: int, byte: int, width: int, at_first: bool) -> None:
    """Next to what is right nobody is let in either."""
    client, exchange = ScramClient("sha256", "alice", SECRET, "abc"), begun()
    first = bytearray(client.first())
    if at_first:
        first[place % len(first) : place % len(first) + width] = bytes([byte])
    outcome = exchange.step(bytes(first))
    if isinstance(outcome, Rejected):
        return
    try:
        honest = client.final(challenge_of(outcome))
    except ScramError:  # the nonce was damaged
        return
    final = bytearray(honest)
    if not at_first:
        final[place % len(final) : place % len(final) + width] = bytes([byte])
    judged = exchange.step(bytes(final))
    assert isinstance(judged, Proved) == (final == honest and first == client.first())


# ------------------------------------------------------------------ what is stored


@cases
@given(st.binary(max_size=40), st.binary(max_size=64), st.binary(max_size=64), st.integers(1, 16384))
def test_a_stored_credential_is_read_back(salt: bytes, stored: bytes, server: bytes, iterations: int) -> None:
    """In Kafka's form nothing is lost."""
    credential = ScramCredential(salt, stored, server, iterations)
    assert parse_credential(credential_text(credential)) == credential


@pytest.mark.parametrize(
    "text",
    [
        "",
        "salt=YQ==,stored_key=Yg==,server_key=Yw==",
        "salt=YQ==,stored_key=Yg==,server_key=Yw==,iterations=4096,more=1",
        "salt=YQ==,stored_key=Yg==,server_key=Yw==,iterations=-1",
        "salt=YQ==,stored_key=Yg==,server_key=Yw==,iterations=9999999999999",
        "salt=YQ==,stored_key=Yg==,server_key=Yw==,iterations=",
        "salt=YQ,stored_key=Yg==,server_key=Yw==,iterations=4096",
        "salt=YQ==,salt=Yg==,server_key=Yw==,iterations=4096",
        "planted" * 1000,
    ],
)
def test_an_unreadable_credential_is_not_shown(text: str) -> None:
    """The message tells what is wrong, and quotes nothing."""
    with pytest.raises(ValueError, match="SCRAM credential") as wrong:
        parse_credential(text)
    assert all(part not in str(wrong.value) for part in ("YQ", "planted"))


def test_a_credential_does_not_show_its_keys() -> None:
    """Passwords can be tested against the keys, so a log never has them."""
    assert repr(derived_credential(SHA256, SECRET)) == "ScramCredential(iterations=4096)"

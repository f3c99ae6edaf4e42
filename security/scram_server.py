"""The server's side of SCRAM (RFC 5802, RFC 7677), as Kafka 3.9 speaks it.

Credentials are looked up when the client has given its name, and again when it has shown its
proof: whoever began before a user was removed or got another password is not let in afterwards. A
name without a credential gets a challenge, too, which is the same each time and costs as much as a
real one: it learns at the end, and not before, that it is not let in. Channel binding is neither
offered nor accepted. No text repeats any part of a message.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable

import msgspec

from .sasl import Challenge, Mechanism, Proved, Rejected, SaslOutcome, invalid_credentials
from .scram import MAX_MESSAGE_BYTES, WITHOUT_BINDING
from .scram_credentials import HASHES, MIN_ITERATIONS, SALT_BYTES, CredentialSource, ScramCredential

NONCE_BYTES = 24
TOKEN_EXTENSION = "tokenauth"  # noqa: S105 - the name of an extension
OTHER_IDENTITY = Rejected("Authentication failed: Client requested an authorization id that is different from username")


class ClientFirst(msgspec.Struct, frozen=True):
    header: str
    """The GS2 header (RFC 5801), with its last comma."""
    bare: str
    """The message without the header."""
    authorization_id: str
    name: str
    """The name of the user, or the id of a delegation token."""
    nonce: str
    shows_token: bool
    """Whether the name is that of a delegation token (KIP-48)."""


class ClientFinal(msgspec.Struct, frozen=True):
    binding: bytes
    nonce: str
    without_proof: str
    proof: bytes


class ScramServer(msgspec.Struct, frozen=True):
    """The parts that all exchanges by one mechanism at one listener share."""

    mechanism: str
    source: CredentialSource
    decoy_key: Callable[[], bytes]
    """Returns the key from which the challenges of unknown names are made. All nodes have the same
    one, so that nobody can tell these challenges from others by comparing nodes.
    """

    def exchange(self) -> "ScramExchange":
        return ScramExchange(self)

    def find(self, first: ClientFirst) -> tuple[Proved, ScramCredential | None]:
        """Return whom the client claims to be, and the credential that it has to prove."""
        if first.shows_token:
            token = self.source.token_credential(first.name, self.mechanism)
            if token is None:
                return Proved(first.name, by_token=True), None

            def is_valid() -> bool:
                return self.source.token_credential(first.name, self.mechanism) is not None

            return Proved(token.owner, expires_ms=token.expires_ms, by_token=True, is_valid=is_valid), token.credential
        credential = self.source.scram_credential(first.name, self.mechanism)
        usable = credential is not None and credential.iterations >= MIN_ITERATIONS
        return Proved(first.name), credential if usable else None

    def decoy(self, name: str) -> ScramCredential:
        """Return the credential with which an unknown name is challenged; nothing proves it."""
        salt = hmac.digest(self.decoy_key(), f"{self.mechanism} {name}".encode(), "sha256")[:SALT_BYTES]
        size = hashlib.new(HASHES[self.mechanism]).digest_size
        return ScramCredential(salt, secrets.token_bytes(size), secrets.token_bytes(size), MIN_ITERATIONS)


class ScramExchange:
    """One authentication: the client's first message, a challenge, and the client's proof."""

    def __init__(self, server: ScramServer) -> None:
        self._server = server
        self._hash = HASHES[server.mechanism]
        self._first: ClientFirst | None = None
        self._credential: ScramCredential
        self._is_decoy = True
        self._challenge = ""

    def step(self, token: bytes) -> SaslOutcome:
        outcome = self._answer(token) if self._first is None else self._judge(self._first, token)
        return invalid_credentials(self._server.mechanism) if outcome is None else outcome

    def _answer(self, token: bytes) -> SaslOutcome | None:
        """Return the challenge, or None if the message is none of SCRAM's."""
        first = read_client_first(token)
        if first is None:
            return None
        if first.authorization_id not in ("", first.name):
            return OTHER_IDENTITY
        _, credential = self._server.find(first)
        decoy = self._server.decoy(first.name)
        self._credential, self._is_decoy = credential or decoy, credential is None
        nonce = first.nonce + secrets.token_urlsafe(NONCE_BYTES)
        salt = base64.b64encode(self._credential.salt).decode()
        self._first, self._challenge = first, f"r={nonce},s={salt},i={self._credential.iterations}"
        return Challenge(self._challenge.encode())

    def _judge(self, first: ClientFirst, token: bytes) -> SaslOutcome | None:
        final = read_client_final(token)
        if final is None or final.binding not in (WITHOUT_BINDING.encode(), first.header.encode()):
            return None
        nonce = self._challenge.partition(",")[0].removeprefix("r=")
        signed = f"{first.bare},{self._challenge},{final.without_proof}".encode()
        credential = self._credential
        mask = hmac.digest(credential.stored_key, signed, self._hash)
        key = bytes(shown ^ masked for shown, masked in zip(final.proof, mask, strict=False))
        proves = hmac.compare_digest(hashlib.new(self._hash, key).digest(), credential.stored_key)
        belongs = hmac.compare_digest(final.nonce.encode(), nonce.encode())
        signature = base64.b64encode(hmac.digest(credential.server_key, signed, self._hash))
        if self._is_decoy or not proves or not belongs or len(final.proof) != len(mask):
            return None
        proved, credential_now = self._server.find(first)
        if credential_now != credential:
            return None
        return msgspec.structs.replace(proved, token=b"v=" + signature)


def scram_mechanism(mechanism: str, source: CredentialSource, decoy_key: Callable[[], bytes]) -> Mechanism:
    return ScramServer(mechanism, source, decoy_key).exchange


def read_client_first(token: bytes) -> ClientFirst | None:
    """Read `n,[a=name],n=name,r=nonce[,extension=value]...`, or return None."""
    text = message_text(token)
    flag, _, rest = text.partition(",")
    identity, comma, bare = rest.partition(",")
    if flag != "n" or not comma or identity[:2] not in ("", "a="):
        return None
    parts = [part.partition("=") for part in bare.split(",")]
    if len(parts) < 2 or [name for name, _, _ in parts[:2]] != ["n", "r"]:
        return None
    name, authorization_id, nonce = read_name(parts[0][2]), read_name(identity[2:]), parts[1][2]
    extensions = {extension: value for extension, _, value in parts[2:]}
    names_are_words = all(each.isascii() and each.isalpha() and value for each, value in extensions.items())
    if not name or authorization_id is None or not _is_nonce(nonce) or not names_are_words or identity == "a=":
        return None
    return ClientFirst(
        header=f"n,{identity},",
        bare=bare,
        authorization_id=authorization_id,
        name=name,
        nonce=nonce,
        shows_token=extensions.get(TOKEN_EXTENSION, "").lower() == "true",
    )


def read_client_final(token: bytes) -> ClientFinal | None:
    """Read `c=binding,r=nonce,p=proof`, or return None. Extensions have no place here, as in
    Kafka.
    """
    text = message_text(token)
    parts = text.split(",", 3)
    if [part[:2] for part in parts] != ["c=", "r=", "p="]:
        return None
    try:
        binding, proof = (base64.b64decode(parts[index][2:], validate=True) for index in (0, 2))
    except (binascii.Error, ValueError):
        return None
    return ClientFinal(binding, parts[1][2:], text[: text.rindex(",")], proof)


def message_text(token: bytes, most: int = MAX_MESSAGE_BYTES) -> str:
    """Return a message as text, or nothing if it is too long or no text."""
    if len(token) > most:
        return ""
    try:
        return token.decode()
    except UnicodeDecodeError:
        return ""


def read_name(text: str) -> str | None:
    """Return a name without the escapes of its commas and equals signs, or None if an equals sign
    begins no escape or the name has a NUL.
    """
    begin, *rest = text.split("=")
    if "\0" in text or any(part[:2] not in ("2C", "3D") for part in rest):
        return None
    return begin + "".join(("," if part[:2] == "2C" else "=") + part[2:] for part in rest)


def _is_nonce(text: str) -> bool:
    return bool(text) and text.isascii() and text.isprintable() and " " not in text

"""SCRAM credentials as Kafka keeps them: keys derived from a password, which cannot be computed
back from them.

A user's credentials are configs in `/config/users/<name>`, one for each mechanism. Whoever reads
one can test passwords against it, so no repr and no exception shows any part of it.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Protocol

import msgspec

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Kafka's mechanisms, with the name of their hash in `hashlib`."""
MECHANISM_NUMBERS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""The mechanisms by their numbers in Kafka's protocol."""
MIN_ITERATIONS = 4096
"""The minimum of RFC 7677 and Kafka. Fewer would make passwords cheap to guess for an eavesdropper.
"""
MOST_STORED_ITERATIONS = 16384
"""The most iterations with which Kafka stores a password."""
SALT_BYTES = 32
MAX_SALT_BYTES = 1024
"""The longest salt that is stored; Kafka's tools make salts of less than 65 bytes."""
MAX_TEXT = 4096
"""The most characters of a stored credential that are read; Kafka's have less than 400."""


class ScramCredential(msgspec.Struct, frozen=True):
    """The values of a password that a server needs to check a client's proof of it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


class TokenCredential(msgspec.Struct, frozen=True):
    """A delegation token, whose HMAC serves as a SCRAM password (KIP-48)."""

    credential: ScramCredential
    owner: str
    """The name of the user that a client with this token is."""
    expires_ms: int
    """When the token expires, in milliseconds since 1970."""


FindUser = Callable[[str, str], ScramCredential | None]
FindToken = Callable[[str, str], TokenCredential | None]
"""Returns the credential of the delegation token with this id, or None if no valid token has it."""


class CredentialSource(Protocol):
    """Finds the credentials of users and tokens, as they are now."""

    def scram_credential(self, user: str, mechanism: str) -> ScramCredential | None: ...

    def token_credential(self, token_id: str, mechanism: str) -> TokenCredential | None: ...


def salted_password(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)


def credential_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Return the credential of a password that a client has salted already."""
    hash_name = HASHES[mechanism]
    stored_key = hashlib.new(hash_name, hmac.digest(salted, b"Client Key", hash_name)).digest()
    return ScramCredential(salt, stored_key, hmac.digest(salted, b"Server Key", hash_name), iterations)


def derived_credential(
    mechanism: str, password: str, iterations: int = MIN_ITERATIONS, salt: bytes | None = None
) -> ScramCredential:
    """Return the credential of a password, with a fresh salt unless one is given."""
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    return credential_of_salted(
        mechanism, salted_password(mechanism, password.encode(), salt, iterations), salt, iterations
    )


def credential_text(credential: ScramCredential) -> str:
    salt, stored, server = (
        base64.b64encode(part).decode() for part in (credential.salt, credential.stored_key, credential.server_key)
    )
    return f"salt={salt},stored_key={stored},server_key={server},iterations={credential.iterations}"


def parse_credential(text: str) -> ScramCredential:
    """Parse a stored credential. Raises ValueError, whose message shows no part of it."""
    parts = [part.partition("=") for part in text[: MAX_TEXT + 1].split(",")]
    fields = {name: value for name, _, value in parts}
    if len(text) > MAX_TEXT or len(parts) != 4 or fields.keys() != {"salt", "stored_key", "server_key", "iterations"}:
        raise ValueError("a SCRAM credential has the parts salt, stored_key, server_key and iterations")
    digits = fields["iterations"]
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise ValueError("the iterations of a SCRAM credential are no number")
    try:
        salt, stored, server = (
            base64.b64decode(fields[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
    except (binascii.Error, ValueError):
        raise ValueError("the salt and the keys of a SCRAM credential are base64") from None
    return ScramCredential(salt, stored, server, int(digits))

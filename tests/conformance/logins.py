"""The memory of logins between one request and the next: delegation tokens, and the state of a
SCRAM login (RFC 5802), whose second message answers a challenge.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

CLIENT_NONCE = "conformance"
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
CHALLENGE = re.compile(r"r=([^,]+),s=([^,]+),i=([0-9]+)")


@dataclass(frozen=True)
class Token:
    """A delegation token that a cluster made; its HMAC is in hex."""

    token_id: str
    hmac: str
    issued_ms: int


class ScramLogin:
    """The client's end of one login after another."""

    def __init__(self) -> None:
        self._challenge = ""
        self._first = ""

    def hear(self, message: bytes) -> None:
        """Remember what the server says, if it is a challenge."""
        text = message.decode(errors="replace")
        if CHALLENGE.fullmatch(text):
            self._challenge = text

    def first(self, header: str, user: str, more: str) -> bytes:
        self._first = f"n={user},r={CLIENT_NONCE}{more}"
        return f"{header}{self._first}".encode()

    def final(self, mechanism: str, password: str | bytes, binding: str, nonce: str | None) -> bytes:
        """Prove the password; an HMAC stands for its base64 text."""
        found = CHALLENGE.fullmatch(self._challenge)
        assert found, f"{self._challenge!r} is no challenge"
        secret = base64.b64encode(password) if isinstance(password, bytes) else password.encode()
        salted = salted_password(mechanism, secret, base64.b64decode(found[2]), int(found[3]))
        without_proof = f"c={binding},r={nonce or found[1]}"
        return f"{without_proof},p={self._proof(HASHES[mechanism], salted, without_proof)}".encode()

    def _proof(self, algorithm: str, salted: bytes, without_proof: str) -> str:
        client_key = hmac.digest(salted, b"Client Key", algorithm)
        said = f"{self._first},{self._challenge},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), said, algorithm)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return base64.b64encode(proof).decode()


def salted_password(mechanism: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)

"""The client's side of SCRAM (RFC 5802, RFC 7677): the client proves that it knows a password
without sending it, and the server proves that it knows the password's keys.

Bytes come in and bytes go out. Any message of a server gives the next token or raises `ScramError`,
at a bounded cost, and no error repeats a secret. Names and passwords are used as they are, without
SASLprep, like Kafka's own clients do: Kafka derives the keys that it stores from such passwords.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

from ..protocol.errors import ProtocolError
from .scram_credentials import MIN_ITERATIONS

MAX_ITERATIONS = 1_000_000
"""The most iterations a server may ask for: about a second of work. Kafka stores 16384 at most."""
MAX_MESSAGE_BYTES = 8192
WITHOUT_BINDING = "n,,"
"""The GS2 header (RFC 5801): no channel binding, no authorization identity."""
NAME_ESCAPES = str.maketrans({"=": "=3D", ",": "=2C"})


class ScramError(ProtocolError):
    """The server broke the protocol or did not prove itself. The text continues the sentence
    "cannot reach <address>:".
    """


class ScramClient:
    """One SCRAM exchange: send `first`, answer the challenge with `final`, check the server's last
    message with `verify`.
    """

    def __init__(self, hash_name: str, username: str, password: str, nonce: str, *, by_token: bool = False) -> None:
        """Begin an exchange. `nonce` is printable ASCII without commas, new for each exchange. With
        `by_token` the name is the id of a delegation token, and the password its HMAC in base64.
        """
        self._hash = hash_name
        self._password = password.encode()
        self._nonce = nonce
        self._bare = f"n={username.translate(NAME_ESCAPES)},r={nonce}{',tokenauth=true' if by_token else ''}"
        self._server_signature = b""

    def first(self) -> bytes:
        return f"{WITHOUT_BINDING}{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client's proof in answer to the server's challenge. Raises ScramError."""
        text = _text(server_first)
        nonce, salt, iterations = self._challenge(text)
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        binding = base64.b64encode(WITHOUT_BINDING.encode()).decode()
        without_proof = f"c={binding},r={nonce}"
        signed = f"{self._bare},{text},{without_proof}".encode()
        client_key = self._mac(salted, b"Client Key")
        signature = self._mac(hashlib.new(self._hash, client_key).digest(), signed)
        self._server_signature = self._mac(self._mac(salted, b"Server Key"), signed)
        proof = bytes(key ^ mask for key, mask in zip(client_key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """Check the server's proof. Raises ScramError."""
        (name, value), *_ = _attributes(_text(server_final))
        if name == "e":
            raise ScramError(f"it ends the exchange by SCRAM: {value}")
        signature = _base64(value, "signature") if name == "v" else b""
        if not self._server_signature or not hmac.compare_digest(signature, self._server_signature):
            raise ScramError("it did not prove that it knows the password: it may not be who it seems to be")

    def _challenge(self, text: str) -> tuple[str, bytes, int]:
        attributes = _attributes(text)
        if [name for name, _ in attributes[:3]] != ["r", "s", "i"]:
            raise ScramError("its challenge by SCRAM is not a nonce, a salt and a number of iterations")
        nonce, salt, iterations = (value for _, value in attributes[:3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramError(
                "its challenge by SCRAM belongs to another exchange: the nonce is not ours and something of its own"
            )
        count = int(iterations) if iterations.isascii() and iterations.isdigit() and len(iterations) < 10 else 0
        if not MIN_ITERATIONS <= count <= MAX_ITERATIONS:
            raise ScramError(
                f"its challenge by SCRAM asks for {iterations[:20]!r} iterations; {MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted"
            )
        return nonce, _base64(salt, "salt"), count

    def _mac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def _text(message: bytes) -> str:
    if len(message) > MAX_MESSAGE_BYTES:
        raise ScramError(f"its message in SCRAM is longer than {MAX_MESSAGE_BYTES} bytes")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("its message in SCRAM is no text") from None


def _attributes(text: str) -> Sequence[tuple[str, str]]:
    pairs = [(part[:1], part[2:]) for part in text.split(",") if part[1:2] == "="]
    if not pairs or len(pairs) != text.count(",") + 1:
        raise ScramError("its message in SCRAM is not made of attributes")
    if pairs[0][0] == "m":
        raise ScramError("it demands an extension of SCRAM that nobody knows")
    return pairs


def _base64(text: str, what: str) -> bytes:
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        value = b""
    if not value:
        raise ScramError(f"its {what} in SCRAM is no base64")
    return value

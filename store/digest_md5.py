"""The client's side of SASL DIGEST-MD5 (RFC 2831), as ZooKeeper's servers ask for it.

Bytes come in and bytes go out. Any message of a server gives the next token or raises
`DigestError`. No error and no repr repeats a secret. The mechanism hides the password, but it
protects nothing that follows; TLS does that.
"""

import hashlib
import hmac
import re

import msgspec

SERVICE = "zookeeper/zk-sasl-md5"
"""The digest-uri of every ZooKeeper server, whatever its host is called."""
MAX_CHALLENGE_BYTES = 2048  # RFC 2831, 2.1.1
NONCE_COUNT = "00000001"
QUALITY = "auth"
_DIRECTIVE = re.compile(
    r'\s*+(?P<name>[a-zA-Z-]++)=(?:"(?P<quoted>(?:\\.|[^"\\])*+)"|(?P<plain>[^\s",]*+))\s*+(?:,|\Z)'
)
_QUOTED_PAIR = re.compile(r"\\(.)")
_SPECIAL = re.compile(r'(["\\])')


class DigestError(Exception):
    """The server broke the protocol or did not prove itself."""


class DigestLogin(msgspec.Struct, frozen=True):
    """The name and the password of this node at ZooKeeper."""

    username: str
    password: str

    def __repr__(self) -> str:
        return f"DigestLogin({self.username!r})"


class DigestMd5:
    """One exchange: answer the server's challenge with `respond`, check its last message with
    `verify`. `nonce` is printable ASCII without quotes, new for each exchange.
    """

    def __init__(self, login: DigestLogin, nonce: str, service: str = SERVICE) -> None:
        self._login = login
        self._nonce = nonce
        self._service = service
        self._expected = b""

    def respond(self, challenge: bytes) -> bytes:
        """Return the proof of the password. Raises DigestError."""
        asked = _directives(challenge)
        server_nonce, realm = asked.get("nonce", ""), asked.get("realm", "")
        if not server_nonce or asked.get("algorithm") != "md5-sess":
            raise DigestError("its challenge is not one of DIGEST-MD5")
        if QUALITY not in asked.get("qop", QUALITY).replace(" ", "").split(","):
            raise DigestError("its challenge asks for an encryption that is not spoken here; use TLS")
        secret = b":".join(map(_latin_if_possible, (self._login.username, realm, self._login.password)))
        session = b":".join((_md5(secret), server_nonce.encode(), self._nonce.encode()))
        key = _md5(session).hex()
        self._expected = b"rspauth=" + self._proof(key, server_nonce, f":{self._service}").encode()
        fields = (
            "charset=utf-8",
            f"username={_quoted(self._login.username)}",
            f"realm={_quoted(realm)}",
            f"nonce={_quoted(server_nonce)}",
            f"nc={NONCE_COUNT}",
            f"cnonce={_quoted(self._nonce)}",
            f"digest-uri={_quoted(self._service)}",
            f"response={self._proof(key, server_nonce, f'AUTHENTICATE:{self._service}')}",
            f"qop={QUALITY}",
        )
        return ",".join(fields).encode()

    def verify(self, last: bytes) -> None:
        """Raise DigestError unless the server's last message proves that it knows the password."""
        if not self._expected or not hmac.compare_digest(last, self._expected):
            raise DigestError("it did not prove that it knows this node's password")

    def _proof(self, key: str, server_nonce: str, what: str) -> str:
        parts = (key, server_nonce, NONCE_COUNT, self._nonce, QUALITY, _md5(what.encode()).hex())
        return _md5(":".join(parts).encode()).hex()


def _directives(challenge: bytes) -> dict[str, str]:
    try:
        text = challenge[:MAX_CHALLENGE_BYTES].decode()
    except UnicodeDecodeError:
        raise DigestError("its challenge is not text") from None
    found: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _DIRECTIVE.match(text, position)
        if match is None or match["name"].lower() in found:
            raise DigestError("its challenge is not one of DIGEST-MD5")
        quoted = match["quoted"]
        found[match["name"].lower()] = match["plain"] if quoted is None else _QUOTED_PAIR.sub(r"\1", quoted)
        position = match.end()
    return found


def _quoted(text: str) -> str:
    return '"' + _SPECIAL.sub(r"\\\1", text) + '"'


def _latin_if_possible(text: str) -> bytes:
    """Encode a text as RFC 2831 hashes it: in ISO 8859-1 where that has all of its characters."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()

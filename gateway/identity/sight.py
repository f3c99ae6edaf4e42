"""Learns from the tokens of a login that passes by whose login it is.

Rule: a name is what Kafka's own mechanism would take it for, or unknown; nothing is guessed. It
counts once the broker has accepted the login, and not before. Of a token nothing but the name is
kept.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...security.bearer_message import read_bearer_message
from ...security.principal import MAX_NAME_BYTES
from ...security.scram_server import read_client_first

JAVA_SPACES = "".join(map(chr, range(0x21)))
"""What Java's `trim` takes away."""
SUBJECT_CLAIM = "sub"
Read = Callable[[bytes], str | None]
"""Reads the name of a user from the first token of a login; None if it cannot be known."""


def plain_name(token: bytes) -> str | None:
    """Return the user of PLAIN, `authzid NUL authcid NUL passwd` (RFC 4616)."""
    parts = token.split(b"\0", 3)
    return _text(parts[1]) if len(parts) == 3 and parts[0] in (b"", parts[1]) else None


def scram_name(token: bytes) -> str | None:
    """Return the user of SCRAM. Who logs in by a delegation token is its owner, whom the token does
    not name.
    """
    first = read_client_first(token)
    return None if first is None or first.shows_token else first.name


def bearer_name(token: bytes, claim: str) -> str | None:
    """Return the user of OAUTHBEARER: a claim of the token, as Kafka's own validators take it."""
    message = read_bearer_message(token)
    parts = [] if message is None else message.token.split(".", 3)
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(f"{parts[1]}==="), object_pairs_hook=_unique)
    except (binascii.Error, ValueError, RecursionError):
        return None
    name = claims.get(claim) if isinstance(claims, dict) else None
    return name.strip(JAVA_SPACES) if isinstance(name, str) else None


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Raise ValueError for a name that stands twice, of which two readers could take each another
    one.
    """
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ValueError("a name occurs twice")
    return names


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


class Sight:
    """One login by SASL, as it passes."""

    def __init__(self, mechanism: str, claim: str = SUBJECT_CLAIM) -> None:
        """Begin a login by a mechanism; `claim` names the user in tokens of OAUTHBEARER."""
        self.mechanism = mechanism
        self.name: str | None = None
        """The user whom the client claims to be; None if that cannot be known."""
        self._claim = claim
        self._tokens = 0

    def token(self, data: bytes) -> int:
        """Read the next token, and return its number, from 1 on."""
        self._tokens += 1
        if self._tokens == 1:
            self.name = self._name(data)
        return self._tokens

    def may_be_complete(self, token: int, reply: bytes) -> bool:
        """Whether the login may be accepted by a reply without an error to this token; where its
        mechanism tells names, whether it is.
        """
        match self.mechanism:
            case "SCRAM-SHA-256" | "SCRAM-SHA-512":
                return token > 1
            case "OAUTHBEARER":
                return not reply  # anything else tells an error, which the client acknowledges
        return True

    def _name(self, data: bytes) -> str | None:
        if self.mechanism == "OAUTHBEARER":
            name = bearer_name(data, self._claim)
        else:
            read = READERS.get(self.mechanism)
            name = None if read is None else read(data)
        return name if name and len(name.encode("utf-8", "surrogatepass")) <= MAX_NAME_BYTES else None


READERS: Mapping[str, Read] = MappingProxyType(
    {"PLAIN": plain_name, "SCRAM-SHA-256": scram_name, "SCRAM-SHA-512": scram_name}
)
"""The mechanisms whose first token names the user in the same way everywhere."""

"""The message of OAUTHBEARER in which a client shows its token (RFC 7628), read without a look at
the token itself, which would need libraries for keys.
"""

import string

import msgspec

from .scram_server import message_text, read_name

SEPARATOR = "\x01"
MAX_MESSAGE_BYTES = 128 * 1024
SIGNS = frozenset(string.ascii_letters + string.digits + "-._~+/=")
"""The characters of a bearer token (RFC 6750)."""


class BearerMessage(msgspec.Struct, frozen=True):
    """The client's first message."""

    authorization_id: str
    token: str

    def __repr__(self) -> str:
        return f"BearerMessage({self.authorization_id!r})"


def read_bearer_message(token: bytes) -> BearerMessage | None:
    """Read `n,[a=name],^A` and pairs that each end in ^A, one of them `auth=Bearer <token>`, and a
    last ^A; or return None.
    """
    header, *pairs = message_text(token, MAX_MESSAGE_BYTES).split(SEPARATOR)
    flag, _, identity = header.partition(",")
    name = read_name(identity[2:-1])
    if flag != "n" or pairs[-2:] != ["", ""] or not _is_identity(identity) or name is None:
        return None
    words = [pair.partition("=") for pair in pairs[:-2]]
    if not all(key.isalpha() for key, _, _ in words):
        return None
    scheme, _, bearer = next((value for key, _, value in words if key == "auth"), "").partition(" ")
    bearer = bearer.strip(" ")
    if scheme.lower() != "bearer" or not bearer or not SIGNS.issuperset(bearer):
        return None
    return BearerMessage(name, bearer)


def _is_identity(text: str) -> bool:
    return text == "," or (text.startswith("a=") and text.endswith(",") and text.count(",") == 1 and len(text) > 3)

"""Principals, in the text form of KIP-590, `Type:name`; None for a client that has not
authenticated.

Kafka gives such a client the name `User:ANONYMOUS`, which a user can have, too. Here
`User:ANONYMOUS` is only a user who has authenticated under that name. A request that a Kafka broker
forwards for `User:ANONYMOUS` is taken for one of a client that has not authenticated, because that
one has fewer rights.
"""

from ..policies.interface import ANONYMOUS

USER = "User"
MAX_NAME_BYTES = 8 * 1024
"""The longest name of a user who logs in. Nodes forward it with each request, in a string that has
32,767 bytes at most.
"""


def user_principal(name: str) -> str:
    return f"{USER}:{name}"


def principal_from_text(text: str) -> str:
    """Check that a text is a principal, and return it. Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError("a principal is written Type:name")
    return text


def principal_from_envelope(data: bytes) -> tuple[str | None, bool]:
    """Read Kafka's binary form of a principal: version 0, type and name as compact strings, the
    token flag, tags. Return the principal, and whether a delegation token authenticated it. Raises
    ValueError.
    """
    if data[:2] != b"\0\0":
        raise ValueError("the principal is not in version 0")
    kind, position = _compact_string(data, 2)
    name, position = _compact_string(data, position)
    if position >= len(data):
        raise ValueError("the principal ends early")
    principal = principal_from_text(f"{kind}:{name}")
    return None if principal == ANONYMOUS else principal, data[position] != 0


def _compact_string(data: bytes, position: int) -> tuple[str, int]:
    """Read a compact string whose length takes at most two bytes: 16,382 bytes are enough for a
    name.
    """
    if position >= len(data):
        raise ValueError("the principal ends early")
    size = data[position]
    position += 1
    if size >= 0x80:
        if position >= len(data) or data[position] >= 0x80:
            raise ValueError("the principal's name is too long")
        size = (size & 0x7F) | data[position] << 7
        position += 1
    end = position + size - 1
    if size == 0 or end > len(data):
        raise ValueError("the principal ends early")
    return data[position:end].decode("utf-8"), end

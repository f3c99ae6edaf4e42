"""Names of those who ask. KIP-590's text form is `Type:name`; whoever has not authenticated is `User:ANONYMOUS`.

Inside, an unauthenticated caller is None: `principal_text` and `principal_from_text` are the only places that translate.
"""

ANONYMOUS = "User:ANONYMOUS"
USER = "User"


def user_principal(name: str) -> str:
    return f"{USER}:{name}"


def principal_text(principal: str | None) -> str:
    """As it travels and as it is logged."""
    return ANONYMOUS if principal is None else principal


def principal_from_text(text: str) -> str | None:
    """None for the anonymous one. Raises ValueError for what is no principal."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError("a principal is written Type:name")
    return None if text == ANONYMOUS else text


def principal_from_envelope(data: bytes) -> str | None:
    """Kafka's binary form: version 0, type and name as compact strings, the token flag, tags. Raises ValueError."""
    if data[:2] != b"\0\0":
        raise ValueError("the principal is not in version 0")
    kind, position = _compact_string(data, 2)
    name, position = _compact_string(data, position)
    if position >= len(data):
        raise ValueError("the principal ends early")
    return principal_from_text(f"{kind}:{name}")


def _compact_string(data: bytes, position: int) -> tuple[str, int]:
    """One whose length fits two bytes of a varint: 16,382 bytes are enough for a name."""
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

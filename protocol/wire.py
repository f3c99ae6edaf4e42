"""Functions that generated code calls for the rarer parts of the wire format: long varints, tagged
fields, errors.

Each takes time and memory in proportion to the bytes that it consumes. It raises nothing but
`ProtocolError` and, if the bytes end too early, `IndexError`, which the generated code turns into
`MalformedMessage`.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from .errors import MalformedMessage, UnencodableMessage

SHORT_ARRAY = 17  # arrays of fewer numbers are packed by a prepared Struct; replicas of a partition are
MAX_ELEMENTS = 100_000
"""How many elements all arrays of a client's request may have together. To decode as many takes at
most a sixth of a second.
"""
NUMBERS_AN_ELEMENT = 16
"""How many numbers in an array count as one element, because they are decoded at once."""
MAX_TAGS = 1_000
"""How many tagged fields one struct may have."""
MAX_TEXT_BYTES = 32767  # Kafka keeps the limit of the classic form in the compact one
MAX_UINT31 = 2**31  # Kafka reads a varint as a signed int: a length from 2**31 on is negative, which means null


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint: seven bits a byte, the least significant first. The top bit is set
    in all bytes but the last.
    """
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


# Nearly every length is short. 4,096 entries take 0.15 MB and save a call.
SHORT_UVARINTS = tuple(uvarint(value) for value in range(4096))


def read_uvarint(data: bytes, start: int) -> tuple[int, int]:
    """Return the unsigned 32-bit varint at `start`, and the position of its last byte."""
    value = 0
    for index in range(5):
        byte = data[start + index]
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value & 0xFFFFFFFF, start + index
    raise MalformedMessage("a varint of more than five bytes")


def read_length(data: bytes, start: int) -> tuple[int, int]:
    """Return a compact length plus one, never null, and the position of its last byte."""
    value, last = read_uvarint(data, start)
    if value == 0 or value > MAX_UINT31:
        raise MalformedMessage("null where a value is required")
    return value, last


def read_nullable_length(data: bytes, start: int) -> tuple[int, int]:
    """Return a compact length plus one, zero for null, and the position of its last byte."""
    value, last = read_uvarint(data, start)
    return (0 if value > MAX_UINT31 else value), last


def read_text_length(data: bytes, start: int) -> tuple[int, int]:
    """Do as `read_length` does, for a string of at most MAX_TEXT_BYTES bytes."""
    value, last = read_length(data, start)
    return _within_text(value), last


def read_nullable_text_length(data: bytes, start: int) -> tuple[int, int]:
    """Do as `read_nullable_length` does, for a string of at most MAX_TEXT_BYTES bytes."""
    value, last = read_nullable_length(data, start)
    return _within_text(value), last


def _within_text(value: int) -> int:
    if value > MAX_TEXT_BYTES + 1:
        raise MalformedMessage(f"a string of {value - 1} bytes, {MAX_TEXT_BYTES} are allowed")
    return value


def lenient_text(data: bytes) -> str:
    """Decode text, with U+FFFD for bytes that are not UTF-8. Each of them takes three bytes in an
    answer, where the text must fit too.
    """
    text = data.decode("utf-8", "replace")
    if len(data) > MAX_TEXT_BYTES // 3 and len(text.encode()) > MAX_TEXT_BYTES:
        raise MalformedMessage(f"a string of {len(data)} bytes that are no UTF-8")
    return text


def text_uvarint(value: int) -> bytes:
    """Encode the length plus one of a string that is not short."""
    if value > MAX_TEXT_BYTES + 1:
        raise UnencodableMessage(f"a string of {value - 1} bytes, {MAX_TEXT_BYTES} are allowed")
    return uvarint(value)


def too_many(count: int, left: int) -> MalformedMessage:
    return MalformedMessage(f"an array announces {count} elements, {max(left, 0)} bytes are left")


def too_many_elements() -> MalformedMessage:
    return MalformedMessage(f"more than {MAX_ELEMENTS} elements in one request")


def null_array() -> MalformedMessage:
    return MalformedMessage("null where a value is required")


def read_tags(data: bytes, offset: int) -> tuple[dict[int, bytes], int]:
    """Return the tagged fields whose count is at `offset`, and the position after them. They must
    be in ascending order without duplicates (KIP-482).
    """
    count, last = read_uvarint(data, offset)
    offset = last + 1
    if count * 2 > len(data) - offset:
        raise too_many(count, len(data) - offset)
    if count > MAX_TAGS:
        raise MalformedMessage(f"{count} tagged fields, {MAX_TAGS} are allowed")
    tags: dict[int, bytes] = {}
    previous = -1
    for _ in range(count):
        tag, last = read_uvarint(data, offset)
        if tag <= previous:
            raise MalformedMessage(f"the tagged field {tag} stands behind {previous}")
        previous = tag
        size, last = read_uvarint(data, last + 1)
        offset = last + 1 + size
        if offset > len(data):
            raise MalformedMessage(f"the tagged field {tag} announces {size} bytes, {len(data) - last - 1} are left")
        tags[tag] = data[last + 1 : offset]
    return tags, offset


def write_tags(tags: dict[int, bytes]) -> bytes:
    """Encode the section of tagged fields at the end of a struct, in ascending order."""
    out = [uvarint(len(tags))]
    for tag in sorted(tags):
        value = tags[tag]
        out += (uvarint(tag), uvarint(len(value)), value)
    return b"".join(out)


def tag_not_used_up(tag: int) -> MalformedMessage:
    return MalformedMessage(f"the tagged field {tag} is longer or shorter than its value")


def not_in_version(struct_name: str, field: str) -> UnencodableMessage:
    return UnencodableMessage(f"{struct_name}.{field} has a value that this version cannot carry")


def check_uuid(value: bytes) -> bytes:
    if len(value) != 16:
        raise UnencodableMessage(f"a UUID has 16 bytes, not {len(value)}")
    return value


@cache
def packers(code: str, prefix: str) -> tuple[Callable[..., bytes], ...]:
    """Return packers for short arrays of numbers: the nth packs a count and n elements."""
    return tuple(struct.Struct(f">{prefix}{count}{code}").pack for count in range(SHORT_ARRAY))


@cache
def unpackers(code: str) -> tuple[Callable[[bytes, int], tuple[Any, ...]], ...]:
    """Return unpackers for short arrays of numbers: the nth unpacks n elements."""
    return tuple(struct.Struct(f">{count}{code}").unpack_from for count in range(SHORT_ARRAY))

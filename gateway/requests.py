"""Reads what the gateway needs of a request that it otherwise leaves alone: its head."""

import struct

import msgspec

from ..protocol.api_keys import ApiKey
from ..protocol.errors import MalformedMessage
from ..protocol.header import REQUEST_START
from ..protocol.wire import read_uvarint
from .frames import FrameReader

HEAD_BYTES = 1024
"""How many bytes of a request are looked at to find what is sought, at first."""
MOST_HEAD_BYTES = 128 * 1024
"""A client id, tags and a transactional id are not longer together."""
_INT16 = struct.Struct(">h")
PRODUCE_HAS_TRANSACTIONS_SINCE, PRODUCE_IS_FLEXIBLE_SINCE = 3, 9


class RequestHead(msgspec.Struct, frozen=True):
    """The first bytes of a request."""

    api_key: int
    version: int
    correlation_id: int
    has_answer: bool = True
    """False for Produce with `acks=0`, which has no response."""


async def read_head(frames: FrameReader) -> RequestHead:
    """Read the head of the frame that was begun, without taking it.

    Raises:
        MalformedMessage: the bytes are no request.
        Disconnected: the connection ended.
    """
    start = await frames.look(REQUEST_START.size)
    if len(start) < REQUEST_START.size:
        raise MalformedMessage(f"{len(start)} bytes are too few for a request's header")
    key, version, correlation_id = REQUEST_START.unpack(start)
    if key != ApiKey.PRODUCE:
        return RequestHead(key, version, correlation_id)
    return RequestHead(key, version, correlation_id, has_answer=await _acks(frames, version) != 0)


async def _acks(frames: FrameReader, version: int) -> int:
    count = HEAD_BYTES
    while True:
        head = await frames.look(count)
        try:
            return _acks_in(head, version)
        except (IndexError, struct.error):  # the bytes end before the number
            if len(head) < count or count >= MOST_HEAD_BYTES:
                raise MalformedMessage("a Produce request without a number of acknowledgements") from None
            count = MOST_HEAD_BYTES


def _acks_in(head: bytes, version: int) -> int:
    """Return the acknowledgements that the head of a Produce request asks for."""
    offset = _after_string(head, REQUEST_START.size)  # the client id has the classic form in every version
    if version >= PRODUCE_IS_FLEXIBLE_SINCE:
        offset = _after_tags(head, offset)
        length, last = read_uvarint(head, offset)
        offset = last + 1 + max(0, length - 1)
    elif version >= PRODUCE_HAS_TRANSACTIONS_SINCE:
        offset = _after_string(head, offset)
    acks: int = _INT16.unpack_from(head, offset)[0]
    return acks


def _after_string(head: bytes, offset: int) -> int:
    length: int = _INT16.unpack_from(head, offset)[0]
    return offset + _INT16.size + max(0, length)


def _after_tags(head: bytes, offset: int) -> int:
    count, last = read_uvarint(head, offset)
    for _ in range(count):
        _, last = read_uvarint(head, last + 1)
        length, last = read_uvarint(head, last + 1)
        last += length
    return last + 1

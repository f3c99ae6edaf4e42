"""Puts the gateway's addresses into the responses to Produce, Fetch, ShareFetch and
ShareAcknowledge, which name the endpoints of leaders that have moved (KIP-951, KIP-932).

The endpoints stand at the very end of a response, behind all records, and the size of the response
at its beginning: in a tagged field, or, where records are shared, before the tagged fields. Since
a response passes in pieces, its end has to keep its length: what the new addresses have less than
the old ones is filled with a tagged field that nobody knows, and endpoints that would need more are
left out. A client that misses one asks for Metadata.
"""

import contextlib
from collections.abc import Iterator, Mapping

import msgspec

from ..client.configuration import Address
from ..protocol.errors import MalformedMessage
from ..protocol.wire import read_uvarint, uvarint
from .cluster import UpstreamCluster
from .frames import FrameReader, FrameWriter

NODE_ENDPOINTS = 0
"""The tag of the endpoints."""
FILLER = 1_000_000
"""The tag of the field that fills. Kafka has none with such a number."""
MOST_TAIL_BYTES = 1024 * 1024
"""How long the end of a response may be: endpoints of some ten thousand brokers."""
MOST_VARINT_BYTES = 5
NO_ENDPOINTS = uvarint(1)
TOO_SHORT = "a response ends before its last field"
_UUID, _INT16, _INT32, _INT64 = 16, 2, 4, 8

TEXT, TAGS, NUMBER, BYTES = "text", "tags", "number", "bytes"
"""A string or bytes, null or not; the tagged fields at the end of a struct; and what these have: a
number, and bytes behind their number.
"""
Layout = tuple["int | str | Layout", ...]
"""The form of a struct: a number of bytes, TEXT, TAGS, or an array of structs of a form."""

RECORD_ERROR: Layout = (_INT32, TEXT, TAGS)
PRODUCED: Layout = (_INT32 + _INT16 + 3 * _INT64, RECORD_ERROR, TEXT, TAGS)
ABORTED: Layout = (2 * _INT64, TAGS)
FETCHED: Layout = (_INT32 + _INT16 + 3 * _INT64, ABORTED, _INT32, TEXT, TAGS)
LEADER: Layout = (_INT32 + _INT32, TAGS)
ACQUIRED: Layout = (_INT64 + _INT64 + _INT16, TAGS)
SHARED: Layout = (_INT32 + _INT16, TEXT, _INT16, TEXT, *LEADER, TEXT, ACQUIRED, TAGS)
ACKNOWLEDGED: Layout = (_INT32 + _INT16, TEXT, *LEADER, TAGS)
HEADER: Layout = (_INT32, TAGS)
TAG: Layout = (NUMBER, BYTES)


class ResponseTail(msgspec.Struct, frozen=True):
    """How a response with endpoints ends."""

    layout: Layout
    """The form of the response, but for its header and its end, where the endpoints stand."""
    is_tagged: bool = True
    """Whether they stand in the last tagged fields, or before these."""


PRODUCE: Mapping[int, ResponseTail] = {
    **dict.fromkeys(range(10, 13), ResponseTail(((TEXT, PRODUCED, TAGS), _INT32))),
    13: ResponseTail(((_UUID, PRODUCED, TAGS), _INT32)),
}
FETCH: Mapping[int, ResponseTail] = dict.fromkeys(
    range(16, 19), ResponseTail((_INT32 + _INT16 + _INT32, (_UUID, FETCHED, TAGS)))
)
SHARE_FETCH: Mapping[int, ResponseTail] = dict.fromkeys(
    (1, 2), ResponseTail((_INT32 + _INT16, TEXT, _INT32, (_UUID, SHARED, TAGS)), is_tagged=False)
)
SHARE_ACKNOWLEDGE: Mapping[int, ResponseTail] = {
    1: ResponseTail((_INT32 + _INT16, TEXT, (_UUID, ACKNOWLEDGED, TAGS)), is_tagged=False),
    2: ResponseTail((_INT32 + _INT16, TEXT, _INT32, (_UUID, ACKNOWLEDGED, TAGS)), is_tagged=False),
}


async def pass_readdressed(
    tail: ResponseTail, brokers: UpstreamCluster, frames: FrameReader, client: FrameWriter
) -> None:
    """Pass a response that was begun on to a client, with the gateway's addresses at its end.
    Raises MalformedMessage, Disconnected.
    """
    await client.flush()
    await _Response(frames, client).skip((_INT32, *HEADER, *tail.layout))  # first comes the size
    if frames.left > MOST_TAIL_BYTES:
        raise MalformedMessage(f"a response that ends in {frames.left} bytes of endpoints")
    readdress = with_tagged if tail.is_tagged else with_untagged
    await client.send(await readdress(await frames.rest(), brokers))


class _Response:
    """A response that passes while its form is read. What was read of it already is walked through
    without waiting, as it costs a response of many partitions the most.
    """

    def __init__(self, frames: FrameReader, client: FrameWriter) -> None:
        self._frames = frames
        self._client = client
        self._data = b""
        """The bytes that were read, in which the response goes from `_begin` to `_end`."""
        self._begin = self._end = 0
        self._at = 0
        """How far it was walked through; beyond `_end` if that has not been read yet."""

    async def skip(self, layout: Layout) -> None:
        for _ in self._walk(layout):
            await self._read()
        await self._pass()

    async def _read(self) -> None:
        """Pass on what was walked through, and read as many bytes as a number may have."""
        await self._pass()
        await self._frames.peek(MOST_VARINT_BYTES)
        self._data, self._begin, self._end = self._frames.buffered
        self._at = self._begin

    async def _pass(self) -> None:
        count = self._at - self._begin
        if count > self._frames.left:
            raise MalformedMessage(TOO_SHORT)
        while count:
            piece = await self._frames.piece(count)
            count -= len(piece)
            await self._client.keep(piece)
        self._begin = self._at

    def _walk(self, layout: Layout) -> Iterator[None]:
        """Walk through a struct, and yield where bytes have to be read first."""
        for part in layout:
            if isinstance(part, int):
                self._at += part
                continue
            if self._at + MOST_VARINT_BYTES > self._end:
                yield
            number = self._number()
            if part == TEXT:
                self._at += max(0, number - 1)
            elif part == BYTES:
                self._at += number
            elif part == TAGS:
                for _ in range(number):
                    yield from self._walk(TAG)
            elif isinstance(part, tuple):
                for _ in range(number - 1):
                    yield from self._walk(part)

    def _number(self) -> int:
        try:
            number, last = read_uvarint(self._data, self._at)
        except IndexError:
            raise MalformedMessage(TOO_SHORT) from None
        if last >= self._end:
            raise MalformedMessage(TOO_SHORT)
        self._at = last + 1
        return number


# ------------------------------------------------------------------ the last tagged fields


class NodeEndpoint(msgspec.Struct, frozen=True):
    """Where a broker is reached, as a response says it."""

    node_id: int
    address: Address
    rest: bytes
    """The rack and the tagged fields, encoded."""


async def with_tagged(section: bytes, brokers: UpstreamCluster) -> bytes:
    """Return the last tagged fields of a response with the gateway's addresses, in as many bytes.
    Raises MalformedMessage.
    """
    with _readable():
        fields = _fields(section)
        found = fields.get(NODE_ENDPOINTS)
        if found is None:
            return section
        endpoints, _ = _endpoints(found)
    encoded = await _own(endpoints, brokers)
    others = {tag: data for tag, data in fields.items() if tag != NODE_ENDPOINTS}
    return _filled({NODE_ENDPOINTS: encoded, **others}, len(section)) or _filled(others, len(section)) or b""


async def with_untagged(section: bytes, brokers: UpstreamCluster) -> bytes:
    """Return the endpoints of a response, and its tagged fields behind them, with the gateway's
    addresses, in as many bytes. Raises MalformedMessage.
    """
    with _readable():
        endpoints, end = _endpoints(section)
        fields = _fields(section[end:])
    for encoded in (await _own(endpoints, brokers), NO_ENDPOINTS):
        filled = _filled(fields, len(section) - len(encoded))
        if filled is not None:
            return encoded + filled
    raise MalformedMessage("the end of a response cannot be written in its length")


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (IndexError, UnicodeDecodeError) as error:
        raise MalformedMessage("the end of a response cannot be read") from error


async def _own(endpoints: list[NodeEndpoint], brokers: UpstreamCluster) -> bytes:
    """Return the endpoints with the gateway's addresses, encoded, without those it does not stand
    for.
    """
    await brokers.learn({each.node_id: each.address for each in endpoints})
    own = [(each, brokers.advertised(each.node_id)) for each in endpoints]
    return _encoded_endpoints([(each, address) for each, address in own if address is not None])


def _fields(section: bytes) -> dict[int, bytes]:
    count, last = read_uvarint(section, 0)
    fields = {}
    for _ in range(count):
        tag, last = read_uvarint(section, last + 1)
        size, last = read_uvarint(section, last + 1)
        fields[tag] = section[last + 1 : last + 1 + size]
        last += size
    if last + 1 != len(section):
        raise IndexError
    return fields


def _endpoints(data: bytes) -> tuple[list[NodeEndpoint], int]:
    count, last = read_uvarint(data, 0)
    endpoints = []
    for _ in range(count - 1):
        start = last + 1
        size, last = read_uvarint(data, start + _INT32)
        host_ends = last + size
        host = data[last + 1 : host_ends].decode()
        port = int.from_bytes(data[host_ends : host_ends + _INT32], "big", signed=True)
        rest = host_ends + _INT32
        size, last = read_uvarint(data, rest)  # the rack, which may be null
        last = _after_tags(data, last + max(0, size - 1) + 1)
        node_id = int.from_bytes(data[start : start + _INT32], "big", signed=True)
        endpoints.append(NodeEndpoint(node_id, Address(host, port), data[rest : last + 1]))
    return endpoints, last + 1


def _after_tags(data: bytes, start: int) -> int:
    """Return the position of the last byte of the tagged fields at `start`."""
    count, last = read_uvarint(data, start)
    for _ in range(count):
        _, last = read_uvarint(data, last + 1)
        size, last = read_uvarint(data, last + 1)
        last += size
    return last


def _encoded_endpoints(endpoints: list[tuple[NodeEndpoint, Address]]) -> bytes:
    parts = [uvarint(len(endpoints) + 1)]
    for endpoint, address in endpoints:
        host = address.host.encode()
        parts += [
            endpoint.node_id.to_bytes(_INT32, "big", signed=True),
            uvarint(len(host) + 1),
            host,
            address.port.to_bytes(_INT32, "big", signed=True),
            endpoint.rest,
        ]
    return b"".join(parts)


def _filled(fields: Mapping[int, bytes], size: int) -> bytes | None:
    """Return tagged fields in exactly `size` bytes; None if they need more."""
    body = b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in sorted(fields.items()))
    count = uvarint(len(fields))
    missing = size - len(count) - len(body)
    if missing < 0:
        return None
    if missing <= MOST_VARINT_BYTES - len(count):
        return _widened(count, missing) + body
    count, tag = uvarint(len(fields) + 1), uvarint(FILLER)
    left = size - len(count) - len(body) - len(tag)
    for width in range(1, MOST_VARINT_BYTES + 1):
        filled = left - width
        if filled >= 0 and len(uvarint(filled)) <= width:
            shortest = uvarint(filled)
            return count + body + tag + _widened(shortest, width - len(shortest)) + bytes(filled)
    return None


def _widened(number: bytes, by: int) -> bytes:
    """Return an encoded number in more bytes, as readers of Kafka's protocol take it, too."""
    if not by:
        return number
    return number[:-1] + bytes([number[-1] | 0x80]) + b"\x80" * (by - 1) + b"\0"

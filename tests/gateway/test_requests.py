"""The gateway reads no more of a request than its head, and of Produce whether it has a
response.
"""

import struct

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.gateway.frames import FrameReader
from minicontroller.gateway.requests import RequestHead, read_head
from minicontroller.network.transport import Disconnected
from minicontroller.protocol.errors import MalformedMessage
from minicontroller.protocol.wire import uvarint
from tests.gateway.test_frames import Pipe, framed

PRODUCE, FETCH = 0, 1
NAMES = st.none() | st.text(max_size=40) | st.just("x" * 20_000)
TAGS = st.dictionaries(st.integers(0, 2**32 - 1), st.binary(max_size=300), max_size=4)


def classic(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def compact(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    data = text.encode()
    return uvarint(len(data) + 1) + data


def produce(version: int, client: str | None, tags: dict[int, bytes], transaction: str | None, acks: int) -> bytes:
    head = struct.pack(">hhi", PRODUCE, version, 7) + classic(client)
    if version >= 9:
        head += uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in tags.items())
        head += compact(transaction)
    elif version >= 3:
        head += classic(transaction)
    return head + struct.pack(">hi", acks, 30_000)


def head_of(frame: bytes) -> RequestHead:
    async def read() -> RequestHead:
        frames = FrameReader(Pipe([framed(frame)]), 1 << 20)
        await frames.begin()
        return await read_head(frames)

    return trio.run(read)


@given(st.integers(0, 12), NAMES, TAGS, NAMES, st.sampled_from([-1, 0, 1]))
def test_acks(version: int, client: str | None, tags: dict[int, bytes], transaction: str | None, acks: int) -> None:
    """Whatever stands before it, a Produce request with `acks=0` is known to have no response."""
    head = head_of(produce(version, client, tags, transaction, acks) + b"records")
    assert head == RequestHead(PRODUCE, version, 7, has_answer=acks != 0)


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Any frame has a head or is no request; nothing else comes of it."""
    try:
        head = head_of(data)
    except MalformedMessage:
        assert len(data) < 8 or data[:2] == b"\0\0"
    else:
        assert struct.pack(">hhi", head.api_key, head.version, head.correlation_id) == data[:8]
        assert head.has_answer or data[:2] == b"\0\0"


def test_a_head_that_never_ends() -> None:
    """A Produce request whose tags would fill the memory is refused when its head is too long."""
    endless = struct.pack(">hhi", PRODUCE, 9, 7) + classic("c") + uvarint(1) + uvarint(0) + uvarint(2**31 - 1)
    with pytest.raises(MalformedMessage, match="without a number of acknowledgements"):
        head_of(endless + bytes(300_000))


async def test_an_end_within_the_head() -> None:
    """A client that goes within the head of a request has disconnected."""
    frames = FrameReader(Pipe([struct.pack(">i", 100), b"\0\0\0\x0b"]), 1000)
    await frames.begin()
    with pytest.raises(Disconnected):
        await read_head(frames)

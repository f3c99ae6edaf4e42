"""Snappy and LZ4 by cramjam, which takes 3 MiB of memory: it is imported when a batch needs it."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice

import cramjam

from .errors import CompressionError, TooManyBytesError

LZ4_MAGIC = 0x184D2204
LZ4_IS_INDEPENDENT = 0x20
LZ4_HAS_DICTIONARY, LZ4_HAS_CHECKSUM, LZ4_HAS_SIZE, LZ4_HAS_BLOCK_CHECKSUMS = 0x01, 0x04, 0x08, 0x10
LZ4_BLOCK_BYTES = 64 << 10
LZ4_FRAME = b"\x04\x22\x4d\x18\x60\x40\x82"
"""The head of a frame of independent blocks of at most 64 KiB, with its checksum."""
LZ4_HEADS = {
    (flags & LZ4_HAS_BLOCK_CHECKSUMS, size_bits): struct.pack("<IBBB", LZ4_MAGIC, flags, size_bits << 4, checksum)
    for flags, checksums in ((0x60, b"\x82\xfb\x51\x73"), (0x70, b"\xad\x84\x33\x72"))
    for size_bits, checksum in enumerate(checksums, 4)
}
"""Heads of frames of independent blocks, by whether the blocks have checksums and by the code of
their size, with the heads' own checksums.
"""
LZ4_AT_ONCE_BYTES = 8 << 20
"""A frame that becomes no larger is decompressed at once."""
LZ4_STORED = 1 << 31
"""A block with this bit is not compressed."""
_LZ4_SIZE = struct.Struct("<I")
SNAPPY_MAGIC = b"\x82SNAPPY\x00"
"""The start of what Java's snappy writes: blocks, each with its length before it."""
SNAPPY_HEADER_BYTES = 16
SNAPPY_BLOCK_BYTES = 32 << 10


def to_lz4(data: bytes, level: int) -> Iterator[bytes]:
    """Yield a frame of blocks that do not need each other: Java's clients read no other. Each block
    is taken from a frame of its own, which is the only form that cramjam gives a level.
    """
    yield LZ4_FRAME
    for at in range(0, len(data), LZ4_BLOCK_BYTES):
        frame = bytes(cramjam.lz4.compress(data[at : at + LZ4_BLOCK_BYTES], level=level))
        (size,) = _LZ4_SIZE.unpack_from(frame, len(LZ4_FRAME))
        yield frame[len(LZ4_FRAME) :][: 4 + (size & ~LZ4_STORED)]
    yield _LZ4_SIZE.pack(0)


def to_snappy(data: bytes) -> Iterator[bytes]:
    yield SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
    for at in range(0, len(data), SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + SNAPPY_BLOCK_BYTES]))
        yield struct.pack(">i", len(block)) + block


def from_snappy(data: bytes, most: int) -> Iterator[bytes]:
    if not data.startswith(SNAPPY_MAGIC):
        yield _from_snappy_block(data, most)
        return
    at = SNAPPY_HEADER_BYTES
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        at += 4
        if not 0 <= size <= len(data) - at:
            raise CompressionError(f"a snappy block of {size} bytes does not fit")
        yield _from_snappy_block(data[at : at + size], most)
        at += size


def _from_snappy_block(data: bytes, most: int) -> bytes:
    with _errors_of_cramjam():
        if (size := int(cramjam.snappy.decompress_raw_len(data))) > most:
            raise TooManyBytesError(f"a Snappy block of {size} bytes is more than {most}")
        return bytes(cramjam.snappy.decompress_raw(data))


def from_lz4(data: bytes) -> Iterator[bytes]:
    """Decompress one frame, and leave out what is behind it, as Kafka does. Of a frame that may
    become large each block is taken alone, as a frame of its own.
    """
    magic, flags, descriptor = struct.unpack_from("<IBB", data)
    if magic != LZ4_MAGIC:
        raise CompressionError("the data is no LZ4 frame")
    size_bits = descriptor >> 4 & 7
    at_once = LZ4_AT_ONCE_BYTES >> (8 + 2 * size_bits)
    first_at = 7 + (8 if flags & LZ4_HAS_SIZE else 0) + (4 if flags & LZ4_HAS_DICTIONARY else 0)
    blocks = _lz4_blocks(data, first_at, 4 if flags & LZ4_HAS_BLOCK_CHECKSUMS else 0)
    first = list(islice(blocks, at_once + 1))
    if len(first) <= at_once:
        end = (first[-1][1] if first else first_at) + 4 + (4 if flags & LZ4_HAS_CHECKSUM else 0)
        yield _frame(data[:end])
        return
    head = LZ4_HEADS.get((flags & LZ4_HAS_BLOCK_CHECKSUMS, size_bits))
    if head is None or not flags & LZ4_IS_INDEPENDENT:
        raise CompressionError("the blocks of the LZ4 frame need each other, or their size is none of LZ4's")
    for start, stop in chain(first, blocks):
        yield _frame(b"".join((head, data[start:stop], _LZ4_SIZE.pack(0))))


def _frame(data: bytes) -> bytes:
    with _errors_of_cramjam():
        return bytes(cramjam.lz4.decompress(data))


def _lz4_blocks(data: bytes, at: int, checksum_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield where each block of a frame begins, with its size, and where it ends."""
    while size := _LZ4_SIZE.unpack_from(data, at)[0]:
        start = at
        at += 4 + (size & ~LZ4_STORED) + checksum_bytes
        yield start, at


@contextmanager
def _errors_of_cramjam() -> Iterator[None]:
    try:
        yield
    except cramjam.DecompressionError as error:
        raise CompressionError(str(error)) from None

"""The codecs of record batches (Kafka: CompressionType)."""

import struct
import zlib
from collections.abc import Callable, Iterator

import zstandard

from .errors import CompressionError, TooManyBytesError

LARGEST_BYTES = 100 << 20
"""A batch that becomes larger is refused, because a few bytes could name gigabytes. A producer that
does not compress cannot send more in one request (`socket.request.max.bytes`).
"""
PART_BYTES = 64 << 10
"""About the size of the parts in which a batch is decompressed and compressed, so that other tasks
can run in between, and no batch is in memory as a whole.
"""
LARGEST_ZSTD_WINDOW = 128 << 20
GZIP_MAGIC = b"\x1f\x8b"
GZIP_HEADER = GZIP_MAGIC + b"\x08" + bytes(6) + b"\xff"
LZ4_LEVEL, ZSTD_LEVEL = 9, 3
"""Kafka's defaults, of which zlib's is -1."""


def decompressed(codec: int, data: bytes) -> bytes:
    """Return the records of a batch whose attributes name this codec. Raises CompressionError, for
    a codec that Kafka does not have, too.
    """
    return b"".join(decompressed_parts(codec, data))


def decompressed_parts(codec: int, data: bytes) -> Iterator[bytes]:
    """Yield the records of a batch part by part. Raises as `decompressed` does."""
    if codec == 0:
        yield data
        return
    if codec not in _DECOMPRESS:
        raise CompressionError(f"there is no codec {codec}")
    total = 0
    try:
        for part in _DECOMPRESS[codec](data):
            total += len(part)
            check_size(total)
            yield part
    except (zlib.error, zstandard.ZstdError, struct.error, IndexError) as error:
        raise CompressionError(str(error)) from None


def check_size(size: int) -> None:
    if size > LARGEST_BYTES:
        raise TooManyBytesError(f"the records take more than {LARGEST_BYTES} bytes")


def compressed(codec: int, data: bytes, level: int | None = None) -> bytes:
    """Return records as a batch with this codec has them. Snappy has no levels."""
    return b"".join(compressed_parts(codec, data, level))


def compressed_parts(codec: int, data: bytes, level: int | None = None) -> Iterator[bytes]:
    match codec:
        case 0:
            yield data
        case 1:
            yield from _to_gzip(data, -1 if level is None else level)
        case 2:
            from .block_codecs import to_snappy

            yield from to_snappy(data)
        case 3:
            from .block_codecs import to_lz4

            yield from to_lz4(data, LZ4_LEVEL if level is None else level)
        case _:
            yield from _to_zstd(data, ZSTD_LEVEL if level is None else level)


def parts_of(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def _to_gzip(data: bytes, level: int) -> Iterator[bytes]:
    """Yield a member that names no system it was made on, as Java's do."""
    packer = zlib.compressobj(level, wbits=-zlib.MAX_WBITS)
    yield GZIP_HEADER
    for part in parts_of(data, PART_BYTES):
        yield packer.compress(part)
    yield packer.flush()
    yield struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def _to_zstd(data: bytes, level: int) -> Iterator[bytes]:
    packer = zstandard.ZstdCompressor(level=level).compressobj(size=len(data))
    for part in parts_of(data, PART_BYTES):
        yield packer.compress(part)
    yield packer.flush()


def _gunzip(data: bytes) -> Iterator[bytes]:
    """Decompress one member after the other, and leave out what is no member behind them, as Java's
    GZIPInputStream does.
    """
    at = 0
    while not at or data.startswith(GZIP_MAGIC, at):
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while not member.eof:
            left = member.unconsumed_tail
            if not left:
                left = data[at : at + PART_BYTES]
                at += len(left)
            part = member.decompress(left, PART_BYTES)
            if not part and not left:
                raise CompressionError("the data ends within its gzip stream")
            yield part
        at -= len(member.unused_data)


def _from_snappy(data: bytes) -> Iterator[bytes]:
    from .block_codecs import from_snappy

    return from_snappy(data, LARGEST_BYTES)


def _from_lz4(data: bytes) -> Iterator[bytes]:
    from .block_codecs import from_lz4

    return from_lz4(data)


def _from_zstd(data: bytes) -> Iterator[bytes]:
    reader = zstandard.ZstdDecompressor(max_window_size=LARGEST_ZSTD_WINDOW).stream_reader(
        data, read_across_frames=True
    )
    while part := reader.read(PART_BYTES):
        yield part


_DECOMPRESS: dict[int, Callable[[bytes], Iterator[bytes]]] = {
    1: _gunzip,
    2: _from_snappy,
    3: _from_lz4,
    4: _from_zstd,
}

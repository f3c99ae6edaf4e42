"""The codecs: what they make of a few bytes is bounded."""

import struct
import tracemalloc
import zlib
from contextlib import suppress
from random import Random

import cramjam
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from minicontroller.records import block_codecs, compression
from minicontroller.records.compression import compressed, decompressed
from minicontroller.records.errors import CompressionError

MIB = 1 << 20
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = (GZIP, SNAPPY, LZ4, ZSTD)


@given(st.binary(max_size=2000), st.integers(0, 200), st.sampled_from(CODECS))
def test_each_codec_gives_back_what_it_got(data: bytes, times: int, codec: int) -> None:
    assert decompressed(codec, compressed(codec, data * times)) == data * times


@pytest.mark.parametrize("codec", CODECS)
def test_bombs_are_refused_in_bounded_memory(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = compressed(codec, bytes(64 * MIB))
    monkeypatch.setattr(compression, "LARGEST_BYTES", MIB)
    tracemalloc.start()
    with pytest.raises(CompressionError):
        decompressed(codec, bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(bomb) + 4 * MIB


@pytest.mark.parametrize("codec", CODECS)
def test_members_that_follow_each_other_are_bounded_together(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST_BYTES", MIB)
    one = compressed(codec, bytes(MIB - 1))
    with_second = one + (one[block_codecs.SNAPPY_HEADER_BYTES :] if codec == SNAPPY else one)
    with suppress(CompressionError):  # or what is behind the first frame is left out
        assert len(decompressed(codec, with_second)) <= MIB


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_decompressed_or_refused(codec: int, data: bytes) -> None:
    for start in (b"", compressed(codec, b"some records" * 9)[:20]):
        with suppress(CompressionError):
            decompressed(codec, start + data)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_there_are_four_codecs(codec: int) -> None:
    with pytest.raises(CompressionError, match=f"no codec {codec}"):
        decompressed(codec, b"x")


def test_a_size_that_lies_takes_no_memory() -> None:
    lie = b"\xff\xff\xff\x7f" + bytes(20)  # a block of snappy that says it becomes 256 MiB less one
    with pytest.raises(CompressionError):
        decompressed(SNAPPY, lie)
    frame = block_codecs.LZ4_FRAME[:5] + b"\x70\x73" + struct.pack("<I", 4) + b"abcd" + bytes(4)
    with pytest.raises(CompressionError):
        decompressed(LZ4, frame)


def test_forms_of_other_clients_are_read() -> None:
    data = b"record" * 50_000
    assert decompressed(SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data  # librdkafka has no blocks
    assert decompressed(LZ4, bytes(cramjam.lz4.compress(data))) == data
    assert decompressed(ZSTD, zstandard.ZstdCompressor(write_content_size=False).compress(data)) == data
    halves = b"".join(zlib.compress(half, wbits=31) for half in (data[:99], data[99:]))
    assert decompressed(GZIP, halves + b"no member") == data


@pytest.mark.parametrize(("codec", "level"), [(GZIP, 9), (LZ4, 1), (ZSTD, 19)])
def test_levels_are_carried_out(codec: int, level: int) -> None:
    words = Random(level)
    data = b"".join(words.choice((b"some", b"words", b"again", b"otherwise")) for _ in range(20_000))
    assert decompressed(codec, compressed(codec, data, level)) == data
    assert compressed(codec, data, level) != compressed(codec, data)

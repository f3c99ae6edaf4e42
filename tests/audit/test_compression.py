"""Files compressed with gzip or Zstandard are read like others; damage is reported without a
traceback.
"""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from click.testing import CliRunner, Result
from hypothesis import example, given
from hypothesis import strategies as st

from minicontroller.audit.event import AuditEvent, encode
from minicontroller.audit.files import file_name
from minicontroller.audit.reading import read
from minicontroller.cli.commands import commands
from tests.audit.logs import CLUSTER, a_log, found
from tests.audit.test_verify import ANY_TIME

NAME = file_name(CLUSTER, 1, 1, 1)
EVENTS = a_log(20)
TEXT = b"".join(map(encode, EVENTS))

Compress = Callable[[bytes], bytes]
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"
"""A frame without content, as RFC 8878 allows it anywhere."""


def zstd(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(text)


def zstd_in_frames(text: bytes) -> bytes:
    """Compress in several frames, as programs do that write from time to time."""
    return zstd(text[:1000]) + SKIPPABLE + zstd(b"") + zstd(text[1000:])


def zstd_without_size(text: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(text)


KINDS = {
    "gzip": (".gz", gzip.compress),
    "zstd": (".zst", zstd),
    "zstd in frames": (".zst", zstd_in_frames),
    "zstd without its size": (".zst", zstd_without_size),
}
kinds = pytest.mark.parametrize(("ending", "compress"), KINDS.values(), ids=KINDS)


def put(folder: Path, ending: str, data: bytes) -> Path:
    file = folder / (NAME + ending)
    file.write_bytes(data)
    return file


def events(file: Path) -> list[AuditEvent]:
    return [each.event for each in read(file) if each.event is not None]


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(commands, ["audit", *map(str, arguments)], catch_exceptions=False)


@kinds
def test_it_is_read_like_the_others(tmp_path: Path, ending: str, compress: Compress) -> None:
    """`verify` finds nothing, and `show` and `tail` print the same as for the uncompressed file."""
    plain = put(tmp_path, "", TEXT)
    expected = [call(*how, tmp_path).output for how in (["show"], ["tail", "-n", "5"])]
    plain.unlink()
    put(tmp_path, ending, compress(TEXT))
    assert found(tmp_path) == []
    assert [call(*how, tmp_path).output for how in (["show"], ["tail", "-n", "5"])] == expected
    assert call("verify", tmp_path).exit_code == 0


@kinds
@ANY_TIME
@example(cut=0)
@example(cut=1)
@example(cut=3)
@given(cut=st.integers(min_value=0))
def test_a_file_cut_at_any_byte(ending: str, compress: Compress, cut: int) -> None:
    """A truncated file gives its first events and a report of the cut, also at a cut between two
    frames, which is at a line's end.
    """
    data = compress(TEXT)
    cut %= len(data)
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = put(folder, ending, data[:cut])
        left = events(file)
        assert left == EVENTS[: len(left)]
        assert found(folder) == ["torn"]


@kinds
@ANY_TIME
@given(position=st.integers(min_value=0), byte=st.integers(0, 255))
def test_any_byte_may_be_wrong(ending: str, compress: Compress, position: int, byte: int) -> None:
    """A file with a wrong byte is read as far as it goes, and either all is there or something is
    found.
    """
    data = bytearray(compress(TEXT))
    data[position % len(data)] = byte
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = put(folder, ending, bytes(data))
        assert events(file) == EVENTS or found(folder) != []


@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [(b"", "torn", "cut"), (b"{}\n" * 9, "unreadable", "broken"), (bytes(99), "unreadable", "broken")],
    ids=["empty", "not compressed", "zeros"],
)
def test_what_is_no_such_file(tmp_path: Path, ending: str, data: bytes, kind: str, said: str) -> None:
    """The commands say so in a sentence, with the file's name, and `verify` exits with 1."""
    file = put(tmp_path, ending, data)
    assert found(tmp_path) == [kind]
    result = call("verify", tmp_path)
    assert (result.exit_code, result.stdout.count("\n")) == (1, 1)
    assert f"{file}:1: {kind}: the file is {said}" in result.stdout
    assert f"{file}:1: the file is {said}" in call("show", file).stderr


def test_a_frame_that_wants_too_much_memory(tmp_path: Path) -> None:
    """A window of 2 GiB is not given room for: the file is said to be broken."""
    parameters = zstandard.ZstdCompressionParameters(window_log=31, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    put(tmp_path, ".zst", compressor.compress(TEXT) + compressor.flush())
    assert found(tmp_path) == ["unreadable"]


def test_a_file_that_went_away(tmp_path: Path) -> None:
    """A file that disappears while it is read is reported without a traceback."""
    for ending in ("", ".gz", ".zst"):
        (problem,) = [each.problem for each in read(tmp_path / (NAME + ending))]
        assert "No such file" in str(problem)


@kinds
@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_a_file_is_kept_twice(tmp_path: Path, ending: str, compress: Compress, share: float) -> None:
    """If a file exists plain and compressed, only the plain one is read, and this is
    reported once.
    """
    plain = put(tmp_path, "", TEXT)
    alone = [call(*how, tmp_path) for how in (["verify"], ["show"], ["tail"])]
    data = compress(TEXT)
    copy = put(tmp_path, ending, data[: int(len(data) * share)])
    note = f"{copy} is not read, because {plain.name} is in the same folder.\n"
    for before, how in zip(alone, (["verify"], ["show"], ["tail"]), strict=True):
        now = call(*how, tmp_path)
        assert (now.exit_code, now.stdout, now.stderr) == (0, before.stdout, note + before.stderr)


@pytest.mark.parametrize(
    "other", [TEXT + encode(EVENTS[0]), TEXT[1000:], b"{}\n"], ids=["longer", "a part", "nonsense"]
)
def test_what_lies_beside_is_no_copy(tmp_path: Path, other: bytes) -> None:
    """A compressed file whose content differs from the plain file beside it is reported."""
    put(tmp_path, "", TEXT)
    copy = put(tmp_path, ".gz", gzip.compress(other))
    assert found(tmp_path) == ["no-copy"]
    copy.write_bytes(b"no gzip at all")
    assert found(tmp_path) == ["no-copy"]


def test_two_compressed_copies(tmp_path: Path) -> None:
    """Without the plain file one of them is read."""
    put(tmp_path, ".gz", gzip.compress(TEXT))
    put(tmp_path, ".zst", zstd(TEXT))
    assert found(tmp_path) == []
    assert call("verify", tmp_path).stderr.endswith(f"whole: {len(EVENTS)} events of 1 epoch in 1 file\n")


@kinds
def test_it_was_compressed_since_it_was_looked_for(tmp_path: Path, ending: str, compress: Compress) -> None:
    """If a listed file was compressed in the meantime, the compressed file is read."""
    put(tmp_path, ending, compress(TEXT))
    assert events(tmp_path / NAME) == EVENTS


def test_nobody_else_pays_for_it() -> None:
    """The library for Zstandard is loaded with the first file that needs it, not with
    the command.
    """
    code = "import sys, minicontroller.cli.audit; sys.exit('zstandard' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

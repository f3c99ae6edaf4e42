"""Where files lie that the pipeline reads and writes: in a local folder, or under an address of an
object store.

Rule: everything asks a place for its file system and uses paths relative to it, so no other module
knows what kind of place it is. Credentials come from the environment, as each store's own tools
expect them, and never stand in an address.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+", re.ASCII)
SCHEMES = {"s3": "s3", "s3a": "s3", "abfs": "abfss", "abfss": "abfss", "gs": "gs", "hdfs": "hdfs"}
"""The schemes that are served, each with its form that all libraries know."""


class LocationError(ValueError):
    """A text names no place that can be used; the message is a sentence that says why."""


@dataclass(frozen=True)
class Location:
    """A folder: an absolute path on this machine, or an address such as `s3://bucket/folder`."""

    uri: str

    @classmethod
    def parse(cls, text: str) -> "Location":
        """Read a path, or an address. Raises LocationError."""
        name, is_address, rest = text.partition(":/")
        if not is_address or not SCHEME.fullmatch(name):
            return cls.local(Path(text))
        scheme = name.lower()
        if scheme == "file":
            return cls.local(Path(unquote(urlsplit(text).path)))
        if scheme not in SCHEMES:
            raise LocationError(
                f"{text}: addresses begin with {', '.join(f'{known}://' for known in SCHEMES)}, and paths with no scheme."
            )
        rest = rest.strip("/")
        if "@" in rest.partition("/")[0] and SCHEMES[scheme] != "abfss":
            raise LocationError(f"An address of {scheme}:// holds no credentials: give them by the environment.")
        if not rest:
            raise LocationError(f"{text} names no bucket.")
        return cls(f"{SCHEMES[scheme]}://{rest}")

    @classmethod
    def local(cls, path: Path) -> "Location":
        return cls(str(path.absolute()))

    @property
    def is_local(self) -> bool:
        return self.uri.startswith("/")

    @property
    def path(self) -> Path:
        """The path of a local folder."""
        assert self.is_local
        return Path(self.uri)

    def child(self, name: str) -> "Location":
        return Location(f"{self.uri}/{name}")

    def filesystem(self) -> fs.FileSystem:
        """Return the file system whose root is this place. Raises OSError if the store's library
        cannot be loaded.
        """
        return _filesystem(self.uri)

    def __str__(self) -> str:
        return self.uri


@cache
def _filesystem(uri: str) -> fs.FileSystem:
    location = Location(uri)
    if location.is_local:
        return fs.SubTreeFileSystem(uri, fs.LocalFileSystem())
    try:
        store, path = fs.FileSystem.from_uri(uri)
    except pa.ArrowException as error:
        raise OSError(f"{uri}: {error}") from None
    return fs.SubTreeFileSystem(path, store)


def output_stream(location: Location, path: str) -> pa.NativeFile:
    """Open a new file at a place for writing; folders above it are made where a store has folders.
    Raises OSError.
    """
    if location.is_local:
        (location.path / path).parent.mkdir(parents=True, exist_ok=True)
    return location.filesystem().open_output_stream(path)

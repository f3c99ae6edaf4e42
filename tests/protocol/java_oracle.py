"""Kafka's own codecs in a process of their own: `tests/java/codec-oracle`, built once for each
state of its sources.
"""

import hashlib
import json
import os
import struct
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.protocol.instances import squeezed
from tests.support.maven import CACHE, kept

PROJECT = Path(__file__).parents[1] / "java" / "codec-oracle"


class Reading(NamedTuple):
    """A message as Kafka's class reads it."""

    left: int
    written_again: bytes
    plain: dict[str, Any]


class RefusedError(Exception):
    """Kafka's class would not read the bytes; the text tells why."""


def built() -> Path:
    """The folder with the oracle's classes and jars."""
    sources = sorted(path for path in PROJECT.rglob("*") if path.is_file() and "target" not in path.parts)
    state = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    return kept(CACHE / f"codec-oracle-{state}", PROJECT / "pom.xml", "-Dbuild.folder={}", "package")


class JavaOracle:
    """Asks in turn; one process for as long as the `with` block lasts."""

    def __init__(self, libs: Path | None = None) -> None:
        """Begin with the classes of these jars of Kafka, or with those of the oracle's own."""
        folder = built()
        classpath = os.pathsep.join([str(folder / "classes"), str((libs or folder / "libs") / "*")])
        command = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath, "CodecOracle"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.communicate()  # the end of its input ends it

    def read(self, name: str, version: int, data: bytes) -> Reading:
        """Return the message that Kafka's class of that name makes of the bytes."""
        self._ask(b"r", name, version, data)
        (left,) = struct.unpack(">i", self._take(4))
        return Reading(left, self._block(), normal(json.loads(self._block())))

    def write(self, name: str, version: int, values: dict[str, Any]) -> bytes:
        """Return Kafka's class of that name, filled with these values of its JSON, as bytes."""
        self._ask(b"w", name, version, json.dumps(values).encode())
        return self._block()

    def request(self, name: str, version: int, values: dict[str, Any] | None = None) -> bytes:
        """Return a request as bytes, with a header that has the correlation id 7, and its size in
        front; with the defaults of Kafka's class of that name, or these values of its JSON.
        """
        self._ask(b"q", name, version, json.dumps(values).encode() if values is not None else b"")
        data = self._block()
        return struct.pack(">i", len(data)) + data

    def _ask(self, operation: bytes, name: str, version: int, data: bytes) -> None:
        assert self._process.stdin is not None
        encoded = name.encode()
        head = operation + struct.pack(">h", len(encoded)) + encoded + struct.pack(">hi", version, len(data))
        self._process.stdin.write(head + data)
        self._process.stdin.flush()
        if self._take(1) == b"\0":
            raise RefusedError(self._block().decode())

    def _block(self) -> bytes:
        (size,) = struct.unpack(">i", self._take(4))
        return self._take(size)

    def _take(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise EOFError("the oracle has ended; its error output tells why")
        return data


def normal(value: Any) -> Any:
    """Kafka's JSON under the names of `instances.plain`."""
    if isinstance(value, dict):
        return {squeezed(name): normal(item) for name, item in value.items()}
    if isinstance(value, list):
        return [normal(item) for item in value]
    return value

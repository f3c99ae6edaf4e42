"""The znodes below a path of a real ZooKeeper, kept up to date by a watch on all of them.

kazoo 2.11 knows no persistent watches (ZooKeeper 3.6), so that it would have to read every znode
anew after each request. The few requests that are needed are written here.
"""

import socket
import struct
from collections.abc import Iterable, Iterator
from itertools import count, islice
from types import TracebackType
from typing import Self

SESSION_MS = 60_000
GET_DATA, GET_CHILDREN, SYNC, ADD_WATCH = 4, 8, 9, 106
PERSISTENT_RECURSIVE = 1
OF_A_WATCH = -1
NO_NODE = -101
AT_ONCE = 500
"""Requests that are sent before their replies are read."""

Znodes = dict[str, bytes | None]


class ZnodeWatcher:
    """One session; `znodes` are as they were at the last `refresh`, by their path below `root`."""

    def __init__(self, connect: str, root: str = "", *, without: Iterable[str] = ()) -> None:
        """`without` are paths below `root` that do not count, with all below them."""
        host, _, port = connect.rpartition(":")
        self._root, self._without = root, tuple(without)
        self._socket = socket.create_connection((host, int(port)), timeout=SESSION_MS / 1000)
        self._stream = self._socket.makefile("rb")
        self._xids = count(1)
        self._dirty: set[str] = set()
        self.znodes: Znodes = {}
        self._send(struct.pack(">iqiqi16s?", 0, 0, SESSION_MS, 0, 16, bytes(16), False))
        self._receive()
        self._ask([(ADD_WATCH, ustring(root or "/") + struct.pack(">i", PERSISTENT_RECURSIVE))])
        self._dirty = set(self._everything())
        self.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        self._socket.close()

    def keep_alive(self) -> None:
        """Be heard of, before the session expires."""
        self._ask([(SYNC, ustring(self._root or "/"))])

    def refresh(self) -> set[str]:
        """Read what has changed, and return its paths."""
        self._ask([(SYNC, ustring(self._root or "/"))])  # its reply comes behind every earlier event
        paths = sorted(path for path in self._dirty if self._counts(path))
        self._dirty.clear()
        changed = set()
        for path, reply in zip(paths, self._ask((GET_DATA, self._path(path)) for path in paths), strict=True):
            before = (path in self.znodes, self.znodes.get(path))
            if reply is None:
                self.znodes.pop(path, None)
            else:
                self.znodes[path] = buffer(reply)
            if before != (path in self.znodes, self.znodes.get(path)):
                changed.add(path)
        return changed

    def _everything(self) -> Iterator[str]:
        level = [""]
        while level:
            replies = self._ask((GET_CHILDREN, self._path(path)) for path in level)
            level = [
                f"{path}/{child}"
                for path, reply in zip(level, replies, strict=True)
                for child in strings(reply or bytes(4))
                if self._counts(f"{path}/{child}")
            ]
            yield from level

    def _counts(self, path: str) -> bool:
        return bool(path) and not any(path == each or path.startswith(f"{each}/") for each in self._without)

    def _path(self, path: str) -> bytes:
        return ustring(self._root + path or "/") + b"\0"

    def _ask(self, requests: Iterable[tuple[int, bytes]]) -> list[bytes | None]:
        """Return the bodies of the replies; None where there is no such znode."""
        rest, replies = iter(requests), list[bytes | None]()
        while part := list(islice(rest, AT_ONCE)):
            for operation, body in part:
                self._send(struct.pack(">ii", next(self._xids), operation) + body)
            replies += [self._reply() for _ in part]
        return replies

    def _reply(self) -> bytes | None:
        while True:
            frame = self._receive()
            xid, _, error = struct.unpack_from(">iqi", frame)
            if xid == OF_A_WATCH:
                (size,) = struct.unpack_from(">i", frame, 24)
                self._dirty.add(frame[28 : 28 + size].decode().removeprefix(self._root))
                continue
            assert error in (0, NO_NODE), f"ZooKeeper answered {error}"
            return None if error else frame[16:]

    def _send(self, frame: bytes) -> None:
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def _receive(self) -> bytes:
        (size,) = struct.unpack(">i", self._stream.read(4))
        frame = self._stream.read(size)
        assert len(frame) == size, "ZooKeeper closed the connection"
        return frame


def ustring(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">i", len(data)) + data


def buffer(reply: bytes) -> bytes | None:
    (size,) = struct.unpack_from(">i", reply)
    return None if size < 0 else reply[4 : 4 + size]


def strings(reply: bytes) -> Iterator[str]:
    (number,) = struct.unpack_from(">i", reply)
    at = 4
    for _ in range(number):
        (size,) = struct.unpack_from(">i", reply, at)
        yield reply[at + 4 : at + 4 + size].decode()
        at += 4 + size

"""The bytes of the requests that the store sends to ZooKeeper, and of their answers.

Rule: pure functions of bytes. kazoo's serializer builds a named tuple and a dozen small byte
strings for each operation; here an operation is a packed header and its parts. The numbers are
ZooKeeper's (`ZooDefs.OpCode` and `KeeperException.Code`).
"""

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any

from .base import (
    HIDDEN,
    AccessDenied,
    Check,
    Create,
    Entry,
    NodeExists,
    NodeMissing,
    NodeNotEmpty,
    Operation,
    Result,
    SessionExpired,
    SetData,
    Stat,
    StoreError,
    StoreUnavailable,
    VersionConflict,
    ZnodeChange,
)

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA = 1, 2, 3, 4, 5
GET_CHILDREN, SYNC, CHECK, MULTI, MULTI_READ, SET_WATCHES = 8, 9, 13, 14, 22, 101
ERROR_RESULT = -1
EPHEMERAL, SEQUENTIAL = 1, 2

ROLLED_BACK = 0
"""The error of the operations before the one that failed."""
CONNECTION_LOSS = -4
NO_NODE = -101
NO_AUTH = -102
EXPIRED = -112
AUTHENTICATION_FAILED = -115

WATCH_XID = -1
"""The transaction number of a frame that is no answer, but the event of a watch."""
CHANGES = {1: ZnodeChange.CREATED, 2: ZnodeChange.DELETED, 3: ZnodeChange.DATA, 4: ZnodeChange.CHILDREN}
"""The events of watches by ZooKeeper's numbers (`Watcher.Event.EventType`)."""


class Unimplemented(StoreError):  # noqa: N818 - ZooKeeper's own word
    """The server is too old for this request."""


ERRORS: dict[int, type[StoreError]] = {
    CONNECTION_LOSS: StoreUnavailable,
    -6: Unimplemented,
    -7: StoreUnavailable,  # operation timeout
    NO_NODE: NodeMissing,
    NO_AUTH: AccessDenied,
    -103: VersionConflict,
    -110: NodeExists,
    -111: NodeNotEmpty,
    EXPIRED: SessionExpired,
    -114: AccessDenied,  # invalid access list: creator-only, and the session has no identity
    AUTHENTICATION_FAILED: AccessDenied,
    -118: StoreUnavailable,  # session moved
    -119: StoreUnavailable,  # the server is read-only
    -122: StoreUnavailable,  # request timeout
    -124: AccessDenied,  # the server requires a SASL login
    -127: StoreUnavailable,  # throttled
}

INT = FRAME_SIZE = Struct("!i")
LONG = Struct("!q")
REQUEST_HEADER = Struct("!iii")  # size, xid, type
REPLY_HEADER = Struct("!iqi")  # xid, zxid, error
HEADER = Struct("!iBi")  # type, done, error
HEADER_AND_INT = Struct("!iBii")
STAT = Struct("!qqqqiiiqiiq")
WATCH_EVENT = Struct("!iii")  # type, state, length of the path
NULL = INT.pack(-1)
END = HEADER.pack(-1, 1, -1)
FLAGS = tuple(INT.pack(flags) for flags in range(4))


def error_of(code: int, path: str, index: int | None = None) -> StoreError:
    """Return the store's error for an error number of the server."""
    kind = ERRORS.get(code)
    if kind is Unimplemented:
        return Unimplemented("This ZooKeeper is too old: 3.6 or newer is needed", path=path, index=index)
    if code == AUTHENTICATION_FAILED:
        return AccessDenied("ZooKeeper refuses the identity of this node", path=path, index=index)
    if kind is AccessDenied:
        text = f"ZooKeeper does not let this node use {path}: it needs the login or the certificate of the other nodes"
        return AccessDenied(text, path=path, index=index)
    if kind is None:
        return StoreError(f"ZooKeeper refuses with error {code}: {path}", path=path, index=index)
    return kind(f"{kind.__name__}: {path}", path=path, index=index)


def encode_string(text: str) -> bytes:
    encoded = text.encode()
    return INT.pack(len(encoded)) + encoded


def encode_access(entries: Sequence[tuple[int, str, str]]) -> bytes:
    """Encode an access list of (permissions, scheme, id)."""
    parts = [INT.pack(len(entries))]
    for permissions, scheme, identity in entries:
        parts += INT.pack(permissions), encode_string(scheme), encode_string(identity)
    return b"".join(parts)


READ, ALL = 1, 31
"""Permissions of an access list (ZooKeeper: `ZooDefs.Perms`)."""
OPEN = encode_access([(ALL, "world", "anyone")])
"""The access list of a znode that is open to everybody."""


def open_to_all(_path: str) -> bytes:
    """Return the access list of a new znode: everybody has all rights."""
    return OPEN


def encode_multi(operations: Sequence[Operation], full: Callable[[str], str], access: Callable[[str], bytes]) -> bytes:
    """Encode the body of a multi; `full` adds the chroot to a path, `access` returns the encoded
    access list of a new znode.
    """
    parts: list[bytes] = []
    for operation in operations:
        path = full(operation.path).encode()
        if isinstance(operation, Create):
            data = operation.data
            flags = operation.ephemeral | operation.sequential << 1
            parts += (
                HEADER_AND_INT.pack(CREATE, 0, -1, len(path)) + path,
                NULL if data is None else INT.pack(len(data)) + data,
                access(operation.path) + FLAGS[flags],
            )
        elif isinstance(operation, SetData):
            data = operation.data
            parts += (
                HEADER_AND_INT.pack(SET_DATA, 0, -1, len(path)) + path,
                NULL if data is None else INT.pack(len(data)) + data,
                INT.pack(operation.version),
            )
        else:
            code = CHECK if isinstance(operation, Check) else DELETE
            parts.append(HEADER_AND_INT.pack(code, 0, -1, len(path)) + path + INT.pack(operation.version))
    parts.append(END)
    return b"".join(parts)


def decode_multi(buffer: bytes, offset: int, operations: Sequence[Operation], chroot: str) -> list[Result]:
    """Decode the results of a multi, or raise the error of the first operation that failed."""
    results: list[Result] = []
    while True:
        code, done, _ = HEADER.unpack_from(buffer, offset)
        offset += HEADER.size
        if done:
            return results
        if code == CREATE:
            end = offset + 4 + INT.unpack_from(buffer, offset)[0]
            results.append(buffer[offset + 4 : end].decode()[len(chroot) :])
            offset = end
        elif code == SET_DATA:
            results.append(decode_stat(buffer, offset))
            offset += STAT.size
        elif code == ERROR_RESULT:
            error: int = INT.unpack_from(buffer, offset)[0]
            if error != ROLLED_BACK:
                raise error_of(error, operations[len(results)].path, len(results))
            results.append(None)
            offset += INT.size
        else:
            results.append(None)


def refusal_in_multi(buffer: bytes, offset: int, operations: Sequence[Operation]) -> StoreError | None:
    """Return the error of a multi, or None if it took effect, for callers that need no results."""
    code, done, _ = HEADER.unpack_from(buffer, offset)
    if done or code != ERROR_RESULT:
        return None
    try:
        decode_multi(buffer, offset, operations, "")
    except StoreError as error:
        return error
    return None


def encode_multi_read(kind: int, paths: Sequence[str], full: Callable[[str], str]) -> bytes:
    """Encode the body of a multi-read of `GET_DATA` or `GET_CHILDREN`, without watches."""
    parts: list[bytes] = []
    for each in paths:
        path = full(each).encode()
        parts.append(HEADER_AND_INT.pack(kind, 0, -1, len(path)) + path + b"\0")
    parts.append(END)
    return b"".join(parts)


def decode_multi_read(kind: int, buffer: bytes, offset: int, paths: Sequence[str]) -> list[Any]:
    """Decode for each path what a multi-read of this kind has: an `Entry`, HIDDEN for a znode that
    may not be read, or a sorted list of names; None for a znode that is missing.
    """
    results: list[Any] = []
    while True:
        code, done, _ = HEADER.unpack_from(buffer, offset)
        offset += HEADER.size
        if done:
            return results
        if code == GET_DATA:
            entry, offset = decode_entry(buffer, offset)
            results.append(entry)
        elif code == GET_CHILDREN:
            names, offset = decode_names(buffer, offset)
            results.append(names)
        else:
            error: int = INT.unpack_from(buffer, offset)[0]
            if error != NO_NODE and (error != NO_AUTH or kind != GET_DATA):
                raise error_of(error, paths[len(results)])
            results.append(None if error == NO_NODE else HIDDEN)
            offset += INT.size


def decode_entry(buffer: bytes, offset: int) -> tuple[Entry, int]:
    length = INT.unpack_from(buffer, offset)[0]
    offset += INT.size
    end = offset + max(length, 0)
    data = None if length < 0 else buffer[offset:end]
    return Entry(data, decode_stat(buffer, end)), end + STAT.size


def decode_names(buffer: bytes, offset: int) -> tuple[list[str], int]:
    count = INT.unpack_from(buffer, offset)[0]
    offset += INT.size
    names = []
    for _ in range(count):
        end = offset + 4 + INT.unpack_from(buffer, offset)[0]
        names.append(buffer[offset + 4 : end].decode())
        offset = end
    names.sort()
    return names, offset


def decode_stat(buffer: bytes, offset: int) -> Stat:
    czxid, mzxid, ctime, _, version, _, _, owner, *_ = STAT.unpack_from(buffer, offset)
    return Stat(version, czxid, mzxid, ctime, owner)


def decode_event(buffer: bytes, offset: int) -> tuple[ZnodeChange | None, str]:
    """Decode the event of a watch: the change, None if it is unknown, and the path with the
    chroot.
    """
    number, _state, length = WATCH_EVENT.unpack_from(buffer, offset)
    start = offset + WATCH_EVENT.size
    return CHANGES.get(number), buffer[start : start + length].decode()


def encode_set_watches(
    since: int, *, there: Iterable[str] = (), absent: Iterable[str] = (), listed: Iterable[str] = ()
) -> bytes:
    """Encode the body of a request that sets watches on znodes that are there, on znodes that are
    missing, and on lists of children. The server at once sends the event of each that a transaction
    behind `since` has changed.
    """
    parts = [LONG.pack(since)]
    for paths in (there, absent, listed):
        encoded = [encode_string(path) for path in paths]
        parts += INT.pack(len(encoded)), *encoded
    return b"".join(parts)


def zxid_of(frame: bytes) -> int:
    """Return the newest transaction that an answer shows."""
    zxid: int = REPLY_HEADER.unpack_from(frame)[1]
    return zxid

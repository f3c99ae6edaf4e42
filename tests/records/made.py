"""Batches for tests, with the headers that a producer would not send, too."""

import struct
from collections.abc import Sequence
from typing import Any

import msgspec
from crc32c import crc32c

from minicontroller.process.steps import finished
from minicontroller.records.batches import CHECKED_FROM, HEADER, HEADER_BYTES, Batch
from minicontroller.records.log import PartitionLog
from minicontroller.records.log_values import Appended, Isolation
from minicontroller.records.memory import Memory
from minicontroller.records.records import Head, Record, built
from minicontroller.records.settings import LogSettings

NOW = 1_700_000_000_000


def made(
    values: Sequence[bytes | None] = (b"a",),
    *,
    key: bytes | None = b"k",
    keys: Sequence[bytes | None] = (),
    timestamps: Sequence[int] = (),
    codec: int = 0,
    bits: int = 0,
    **head: Any,
) -> bytes:
    """A batch as a producer sends it. Timestamps are less `NOW`."""
    found = [
        Record(index, timestamps[index] if timestamps else 0, keys[index] if keys else key, value)
        for index, value in enumerate(values)
    ]
    return built(Head(attributes=codec | bits, base_timestamp=NOW, **head), found).data


def changed(data: bytes, *, content: bytes | None = None, **fields: int) -> bytes:
    """A batch with other fields of its header, or other records, and the checksum of these."""
    batch = Batch.read(data)
    content = data[HEADER_BYTES:] if content is None else content
    values = {name: value for name, value in msgspec.structs.asdict(batch).items() if name != "data"}
    values |= {"length": HEADER_BYTES - 12 + len(content)} | fields
    again = bytearray(HEADER.pack(*values.values()) + content)
    again[17:21] = struct.pack(">I", crc32c(bytes(again[CHECKED_FROM:])))
    return bytes(again)


def a_log(memory: Memory | None = None, **settings: Any) -> PartitionLog:
    log = PartitionLog("t-0", LogSettings(**settings), memory or Memory(1 << 30))
    log.begin_epoch(0)
    return log


def put(log: PartitionLog, data: bytes, *, now: int = NOW, epoch: int = 0) -> int:
    """Append, and return the first offset."""
    return appended(log, data, now=now, epoch=epoch).first_offset


def appended(log: PartitionLog, data: bytes, *, now: int = NOW, epoch: int = 0) -> Appended:
    return log.append(finished(log.check(data, now)), leader_epoch=epoch, now=now)


def everything(log: PartitionLog, offset: int = 0, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> bytes:
    """All bytes that a reader gets, request by request."""
    from minicontroller.records.batches import batches

    found = b""
    while data := log.read(max(offset, log.start), 1 << 20, isolation=isolation, at_least_one=True).data:
        found += data
        offset = list(batches(data))[-1].next_offset
    return found

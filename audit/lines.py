"""Lines of the audit log: events encoded as lines, and bytes divided into lines again.

Rule: a line is complete once its end (a newline) is there; until then it may still get one. No line
is longer than MAX_LINE_BYTES, for all writers and readers alike. Requests and topics are bounded so
that their events fit. If an event does not fit all the same, it is written without what was
requested, or as a `dropped` event, and the node's log says so.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from .event import MAX_LINE_BYTES, AuditEvent, Decision, Dropped, UnreadableLineError, decode, encode

log = logging.getLogger("minicontroller.audit")

KEPT_BYTES = 4096
"""How much of a line is kept that is too long to be an event."""
TOO_LONG = f"longer than {MAX_LINE_BYTES >> 20} MiB"
DROPPED_AS_TOO_LONG = "the event would have been too long for a line"


def encode_line(event: AuditEvent) -> bytes:
    """Encode an event as a line, with its newline, that is not longer than readers accept."""
    line = encode(event)
    if len(line) <= MAX_LINE_BYTES:
        return line
    log.error("event %d of epoch %d has %d bytes: what was asked is left out", event.sequence, event.epoch, len(line))
    if isinstance(event, Decision):
        line = encode(_without_request(event))
    return line if len(line) <= MAX_LINE_BYTES else encode(_dropped(event))


def _without_request(event: Decision) -> Decision:
    """Copy a decision without what the caller requested. Who requested it, its outcome and the
    states of the topic stay.
    """
    policy = None if event.policy is None else msgspec.structs.replace(event.policy, findings=())
    return msgspec.structs.replace(
        event,
        asked_ms=None,
        requested=None,
        entity=None,
        config_operations=None,
        config_operation_kinds=None,
        reassignments=None,
        delete_records_offsets=None,
        assumed=(),
        policy=policy,
    )


def _dropped(event: AuditEvent) -> Dropped:
    return Dropped(
        event.schema_version,
        event.cluster_id,
        event.epoch,
        event.sequence,
        event.time_ms,
        event.decided_node,
        first_sequence=event.sequence,
        last_sequence=event.sequence,
        reason=DROPPED_AS_TOO_LONG,
    )


class LineBlock(NamedTuple):
    """Consecutive lines, without their ends."""

    first: int
    """How many lines were read before this block."""
    offset: int
    """The offset of the block's first byte, in uncompressed bytes of the file."""
    lines: list[bytes]
    is_too_long: bool = False
    """Whether the block is one line that is too long, of which KEPT_BYTES are given."""


class LineReader:
    """Divides bytes into lines. After all `blocks` were iterated over, `consumed`, `count`,
    `rest` and `unfinished` say how the bytes ended.
    """

    def __init__(self, chunks: Iterable[bytes], offset: int = 0) -> None:
        """Read chunks, none larger than a line may be, that begin at `offset` of a file, where a
        line begins.
        """
        self._chunks = chunks
        self.consumed = offset
        """The offset after the last complete line."""
        self.count = 0
        """The number of complete lines."""
        self.rest = 0
        """The number of bytes after the last complete line."""
        self.unfinished = b""
        """Those bytes, or the first KEPT_BYTES of more than a line may have."""

    def blocks(self) -> Iterator[LineBlock]:
        """Yield the complete lines, in about as many blocks as there are chunks. Memory is bounded
        however long a line is.
        """
        carried = bytearray()
        """The beginning of a line whose end has not come yet."""
        left_out = 0
        """How many bytes of this line are not kept."""
        for chunk in self._chunks:
            lines = chunk.split(b"\n")
            tail = lines.pop()
            if not lines:
                carried += chunk
                if left_out or len(carried) > MAX_LINE_BYTES:
                    left_out += len(carried) - KEPT_BYTES
                    del carried[KEPT_BYTES:]
                continue
            before = len(carried) + left_out
            size = before + len(lines[0]) + 1
            lines[0] = bytes(carried) + lines[0]
            whole = before + len(chunk) - len(tail)
            if size > MAX_LINE_BYTES + 1:
                yield self._block([lines.pop(0)[:KEPT_BYTES]], size, is_too_long=True)
                whole -= size
            if lines:
                yield self._block(lines, whole)
            carried, left_out = bytearray(tail), 0
        self.rest, self.unfinished = len(carried) + left_out, bytes(carried)

    def _block(self, lines: list[bytes], size: int, *, is_too_long: bool = False) -> LineBlock:
        block = LineBlock(self.count, self.consumed, lines, is_too_long)
        self.count += len(lines)
        self.consumed += size
        return block


def decode_line(line: bytes, *, is_too_long: bool = False) -> AuditEvent:
    """Decode a line, without its end, to its event. Raises UnreadableLineError."""
    if is_too_long:
        raise UnreadableLineError(f"the line is {TOO_LONG}, so it is no event")
    return decode(line)

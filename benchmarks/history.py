"""Audit logs of any length, made of real runs of our own controllers: `python -m benchmarks.history
OUT --events 10000000`.

Rule: every line was written by a controller about something that somebody asked it
(`history_recording.py`). A long history is such runs one after the other, stretched over so many
days and dealt out to so many clusters: the cluster, the epoch, the times and the ids of topics are
put anew into each copy, nothing else. Each run begins and ends with an empty cluster, so the copies
follow each other as one history, without a gap, and `minicontroller audit verify` finds nothing in
it.
"""

import argparse
import logging
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from minicontroller.audit.event import Event, decode

from .history_recording import record

BEGAN_MS: Final = 1_767_225_600_000
"""2026-01-01: histories begin there, whenever they were made."""
DAY_MS: Final = 86_400_000
MAX_FILE_BYTES: Final = 100 << 20
BASE_REQUESTS: Final = 12_000
BASE_FAILOVERS: Final = 3
NO_ID: Final = b"AAAAAAAAAAAAAAAAAAAAAA"
URL_SAFE: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

SLOT: Final = re.compile(
    rb'(?<!\\)"(?P<key>cluster_id|epoch|time_ms|asked_ms|asked_created_ms|created_ms|topic_id)":'
    rb'(?:(?P<number>\d+)|"(?P<text>[^"]*)")'
)


class Copy(NamedTuple):
    """One run within a history."""

    cluster: bytes
    first_epoch: int
    mark: bytes
    """The first characters of its topics' ids."""
    began_ms: int
    stretch: float


class Line:
    """One event of the base, as a form to fill in."""

    def __init__(self, text: bytes, base_epoch: int, base_ms: int) -> None:
        self.epoch = decode(text).epoch
        self._parts: list[Any] = []
        pieces, last = [], 0
        for match in SLOT.finditer(text):
            start, end = match.span("number" if match["number"] else "text")
            pieces.append(text[last:start].replace(b"%", b"%%"))
            last = end
            pieces.append(b"%b" if match["number"] is None else b"%d")
            self._parts.append(_part(match["key"], match["number"] or match["text"], base_epoch, base_ms))
        self._form = b"".join((*pieces, text[last:].replace(b"%", b"%%")))

    def filled(self, copy: Copy) -> bytes:
        return self._form % tuple([part(copy) for part in self._parts])


def _part(key: bytes, value: bytes, base_epoch: int, base_ms: int) -> Any:
    if key == b"cluster_id":
        return _cluster
    if key == b"topic_id":
        return _no_id if value == NO_ID else partial(_topic_id, value[4:])
    if key == b"epoch":
        return partial(_epoch, int(value) - base_epoch)
    return partial(_time, int(value) - base_ms)


def _cluster(copy: Copy) -> bytes:
    return copy.cluster


def _no_id(_copy: Copy) -> bytes:
    return NO_ID


def _topic_id(rest: bytes, copy: Copy) -> bytes:
    return copy.mark + rest


def _epoch(index: int, copy: Copy) -> int:
    return copy.first_epoch + index


def _time(since_ms: int, copy: Copy) -> int:
    return copy.began_ms + int(since_ms * copy.stretch)


class Base:
    """The lines, nodes and epochs of one real run."""

    def __init__(self, folder: Path) -> None:
        texts = [
            line for file in sorted(folder.glob("*.ndjson")) for line in file.read_bytes().splitlines(keepends=True)
        ]
        events: list[Event] = [decode(text) for text in texts]
        self.nodes = {event.epoch: event.decided_node for event in events}
        self.first_epoch = min(self.nodes)
        self.epochs = max(self.nodes) - self.first_epoch + 1
        times = [event.time_ms for event in events]
        self.milliseconds = max(times) - min(times) + 1
        self.lines = [Line(text, self.first_epoch, min(times)) for text in texts]

    def __len__(self) -> int:
        return len(self.lines)


def write_history(base: Base, folder: Path, *, events: int, clusters: int, days: float) -> Iterator[int]:
    """Files of at least so many events, in whole runs. Yields how many were written so far."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = -(-events // len(base))
    rounds = -(-copies // clusters)
    each_ms = days * DAY_MS / rounds
    written = 0
    for number in range(copies):
        turn, cluster = divmod(number, clusters)
        copy = Copy(
            cluster=cluster_name(cluster),
            first_epoch=1 + turn * base.epochs,
            mark=bytes(URL_SAFE[number >> shift & 63] for shift in (18, 12, 6, 0)),
            began_ms=BEGAN_MS + int(turn * each_ms),
            stretch=each_ms / base.milliseconds,
        )
        _write_copy(base, copy, folder)
        written += len(base)
        yield written


def cluster_name(number: int) -> bytes:
    return b"history-cluster-%06d" % number


def _write_copy(base: Base, copy: Copy, folder: Path) -> None:
    by_epoch: dict[int, list[bytes]] = {}
    for line in base.lines:
        by_epoch.setdefault(line.epoch, []).append(line.filled(copy))
    for epoch, lines in by_epoch.items():
        _write_epoch(lines, folder, copy.cluster, copy.first_epoch + epoch - base.first_epoch, base.nodes[epoch])


def _write_epoch(lines: Sequence[bytes], folder: Path, cluster: bytes, epoch: int, node: int) -> None:
    first, size = 0, 0
    for index, line in enumerate(lines):
        size += len(line)
        if size > MAX_FILE_BYTES or index == len(lines) - 1:
            name = f"audit-{cluster.decode()}-{epoch:010}-{first + 1:012}-{node}.ndjson"
            (folder / name).write_bytes(b"".join(lines[first : index + 1]))
            first, size = index + 1, 0


def record_base(folder: Path, *, requests: int = BASE_REQUESTS, failovers: int = BASE_FAILOVERS) -> Base:
    """Run controllers for some tens of seconds."""

    def progress(done: int) -> None:
        if done % 1000 == 0:
            print(f"\r{done} of {requests} requests at real controllers", end="", file=sys.stderr, flush=True)

    folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("minicontroller").setLevel(logging.CRITICAL)  # refusals are what is wanted here
    trio.run(partial(record, folder, requests=requests, failovers=failovers, on_progress=progress))
    print(file=sys.stderr)
    return Base(folder)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="OUT")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=3)
    parser.add_argument("--days", type=float, default=90.0)
    parser.add_argument("--base", type=Path, help="Audit files of an earlier recording, or where to keep this one's.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.base or Path(temporary)
        base = Base(folder) if any(folder.glob("*.ndjson")) else record_base(folder)
        for written in write_history(
            base, options.folder, events=options.events, clusters=options.clusters, days=options.days
        ):
            print(f"\r{written} of {options.events} events", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


if __name__ == "__main__":
    main()

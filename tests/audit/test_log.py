"""The thread that writes: when it forces what it has to the disk, and whom it lets
wait for that.
"""

import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from minicontroller.admin.recording.log import MAX_BATCH_EVENTS, AuditLog, AuditSettings

INTERVAL_SECONDS = 0.05
MANY = 500


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[AuditLog]:
    log = AuditLog(AuditSettings(folder=folder, **settings), cluster_id="A" * 22, node=1)
    try:
        yield log
    finally:
        await log.close()


def lines_in(folder: Path) -> list[bytes]:
    return [line for file in sorted(folder.iterdir()) for line in file.read_bytes().splitlines()]


async def test_intervals(tmp_path: Path) -> None:
    """`audit.flush=interval` forces what was decided to the disk once in each interval, and once
    for each batch of what fits into no single one.
    """
    async with opened(tmp_path, interval_seconds=INTERVAL_SECONDS) as log:
        began = time.monotonic()
        count = 0
        while log.syncs < 4:
            count += 1
            log.append(1, count, b"%d\n" % count)
            await trio.lowlevel.checkpoint()
        intervals = (time.monotonic() - began) / INTERVAL_SECONDS
        assert log.syncs <= intervals + 1 + count / MAX_BATCH_EVENTS
    assert lines_in(tmp_path) == [b"%d" % number for number in range(1, count + 1)]


async def test_somebody_wants_to_read(tmp_path: Path) -> None:
    """A reader has the queued events written at once, before the flush interval ends."""
    async with opened(tmp_path, interval_seconds=3600.0) as log:
        assert await log.flush(0.0) == 0
        for number in range(1, MANY + 1):
            log.append(1, number, b"%d\n" % number)
            if number % 100 == 0:
                assert await log.flush(math.inf) == 0
                assert lines_in(tmp_path) == [b"%d" % each for each in range(1, number + 1)]


async def test_nobody_waits_for_a_disk_for_ever(tmp_path: Path) -> None:
    """A reader that times out gets the number of unwritten events, and its wait is forgotten."""
    async with opened(tmp_path / "gone", interval_seconds=3600.0, retry_seconds=0.01) as log:
        log.append(1, 1, b"1\n")
        log.append(1, 2, b"2\n")
        assert await log.flush(0.05) == 2
        assert await log.flush(0.0) == 2
        assert not log._waiters
        (tmp_path / "gone").mkdir()
        assert await log.flush(math.inf) == 0
    assert lines_in(tmp_path / "gone") == [b"1", b"2"]


async def test_one_fsync_for_all_that_wait(tmp_path: Path) -> None:
    """With `audit.flush=always` every event is in the file before its caller continues, and callers
    that wait together share an fsync.
    """
    early: list[int] = []

    async def decide(number: int) -> None:
        await log.wait_durable(log.append(1, number, b"%d\n" % number))
        if b"%d" % number not in lines_in(tmp_path):
            early.append(number)

    async with opened(tmp_path, always=True) as log, trio.open_nursery() as nursery:
        for number in range(MANY):
            nursery.start_soon(decide, number)
    assert not early
    assert len(lines_in(tmp_path)) == MANY
    assert log.syncs < MANY / 10


async def test_no_room(tmp_path: Path) -> None:
    """With `audit.on.failure=drop` a full queue counts and drops events without waiting."""
    async with opened(tmp_path, interval_seconds=3600.0, refuses=False, max_queue=3) as log:
        ordinals = [log.append(1, number, b"%d\n" % number) for number in range(1, 6)]
        assert (log.dropped_events, log.waiting_events) == (2, 3)
        assert ordinals[-1] == ordinals[2]
        assert [(loss.first_sequence, loss.last_sequence) for loss in log.take_losses()] == [(4, 5)]
        assert log.lag_seconds >= 0
    await log.wait_durable(ordinals[-1])
    assert lines_in(tmp_path) == [b"1", b"2", b"3"]
    assert log.waiting_events == 0

"""The clock of an event loop: what moves when it is advanced."""

import time

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from minicontroller.clock import Clock, now, now_ms
from tests.support.clock import JumpingClock

HOUR = 3600.0


async def test_deadlines_and_timestamps_move_together(clock: Clock) -> None:
    """What was due within the time that a clock is advanced by is due now, each once, and what
    is due later is not; the age of a timestamp is the same by either reading.
    """
    done, began, began_ms = list[str](), trio.current_time(), now_ms()

    async def sleep(seconds: float, name: str) -> None:
        await trio.sleep(seconds)
        done.append(name)

    async with trio.open_nursery() as nursery:
        for seconds, name in ((2 * HOUR, "in two hours"), (HOUR, "in an hour"), (HOUR + 60, "a minute later")):
            nursery.start_soon(sleep, seconds, name)
        await wait_all_tasks_blocked()
        clock.advance(HOUR + 90)
        await wait_all_tasks_blocked()
        assert set(done) == {"in an hour", "a minute later"}
        assert HOUR + 90 <= trio.current_time() - began < HOUR + 120
        assert HOUR + 90 <= (now_ms() - began_ms) / 1000 < HOUR + 120
        assert abs(now() - time.time() - HOUR - 90) < 1
        clock.advance(HOUR)
    assert done[2:] == ["in two hours"]


async def test_another_thread_advances_it(clock: Clock) -> None:
    """An event loop that waits for nothing else is woken by it."""

    async def advance() -> None:
        await trio.to_thread.run_sync(trio.from_thread.run_sync, clock.advance, HOUR)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(advance)
        await trio.sleep(HOUR)


async def test_real_time_stays(clock: Clock) -> None:
    """Threads, and code under another clock, read the machine's."""
    clock.advance(HOUR)
    assert abs(await trio.to_thread.run_sync(now) - time.time()) < 60

    async def read() -> float:
        return now() - time.time()

    def read_elsewhere() -> float:
        return trio.run(read, clock=MockClock())

    assert abs(await trio.to_thread.run_sync(read_elsewhere)) < 60


async def test_time_does_not_go_back(clock: Clock) -> None:
    """Nobody who compares two moments expects that."""
    with pytest.raises(ValueError, match="cannot be set back"):
        clock.advance(-1)


async def test_a_clock_that_jumps(jumping_clock: JumpingClock) -> None:
    """It jumps to one deadline after the other, and waits for what comes from outside."""
    began, moments = now(), list[float]()
    for _ in range(3):
        await trio.sleep(HOUR)
        await trio.to_thread.run_sync(time.sleep, 0.001)
        moments.append(round((now() - began) / HOUR, 2))
    assert moments == [1, 2, 3]

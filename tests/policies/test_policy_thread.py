"""Policies that take their time: the loop never waits for a thread, and no thread holds anything back (K201-11)."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from minicontroller.controller.policy_runner import (
    PolicyRefusal,
    PolicyRunner,
)
from minicontroller.controller.policy_thread import MAX_ABANDONED, PATIENCE_SECONDS
from minicontroller.policies import (
    CreateTopicRequest,
    TopicManagementPolicy,
)
from minicontroller.policies.verdict import Decision
from minicontroller.protocol.error_codes import ErrorCode
from tests.policies.asking import cluster, create
from tests.policies.misbehaving import (
    LIMIT_SECONDS,
    REAL_PATIENCE_SECONDS,
    Doing,
    Hanging,
    refusal,
    running,
)


async def hang(runner: PolicyRunner, policy: Hanging, clock: MockClock) -> PolicyRefusal:
    """What a request gets on which the policy hangs beyond its limit."""
    got: list[PolicyRefusal] = []

    async def ask() -> None:
        got.append(await refusal(runner, create("hang")))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert policy.entered.acquire(timeout=REAL_PATIENCE_SECONDS)
        assert got == []
        clock.jump(LIMIT_SECONDS)
    return got[0]


async def until(condition: Callable[[], bool]) -> None:
    """Threads report to the loop: let it run until they have."""
    while not condition():
        await trio.lowlevel.checkpoint()


async def test_the_loop_goes_on_while_the_policy_thinks() -> None:
    """A policy that waits for the loop gets it: other requests are answered meanwhile."""
    policy = Hanging()
    runner = running(policy)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.judge, create("hang"), cluster())
        await wait_all_tasks_blocked()
        assert policy.entered.acquire(timeout=REAL_PATIENCE_SECONDS)
        policy.released.release()  # from the loop's own thread: it is free
    assert policy.asked == ["hang"]
    await runner.close()


async def test_one_at_a_time() -> None:
    """However many ask together, the methods of a policy are never called beside each other."""
    inside, most, asked = 0, 0, list[str]()

    def action(request: CreateTopicRequest) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        asked.append(request.topic)
        inside -= 1

    runner = running(Doing(action))
    topics = {f"t{number}" for number in range(50)}
    async with trio.open_nursery() as nursery:
        for topic in topics:
            nursery.start_soon(runner.judge, create(topic), cluster())
    assert most == 1
    assert set(asked) == topics
    assert len(asked) == len(topics)
    await runner.close()


async def test_no_wake_up_is_lost() -> None:
    """A call that ends just when the loop gives up waiting in place is seen to end all the same."""
    around = iter(PATIENCE_SECONDS * (0.5 + number % 100 / 100) for number in range(1000))

    def action(_: object) -> None:
        ends = time.perf_counter() + next(around)
        while time.perf_counter() < ends:
            pass

    runner = running(Doing(action))
    with trio.fail_after(LIMIT_SECONDS / 2):
        for _ in range(1000):
            await runner.judge(create(), cluster())
    await runner.close()


async def test_a_hanging_call_is_given_up(mock_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """At the time limit the request is refused, and the log shows where the policy hangs (K201-11)."""
    policy = Hanging()
    runner = running(policy)
    refused = await hang(runner, policy, mock_clock)
    assert (refused.code, refused.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert "policy.timeout.ms (60000)" in caplog.text
    assert "in hang_here" in caplog.text
    assert "self.released.acquire()" in caplog.text
    assert runner.abandoned == 1

    # The next request goes to the same policy in another thread.
    assert (await runner.judge(create("next"), cluster())).decision is Decision.ALLOWED
    assert policy.asked == ["hang", "next"]
    assert policy.threads[0] is not policy.threads[1]

    policy.released.release()
    await until(lambda: runner.abandoned == 0)
    await trio.to_thread.run_sync(policy.threads[0].join)
    assert "A call that was given up has returned; 0 hang." in caplog.text
    await runner.close()


async def test_too_many_hanging_calls(mock_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Beyond a few hanging threads requests are refused at once and unasked, until one of them returns."""
    policy = Hanging()
    runner = running(policy)
    for number in range(MAX_ABANDONED):
        await hang(runner, policy, mock_clock)
        assert runner.abandoned == number + 1
    now = trio.current_time()
    assert (await refusal(runner, create("next"))).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert trio.current_time() == now
    assert "next" not in policy.asked
    assert f"it was not asked, because {MAX_ABANDONED} calls of it hang" in caplog.text

    policy.released.release()
    await until(lambda: runner.abandoned < MAX_ABANDONED)
    assert (await runner.judge(create("next"), cluster())).decision is Decision.ALLOWED
    policy.released.release(MAX_ABANDONED - 1)
    await until(lambda: runner.abandoned == 0)
    await runner.close()


async def cancelled_while_hanging(runner: PolicyRunner, policy: Hanging) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.judge, create("hang"), cluster())
        await wait_all_tasks_blocked()
        assert policy.entered.acquire(timeout=REAL_PATIENCE_SECONDS)
        nursery.cancel_scope.cancel()


async def test_a_cancelled_caller_leaves_no_second_call_behind() -> None:
    """The call of a caller who went away ends before the next one begins, in the same thread."""
    policy = Hanging()
    runner = running(policy)
    await cancelled_while_hanging(runner, policy)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.judge, create("next"), cluster())
        await wait_all_tasks_blocked()
        assert policy.asked == ["hang"]
        policy.released.release()
    assert policy.asked == ["hang", "next"]
    assert policy.threads[0] is policy.threads[1]
    await runner.close()


async def test_a_cancelled_callers_hanging_call_is_given_up(mock_clock: MockClock) -> None:
    """The next request waits for what is left of the limit of a call that nobody waits for, and keeps its own limit."""
    policy = Hanging()
    runner = running(policy)
    await cancelled_while_hanging(runner, policy)
    mock_clock.jump(LIMIT_SECONDS - 1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.judge, create("next"), cluster())
        await wait_all_tasks_blocked()
        assert policy.asked == ["hang"]
        mock_clock.jump(1)
    assert policy.asked == ["hang", "next"]
    assert runner.abandoned == 1
    policy.released.release()
    await until(lambda: runner.abandoned == 0)
    await runner.close()


# --------------------------------------------------------------------------------------------------------------- close


async def test_close() -> None:
    """The policy is closed once, in its thread, which ends; nothing passes afterwards."""
    policy = Hanging()
    runner = running(policy)
    await runner.judge(create("before"), cluster())
    await runner.close()
    await runner.close()
    assert policy.asked == ["before", "close"]
    await trio.to_thread.run_sync(policy.threads[0].join)
    refused = await refusal(runner, create("after"))
    assert refused.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "after" not in policy.asked


async def test_close_is_not_cut_short() -> None:
    """Shutdown cancels everything, and the policy is closed nevertheless."""
    policy = Hanging()
    runner = running(policy)
    with trio.CancelScope() as scope:
        scope.cancel()
        await runner.close()
    assert policy.asked == ["close"]


class ClosingBadly(TopicManagementPolicy):
    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action

    def close(self) -> None:
        self.action()


async def test_a_close_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    """A policy that cannot be closed does not keep the node from stopping."""
    await running(ClosingBadly(partial(sys.exit, "no"))).close()
    assert "The policy ClosingBadly could not be closed" in caplog.text
    assert "SystemExit: no" in caplog.text


async def test_a_close_that_hangs(mock_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """A policy that hangs in close is left behind after the time limit."""
    entered, released = threading.Event(), threading.Event()

    def action() -> None:
        entered.set()
        released.wait()

    runner = running(ClosingBadly(action))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runner.close)
        await wait_all_tasks_blocked()
        assert entered.wait(REAL_PATIENCE_SECONDS)
        mock_clock.jump(LIMIT_SECONDS)
    assert "could not be closed" in caplog.text
    released.set()
    await until(lambda: runner.abandoned == 0)


def test_a_call_that_returns_after_the_run() -> None:
    """A call that outlives the event loop ends in silence."""
    policy, clock = Hanging(), MockClock()

    async def run() -> None:
        await hang(running(policy), policy, clock)

    trio.run(run, clock=clock)
    policy.released.release()
    policy.threads[0].join(REAL_PATIENCE_SECONDS)
    assert not policy.threads[0].is_alive()


HANGING_PROGRAM = """
import threading, trio
from minicontroller.controller.policy_runner import PolicyRefusal, PolicyRunner
from minicontroller.policies import DeleteTopicRequest, TopicManagementPolicy
from minicontroller.policies.states import ClusterSnapshot

class Hangs(TopicManagementPolicy):
    def validate_delete_topic(self, request, cluster):
        threading.Event().wait()
    close = lambda self: threading.Event().wait()

async def main():
    runner = PolicyRunner(Hangs(), timeout_ms=20)
    try:
        await runner.judge(DeleteTopicRequest(topic="orders", principal=None), ClusterSnapshot())
    except PolicyRefusal as refusal:
        print(refusal.code.name)
    await runner.close()

trio.run(main)
"""


def test_a_process_ends_while_its_policy_hangs() -> None:
    """Threads that hang for ever do not hold a node that is told to stop."""
    ended = subprocess.run(
        [sys.executable, "-c", HANGING_PROGRAM],
        capture_output=True,
        text=True,
        timeout=REAL_PATIENCE_SECONDS,
        check=True,
    )
    assert ended.stdout == "UNKNOWN_SERVER_ERROR\n"

"""Asking the policy: consent is the only way through (K201-6, K201-11)."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from minicontroller.controller.errors import Refusal
from minicontroller.controller.policy_runner import (
    MAX_TEXT,
    NO_TEXT,
    Decision,
    Judged,
    PolicyRefusal,
    PolicyRunner,
    Verdict,
)
from minicontroller.controller.policy_thread import MAX_ABANDONED, PATIENCE_SECONDS
from minicontroller.policies import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from minicontroller.policies.legacy import AlterBrokerConfigsRequest, AlterConfigMetadata, LegacyPolicies
from minicontroller.protocol.error_codes import ErrorCode
from tests.policies.asking import alter, cluster, create, delete, delete_records

LIMIT_MS = 60_000  # never reached, but where a test moves the clock
LIMIT_SECONDS = LIMIT_MS / 1000
REAL_PATIENCE_SECONDS = 60.0  # for another thread to get as far as it certainly will
BROKER = AlterBrokerConfigsRequest(broker="1", principal=None, config_operations={"a": "b"})


class Doing(TopicManagementPolicy):
    """Does what it is told when it is asked about a new topic."""

    def __init__(self, action: Callable[[CreateTopicRequest], object]) -> None:
        self.action = action

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        return self.action(request)  # type: ignore[return-value]


class Hanging(TopicManagementPolicy):
    """Hangs on topics called `hang`, until it is released; says when it does."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.released = threading.Semaphore(0)
        self.asked: list[str] = []
        self.threads: list[threading.Thread] = []

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        self.asked.append(request.topic)
        self.threads.append(threading.current_thread())
        if request.topic == "hang":
            self.hang_here()

    def hang_here(self) -> None:
        self.entered.release()
        self.released.acquire()

    def close(self) -> None:
        self.asked.append("close")


def running(policy: TopicManagementPolicy) -> PolicyRunner:
    return PolicyRunner(policy, timeout_ms=LIMIT_MS)


def raising(error: BaseException) -> Doing:
    def action(_: object) -> None:
        raise error

    return Doing(action)


async def refusal(runner: PolicyRunner, request: Judged) -> PolicyRefusal:
    with pytest.raises(PolicyRefusal) as refused:
        await runner.judge(request, cluster())
    return refused.value


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


# ---------------------------------------------------------------------------------------------------------- judgement


async def test_consent() -> None:
    """A method that returns allows, and the verdict says who judged and how long it took."""
    runner = running(Doing(lambda _: None))
    verdict = await runner.judge(create(), cluster())
    assert verdict == Verdict(Decision.ALLOWED, "Doing", None, verdict.seconds)
    assert 0 <= verdict.seconds < REAL_PATIENCE_SECONDS
    await runner.close()


class Recording(TopicManagementPolicy):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Judged, ClusterState, threading.Thread]] = []

    def _record(self, method: str, request: Judged, cluster: ClusterState) -> None:
        self.seen.append((method, request, cluster, threading.current_thread()))

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:
        self._record("create", request, cluster)

    def validate_alter_topic(self, request: AlterTopicRequest, cluster: ClusterState) -> None:
        self._record("alter", request, cluster)

    def validate_delete_topic(self, request: DeleteTopicRequest, cluster: ClusterState) -> None:
        self._record("delete", request, cluster)

    def validate_delete_records(self, request: DeleteRecordsRequest, cluster: ClusterState) -> None:
        self._record("records", request, cluster)


async def test_each_request_has_its_method() -> None:
    """Every kind of request reaches its own method with the cluster it was asked about, in one thread off the loop."""
    policy, asked_about = Recording(), cluster()
    runner = running(policy)
    requests = {"create": create(), "alter": alter(), "delete": delete(), "records": delete_records()}
    for request in requests.values():
        assert (await runner.judge(request, asked_about)).decision is Decision.ALLOWED
    assert [(method, request) for method, request, _, _ in policy.seen] == list(requests.items())
    assert all(seen is asked_about for _, _, seen, _ in policy.seen)
    [thread] = {thread for *_, thread in policy.seen}
    assert thread is not threading.current_thread()
    assert thread.daemon
    await runner.close()


async def test_what_is_not_overridden_is_allowed() -> None:
    """A policy that judges nothing costs no thread."""
    before = threading.active_count()
    runner = running(TopicManagementPolicy())
    for request in (create(), alter(), delete(), delete_records(), BROKER):
        assert (await runner.judge(request, cluster())).decision is Decision.ALLOWED
    assert threading.active_count() == before


async def test_a_method_may_be_an_attribute() -> None:
    """A method that an instance got when it was made is asked as any other."""
    policy = TopicManagementPolicy()
    policy.validate_delete_topic = raising(PolicyViolation("no")).action  # type: ignore[method-assign, assignment]
    runner = running(policy)
    with pytest.raises(PolicyRefusal):
        await runner.judge(delete(), cluster())
    await runner.close()


# ------------------------------------------------------------------------------------------------------------ refusal


async def test_violation(caplog: pytest.LogCaptureFixture) -> None:
    """A violation is POLICY_VIOLATION with the policy's text, and one line in the log that says who wanted what (K201-6)."""
    runner = running(raising(PolicyViolation("too few replicas")))
    with caplog.at_level(logging.INFO, "minicontroller.policy"):
        refused = await refusal(runner, create("orders"))
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.message) == (ErrorCode.POLICY_VIOLATION, "too few replicas")
    assert (refused.verdict.decision, refused.verdict.message) == (Decision.VIOLATED, "too few replicas")
    [record] = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        "The policy Doing refused CreateTopics of topic orders by User:alice: too few replicas"
    )
    await runner.close()


@pytest.mark.parametrize("text", ["", "  \n", None])
async def test_violation_without_a_text(text: str | None) -> None:
    """A refusal always says something to the caller."""
    runner = running(raising(PolicyViolation() if text is None else PolicyViolation(text)))
    assert (await refusal(runner, create())).message == NO_TEXT
    await runner.close()


@pytest.mark.parametrize("text", ["\N{GRINNING FACE}" * 100_000, "\ud800 lone", "x" * 40_000])
async def test_the_text_fits_the_protocol(text: str) -> None:
    """Whatever a policy says can be sent: it is valid UTF-8 and fits a string of the oldest versions."""
    runner = running(raising(PolicyViolation(text)))
    message = (await refusal(runner, create())).message
    assert message is not None
    assert len(message) <= MAX_TEXT
    assert len(message.encode()) <= 32_767
    await runner.close()


class MuteError(Exception):
    def __str__(self) -> str:
        raise OSError("cannot say")


class MuteViolation(PolicyViolation):
    def __str__(self) -> str:
        raise OSError("cannot say")


class OwnBaseException(BaseException):
    pass


def recurse(request: object) -> object:
    return recurse(request)


def mutate(request: CreateTopicRequest) -> None:
    request.requested_state.configs["retention.ms"] = "1"  # type: ignore[index]


async def coroutine() -> None:
    """Nobody awaits this."""


@pytest.mark.parametrize(
    ("policy", "logged"),
    [
        (raising(ValueError("a bug")), "ValueError: a bug"),
        (raising(MuteError()), "MuteError"),
        (raising(MuteViolation()), "cannot say"),
        (raising(SystemExit(3)), "SystemExit: 3"),
        (raising(KeyboardInterrupt()), "KeyboardInterrupt"),
        (raising(GeneratorExit()), "GeneratorExit"),
        (raising(StopIteration()), "StopIteration"),
        (raising(StopAsyncIteration()), "StopAsyncIteration"),
        (raising(MemoryError()), "MemoryError"),
        (raising(OwnBaseException("odd")), "OwnBaseException: odd"),
        (raising(ExceptionGroup("many", [PolicyViolation("one of them")])), "one of them"),
        (raising(trio.TooSlowError()), "TooSlowError"),
        (Doing(recurse), "RecursionError"),
        (Doing(mutate), "TypeError: 'mappingproxy' object does not support item assignment"),
        (Doing(lambda _: True), "it returned True"),
        (Doing(lambda _: False), "it returned False"),
        (Doing(lambda _: coroutine()), "it returned <coroutine"),
    ],
)
async def test_a_broken_policy_refuses(caplog: pytest.LogCaptureFixture, policy: Doing, logged: str) -> None:
    """Whatever else a policy does is a server error without a text for the caller, told in the log with the request (K201-11)."""
    runner = running(policy)
    request = create("orders", configs={"retention.ms": "7"})
    refused = await refusal(runner, request)
    assert (refused.code, refused.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert refused.verdict.decision is Decision.BROKEN
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.name == "minicontroller.policy"
    assert logged in record.getMessage()
    assert repr(request) in record.getMessage()
    assert dict(request.requested_state.configs) == {"retention.ms": "7"}
    await runner.close()


async def test_a_broken_call_does_not_spoil_the_next() -> None:
    """Each request is judged by itself."""
    runner = running(Doing(lambda request: sys.exit(1) if request.topic == "bad" else None))
    assert (await refusal(runner, create("bad"))).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (await runner.judge(create("good"), cluster())).decision is Decision.ALLOWED
    await runner.close()


async def test_without_a_thread_nothing_passes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that has no thread left refuses, and judges again when it has."""

    def exhausted(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    runner = running(Doing(lambda _: None))
    with monkeypatch.context() as system:
        system.setattr(threading.Thread, "start", exhausted)
        assert (await refusal(runner, create())).code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "can't start new thread" in caplog.text
    assert (await runner.judge(create(), cluster())).decision is Decision.ALLOWED
    await runner.close()


class OlderPolicy:
    def validate(self, request_metadata: AlterConfigMetadata) -> None:
        raise PolicyViolation(f"{request_metadata.resource.type.name} {request_metadata.resource.name}")


async def test_configs_of_brokers_are_judged_by_older_policies(caplog: pytest.LogCaptureFixture) -> None:
    """The older policy for altered configs goes on judging those of brokers (K201-9)."""
    runner = running(LegacyPolicies(alter=OlderPolicy()))
    with caplog.at_level(logging.INFO, "minicontroller.policy"):
        assert (await refusal(runner, BROKER)).message == "BROKER 1"
    assert "The policy OlderPolicy refused" in caplog.text
    assert "of broker 1 by an unauthenticated caller" in caplog.text
    await runner.close()


# ---------------------------------------------------------------------------------------------------- time and threads


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

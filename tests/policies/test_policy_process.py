"""A policy in a process of its own: whatever it does, nothing passes that it did not allow, and the node does not notice (K201-11)."""

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minicontroller.controller import policy_process
from minicontroller.controller.policy_process import PolicyProcess
from minicontroller.controller.policy_runner import PolicyRefusal, PolicyRunner
from minicontroller.policies import PolicyRequest, TopicState
from minicontroller.policies.faults import PolicyLoadError
from minicontroller.policies.judging import Judged
from minicontroller.policies.loading import POLICY_KEY
from minicontroller.policies.states import ClusterSnapshot, topic_state
from minicontroller.policies.verdict import Decision
from minicontroller.protocol.error_codes import ErrorCode
from tests.policies import deeds
from tests.policies.asking import alter, cluster, create, delete, delete_records
from tests.policies.in_place import InPlace
from tests.support.waiting import until

FILE = str(Path(deeds.__file__))
SHORT_MS = 700
LONG_MS = 60_000
PATIENCE_SECONDS = 60.0
OWN = "topic.management.policy.config."


@asynccontextmanager
async def process_of(
    name: str, timeout_ms: int = LONG_MS, configs: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[PolicyRunner, PolicyProcess]]:
    spec = name if ":" in name else f"{FILE}:{name}"
    process = PolicyProcess({POLICY_KEY: spec, **(configs or {})}, timeout_ms=timeout_ms, secrets={"hidden"})
    await process.start()
    runner = PolicyRunner(process)
    try:
        yield runner, process
        await runner.close()
    finally:
        runner.kill()


async def said(runner: PolicyRunner, request: Judged, of: ClusterSnapshot | None = None) -> str | None:
    """What the caller is told; empty if the request passes."""
    try:
        await runner.judge(request, of or cluster())
    except PolicyRefusal as refused:
        return refused.message
    return ""


async def passes(runner: PolicyRunner, topic: str = "good") -> None:
    """At last: it may be busy starting, on a busy machine."""
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            if await said(runner, create(topic)) == "":
                return
            await trio.sleep(0.01)


def is_there(pid: int) -> bool:
    """Zombies included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


# ------------------------------------------------------------------ deeds


@pytest.mark.parametrize("deed", deeds.DEEDS)
async def test_no_deed_passes(deed: str, caplog: pytest.LogCaptureFixture) -> None:
    """A policy that hangs, ends, floods, grabs or raises refuses by that, and judges again afterwards; only what must costs its process."""
    async with process_of("Hostile", LONG_MS if deed.startswith("refused") else SHORT_MS) as (runner, process):
        first = process.pid
        assert first is not None
        with pytest.raises(PolicyRefusal) as refused:
            await runner.judge(create(deed), cluster())
        assert (refused.value.code, refused.value.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        assert refused.value.verdict.decision is Decision.BROKEN
        if deed.startswith("killed"):
            assert f"policy.timeout.ms ({SHORT_MS})" in caplog.text
        restarts = process.restarts
        assert restarts == (0 if deed.startswith("refused") else 1)
        assert ("what the class remembered is lost" in caplog.text) is bool(restarts)
        await passes(runner)
        assert (process.pid == first, is_there(first)) == (restarts == 0, restarts == 0)
    assert len([record for record in caplog.records if "flood" in record.getMessage()]) <= 3_000


async def test_the_log_tells_where_it_hangs(caplog: pytest.LogCaptureFixture) -> None:
    """Also where the interpreter is held, so that no Python of the policy's runs any more."""
    async with process_of("Hostile", SHORT_MS) as (runner, _):
        assert await said(runner, create("killed-0")) is None
    assert "in hold_the_interpreter" in caplog.text


@pytest.mark.parametrize("topic", ["killed-0", "ask"])
async def test_the_loop_goes_on(topic: str) -> None:
    """The node serves others while a policy holds its interpreter, or asks without end."""
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await trio.sleep(0.001)
            turns += 1

    async with process_of("Hostile", SHORT_MS) as (runner, _), trio.open_nursery() as nursery:
        nursery.start_soon(turn)
        assert await said(runner, create(topic)) is None
        nursery.cancel_scope.cancel()
    assert turns > 5


async def test_what_the_class_remembers() -> None:
    """One instance is asked, one request after the other, until its process ends: then another one begins from nothing."""
    async with process_of("Hostile") as (runner, _):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(passes, runner)
        assert await said(runner, create("count")) == "21"
        assert await said(runner, create("ended-0")) is None
        assert await said(runner, create("count")) == "1"


async def test_a_copy_of_the_process_says_nothing() -> None:
    """A policy that forks and comes back twice has one answer."""
    async with process_of("Hostile") as (runner, process):
        for number in range(3):
            assert await said(runner, create("fork")) == ""
            assert await said(runner, create("count")) == str(2 * number + 2)
        assert process.restarts == 0


async def test_it_inherits_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket and no file of the node, not even one that is meant to be inherited, and no password of its environment."""
    monkeypatch.setenv("KAFKA_SSL_KEY_PASSWORD", "geheim")
    with socket.create_server(("127.0.0.1", 0)) as listener, open(FILE) as file:  # noqa: ASYNC230, PTH123
        listener.set_inheritable(True)
        os.set_inheritable(file.fileno(), True)
        async with process_of("Hostile") as (runner, _):
            kinds = await said(runner, create("descriptors"))
            variables = await said(runner, create("environment"))
    assert variables is not None and "PATH" in variables and "PASSWORD" not in variables
    assert (
        kinds == "/dev/null gone pipe socket socket socket"
    )  # input; the look itself; trace; output, errors; the pair


async def test_what_it_prints_and_logs_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """With its own logger and level; what it prints is told line by line, and a line without an end in pieces."""
    caplog.set_level(logging.DEBUG)
    async with process_of("Hostile") as (runner, _):
        assert await said(runner, delete("orders")) == ""
    until(lambda: "and more" in caplog.text)
    told = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
    assert ("minicontroller.policy", logging.INFO, "The policy prints: I am asked about orders") in told
    assert ("acme.rules", logging.WARNING, "of 3\nand more") in told
    assert "é\\ud800xxx" in caplog.text
    assert max(len(text) for _, _, text in told) < 80_000
    assert "nobody hears" not in caplog.text


async def test_a_stranger_whose_words_are_printed_says_nothing_for_the_node(caplog: pytest.LogCaptureFixture) -> None:
    """A line in a topic's name is what was printed, whatever it looks like; and by the node's own loggers no policy speaks."""
    forged = '{"level": 20, "logger": "minicontroller.audit", "text": "all is well"}'
    caplog.set_level(logging.DEBUG)
    async with process_of("Hostile") as (runner, _):
        assert await said(runner, create("print\n\x1e" + forged)) == ""
        await trio.to_thread.run_sync(until, lambda: "said by its log" in caplog.text)
    told = [(record.name, record.getMessage()) for record in caplog.records]
    assert ("minicontroller.policy", "The policy prints: \x1e" + forged) in told
    assert ("minicontroller.policy", "said by its log") in told
    assert not [text for name, text in told if name == "minicontroller.audit"]


async def test_an_answer_before_the_question_counts_for_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody knows the number of a question before it is asked, and what has another one ends the process."""
    async with process_of("Hostile") as (runner, process):
        assert await said(runner, create("answer-ahead")) is None
        assert "says Answer where nobody asked" in caplog.text
        assert process.restarts == 1
        await passes(runner)


async def test_what_it_logs_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Records are cut, and loggers without end are told as the policy's own."""
    async with process_of("Hostile") as (runner, _):
        assert await said(runner, create("log")) == ""
        await trio.to_thread.run_sync(until, lambda: len(caplog.records) >= 300)
    names = {record.name for record in caplog.records}
    assert names == {"minicontroller.policy", *(f"acme.{number}" for number in range(100))}
    assert max(len(record.getMessage()) for record in caplog.records) == 10_000


# ------------------------------------------------------------------ what it sees

states = st.builds(
    topic_state,
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=3),
    st.dictionaries(st.sampled_from(["retention.ms", "cleanup.policy"]), st.sampled_from(["1", "compact"])),
    marked_for_deletion=st.booleans(),
    internal=st.booleans(),
)
changes = st.lists(st.tuples(st.sampled_from([f"t{number}" for number in range(25)]), st.none() | states), max_size=12)
questions = st.sampled_from([create, alter, delete, delete_records])


@given(
    lives=st.lists(
        st.tuples(changes, questions, st.sampled_from(["", "one", "some", "names", "all", "one names", "some all"])),
        max_size=12,
    )
)
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
async def test_it_sees_what_there_is(
    lives: list[tuple[list[tuple[str, TopicState | None]], Callable[[str], PolicyRequest], str]],
) -> None:
    """Requests and topics are the same as for a policy that is asked in place, however the cluster has changed since it looked last."""
    here, topics = PolicyRunner(InPlace(deeds.Looking())), dict[str, TopicState]()
    async with process_of("Looking") as (there, process):
        for changed, question, how in lives:
            for name, state in changed:
                topics.pop(name, None)
                if state is not None:
                    topics[name] = state
            snapshot = ClusterSnapshot(dict(topics), 3)
            request = msgspec.structs.replace(question("t1"), client_id=how)
            assert await said(there, request, snapshot) == await said(here, request, snapshot) != ""
        assert process.restarts == 0


async def test_it_is_told_only_what_changed() -> None:
    """A policy that looks at all topics each time is told of each topic once, until that one changes."""
    told: list[str] = []

    class Counted(ClusterSnapshot, frozen=True):
        def topic_state(self, topic: str) -> TopicState | None:
            told.append(topic)
            return super().topic_state(topic)

    first = {f"t{number}": topic_state([[1]]) for number in range(1000)}
    second = {**first, "t7": topic_state([[2]]), "new": topic_state([[3]])}
    del second["t8"]
    request = msgspec.structs.replace(create("t1"), client_id="all")
    async with process_of("Looking") as (runner, _):
        counts = []
        for topics in (first, first, second, second):
            await said(runner, request, Counted(topics))
            counts.append(len(told))
        assert counts == [1000, 1000, 1002, 1002]
        assert sorted(told[1000:]) == ["new", "t7"]


async def test_what_is_gone_is_forgotten() -> None:
    """Topics that came and went leave nothing behind, neither in the node nor in the policy's process."""
    here = PolicyRunner(InPlace(deeds.Looking()))
    async with process_of("Looking") as (there, process):
        for number in range(2500):
            snapshot = ClusterSnapshot({f"t{number}": topic_state([[1]])})
            request = msgspec.structs.replace(create(f"t{number}"), client_id="one")
            assert await said(there, request, snapshot) == await said(here, request, snapshot)
        child = process._child
        assert child is not None
        assert len(child._told) <= 1002
        request = msgspec.structs.replace(create("t1"), client_id="all")
        assert await said(there, request) == await said(here, request)


async def test_a_judgement_is_over_when_the_method_returns(caplog: pytest.LogCaptureFixture) -> None:
    """A cluster that a policy keeps tells nothing later: it would be another one by then."""
    async with process_of("Keeping") as (runner, process):
        assert await said(runner, create()) == ""
        assert await said(runner, create()) is None
        assert "until the method returns, not afterwards" in caplog.text
        assert process.restarts == 0


# ------------------------------------------------------------------ start

LOADING = """
import os, time
from pathlib import Path
from minicontroller.policies import PolicyViolation, TopicManagementPolicy

{what}

class Policy(TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        if request.topic == "die":
            os._exit(1)
        if request.topic == "which":
            raise PolicyViolation("{which}")
"""


def written(path: Path, what: str = "", which: str = "") -> str:
    path.write_text(LOADING.format(what=what, which=which))
    return f"{path}:Policy"


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("os._exit(0)", "The policy cannot be loaded: its process has ended"),
        ("raise SystemExit(0)", "SystemExit"),
        ("class ValidateCreateTopic: pass\nTopicManagementPolicy = object", "must be derived from"),
        ("time.sleep(100_000)", "takes more than 2 s to load, and is here now:"),
    ],
)
async def test_what_cannot_be_loaded_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, told: str
) -> None:
    """In a sentence, whatever it does while it is imported; no process stays behind."""
    monkeypatch.setattr(policy_process, "START_SECONDS", 2.0)
    process = PolicyProcess({POLICY_KEY: written(tmp_path / "policy.py", what)}, timeout_ms=LONG_MS)
    with pytest.raises(PolicyLoadError, match=told):
        await process.start()
    assert process.pid is None


async def test_a_slow_start_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever waits for a node reads what it waits for, and the policy that came later than its limit is in force."""
    go = tmp_path / "go"
    spec = written(tmp_path / "policy.py", f"while not Path({str(go)!r}).exists():\n    time.sleep(0.01)")
    process = PolicyProcess({POLICY_KEY: spec}, timeout_ms=SHORT_MS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.start)
        with trio.fail_after(PATIENCE_SECONDS):
            while "still being loaded" not in caplog.text:  # noqa: ASYNC110 - the log has no event
                await trio.sleep(0.01)
        go.touch()
    assert process.pid is not None
    process.kill()


async def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    """A node that is told to stop while its policy is imported does not wait for it."""
    process = PolicyProcess({POLICY_KEY: written(tmp_path / "policy.py", "time.sleep(100_000)")}, timeout_ms=LONG_MS)
    with trio.move_on_after(0.2) as scope:
        await process.start()
    assert scope.cancelled_caught
    assert process.pid is None


async def test_a_policy_that_starts_slowly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Requests that come while it is started anew wait for it, but not longer than the limit once; then they are refused until it is there."""
    go = tmp_path / "go"
    go.touch()
    spec = written(tmp_path / "policy.py", f"while not Path({str(go)!r}).exists():\n    time.sleep(0.01)")
    async with process_of(spec, SHORT_MS) as (runner, process):
        go.unlink()
        assert await said(runner, create("die")) is None
        assert await said(runner, create("good")) is None
        now = trio.current_time()
        for _ in range(100):
            assert await said(runner, create("good")) is None
        assert trio.current_time() - now < 100 * SHORT_MS / 1000
        assert "it was not asked: its process is still being started" in caplog.text
        go.touch()
        await passes(runner)
        assert process.restarts >= 1


async def test_a_file_that_has_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Started anew, a policy is what its file says at two looks: verdicts carry its hash, and the log says that it is another one."""
    monkeypatch.setattr(policy_process, "BACKOFF_SECONDS", 0.0)
    path = tmp_path / "policy.py"
    async with process_of(written(path, which="first")) as (runner, _):
        before = runner.policy_hash
        assert await said(runner, create("which")) == "first"
        written(path, which="second")
        assert (await said(runner, create("which")), runner.policy_hash) == ("first", before)
        assert await said(runner, create("die")) is None
        assert await said(runner, create("which")) is None
        assert "it is loaded when they are the same at the next look" in caplog.text
        assert await said(runner, create("which")) == "second"
        assert runner.policy_hash != before
        assert "is not the one of before" in caplog.text


WHOLE = """
import os
from minicontroller.policies import PolicyViolation, TopicManagementPolicy

class Policy(TopicManagementPolicy):
    def validate_create_topic(self, request, cluster):
        if request.topic == "die":
            os._exit(1)

    def validate_delete_topic(self, request, cluster):
        raise PolicyViolation("nobody deletes")
"""


async def test_a_file_that_is_cut_off_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a class judged it goes on judging: one that has lost a method is not taken for the policy, however long its file is so."""
    monkeypatch.setattr(policy_process, "BACKOFF_SECONDS", 0.0)
    path = tmp_path / "policy.py"
    path.write_text(WHOLE)
    async with process_of(f"{path}:Policy") as (runner, _):
        path.write_text(WHOLE[: WHOLE.index("    def validate_delete")])
        assert await said(runner, create("die")) is None
        for _ in range(3):
            assert await said(runner, delete("t")) is None
            assert await said(runner, create("t")) is None
        assert "judge no DeleteTopicRequest any more" in caplog.text
        path.write_text(WHOLE)
        assert await said(runner, delete("t")) == "nobody deletes"
        assert await said(runner, create("t")) == ""


async def test_a_file_that_is_broken_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that cannot be started anew refuses everything, and is tried again now and then, not at each request."""
    path = tmp_path / "policy.py"
    async with process_of(written(path)) as (runner, _):
        written(path, "1 / 0")
        assert await said(runner, create("die")) is None
        monkeypatch.setattr(policy_process, "BACKOFF_SECONDS", float("inf"))
        for _ in range(20):
            assert await said(runner, create("good")) is None
        assert caplog.text.count("ZeroDivisionError") == 1
        assert "could not be started, which is tried again in a moment" in caplog.text


async def test_without_a_process_nothing_passes(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that has no process left refuses, and judges again when it has."""

    def exhausted(*_: object, **__: object) -> None:
        raise BlockingIOError("no process left")

    monkeypatch.setattr(policy_process, "BACKOFF_SECONDS", 0.0)
    async with process_of("Hostile") as (runner, _):
        with monkeypatch.context() as system:
            system.setattr(subprocess, "Popen", exhausted)
            assert await said(runner, create("ended-0")) is None
            assert await said(runner, create("good")) is None
        assert "no process left" in caplog.text
        await passes(runner)


# ------------------------------------------------------------------ end


async def test_one_that_ends_while_nobody_asks() -> None:
    """It leaves no zombie, and the next request is judged by another one."""
    async with process_of("Hostile") as (runner, process):
        first = process.pid
        assert first is not None
        await passes(runner, "leave-later")
        await trio.to_thread.run_sync(until, lambda: not is_there(first))
        assert await said(runner, create("good")) == ""
        assert process.restarts == 1


@pytest.mark.parametrize(
    ("how", "told"), [("", ""), ("raise", "SystemExit: no"), ("hang", "it takes more than policy.timeout.ms")]
)
async def test_close(tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str, told: str) -> None:
    """Closed once, whatever is cancelled meanwhile; nothing passes afterwards, and the process is gone though a thread of it is left."""
    file = tmp_path / "closed"
    configs = {f"{OWN}close": how, f"{OWN}file": str(file), "ssl.key.password": "geheim", "hidden": "password"}
    async with process_of("Closing", SHORT_MS if how == "hang" else LONG_MS, configs) as (runner, process):
        pid = process.pid
        with trio.CancelScope() as scope:
            scope.cancel()
            await runner.close()
        await runner.close()
        assert file.read_text() == "closed\n"
        assert ("could not be closed" in caplog.text) is bool(told)
        assert told in caplog.text
        assert await said(runner, create("good")) is None
        assert pid is not None and not is_there(pid)


async def test_a_cancelled_caller_disturbs_nobody() -> None:
    """A node that stops, or rules no more, does not wait for its policy; nobody gets the answer that was meant for another."""
    async with process_of("Hostile") as (runner, process):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(said, runner, create("killed-1"))
            await trio.testing.wait_all_tasks_blocked(0.05)
            nursery.cancel_scope.cancel()
        await passes(runner)
        assert process.restarts == 1


NODE = """
import sys, trio
from minicontroller.controller.policy_process import PolicyProcess
from minicontroller.policies.states import ClusterSnapshot
from tests.policies.asking import create

async def main():
    process = PolicyProcess({"topic.management.policy.class.name": sys.argv[1]}, timeout_ms=600_000)
    await process.start()
    print(process.pid, flush=True)
    await process.ask(create(sys.argv[2]), ClusterSnapshot())
    await trio.sleep_forever()

trio.run(main)
"""


@pytest.mark.parametrize("topic", ["good", "killed-0", "killed-2"])
def test_it_ends_with_its_node(topic: str) -> None:
    """Also where the node is killed, and where the policy holds the interpreter or catches signals."""
    with subprocess.Popen(
        [sys.executable, "-c", NODE, f"{FILE}:Hostile", topic], stdout=subprocess.PIPE, text=True
    ) as node:
        assert node.stdout is not None
        pid = int(node.stdout.readline())
        assert is_there(pid)
        node.send_signal(signal.SIGKILL)
        node.wait()
    until(lambda: not is_there(pid))

"""A policy in a process of its own: whatever it does, nothing passes that it did not allow, and the
node does not notice (K201-11).
"""

import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from minicontroller.admin.policy.runner import PolicyRefusal
from minicontroller.policies.verdict import PolicyOutcome
from minicontroller.protocol.error_codes import ErrorCode
from tests.policies import deeds
from tests.policies.asking import cluster, create, delete
from tests.policies.in_process import FILE, LONG_MS, SHORT_MS, is_there, passes, process_of, said
from tests.support.waiting import until

pytestmark = pytest.mark.slow

PATIENT_MS = 3_000
"""Enough for a policy that begins to close, also on a busy machine."""
OWN = "topic.management.policy.config."


@pytest.mark.parametrize("deed", deeds.DEEDS)
async def test_no_deed_passes(deed: str, caplog: pytest.LogCaptureFixture) -> None:
    """A policy that hangs, ends, floods, grabs or raises refuses by that, and judges again
    afterwards; only what must costs its process.
    """
    async with process_of("Hostile", LONG_MS if deed.startswith("refused") else SHORT_MS) as (runner, process):
        first = process.pid
        assert first is not None
        with pytest.raises(PolicyRefusal) as refused:
            await runner.judge(create(deed), cluster())
        assert (refused.value.code, refused.value.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
        assert refused.value.verdict.decision is PolicyOutcome.BROKEN
        if deed.startswith("killed"):
            assert f"policy.timeout.ms ({SHORT_MS})" in caplog.text
        restarts = process.restarts
        assert restarts == (0 if deed.startswith("refused") else 1)
        assert ("what its object had stored is lost" in caplog.text) is bool(restarts)
        await passes(runner)
        assert (process.pid == first, is_there(first)) == (restarts == 0, restarts == 0)
    assert len([record for record in caplog.records if "flood" in record.getMessage()]) <= 3_000


async def test_the_log_tells_where_it_hangs(caplog: pytest.LogCaptureFixture) -> None:
    """The log has the line at which a policy hangs, even if it holds the interpreter lock."""
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
    """One instance is asked, one request after the other, until its process ends: then another one
    begins from nothing.
    """
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
    """No socket and no file of the node, not even one that is meant to be inherited, and no
    password of its environment.
    """
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
    """Records of a policy are logged with its own logger and level, and its prints line by line, a
    line without an end in pieces.
    """
    caplog.set_level(logging.DEBUG)
    async with process_of("Hostile") as (runner, _):
        assert await said(runner, delete("orders")) == ""
    until(lambda: all(text in caplog.text for text in ("and more", "I am asked about orders", "é\\ud800xxx")))
    told = [(record.name, record.levelno, record.getMessage()) for record in caplog.records]
    assert ("minicontroller.policy", logging.INFO, "The policy prints: I am asked about orders") in told
    assert ("acme.rules", logging.WARNING, "of 3\nand more") in told
    assert "é\\ud800xxx" in caplog.text
    assert max(len(text) for _, _, text in told) < 80_000
    assert "nobody hears" not in caplog.text


async def test_printed_names_cannot_forge_log_records(caplog: pytest.LogCaptureFixture) -> None:
    """A name that looks like a log record and is printed by a policy is logged as printed text, and
    a policy cannot use the node's own loggers.
    """
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
    """An answer with another number than the question's ends the policy's process, so no policy can
    answer in advance.
    """
    async with process_of("Hostile") as (runner, process):
        assert await said(runner, create("answer-ahead")) is None
        assert "sent an unexpected PolicyAnswer" in caplog.text
        assert process.restarts == 1
        await passes(runner)


async def test_what_it_logs_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """A policy's log records are cut, and after many loggers the rest are logged under the policy's
    own.
    """
    async with process_of("Hostile") as (runner, _):
        assert await said(runner, create("log")) == ""
        await trio.to_thread.run_sync(until, lambda: len(caplog.records) >= 300)
    names = {record.name for record in caplog.records}
    assert names == {"minicontroller.policy", *(f"acme.{number}" for number in range(100))}
    assert max(len(record.getMessage()) for record in caplog.records) == 10_000


# ------------------------------------------------------------------ end


async def test_one_that_ends_while_nobody_asks() -> None:
    """A policy's process that ends between requests leaves no zombie, and the next request is
    judged by a new one.
    """
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
    """Closed once, whatever is cancelled meanwhile; nothing passes afterwards, and the process is
    gone though a thread of it is left.
    """
    file = tmp_path / "closed"
    configs = {f"{OWN}close": how, f"{OWN}file": str(file), "ssl.key.password": "geheim", "hidden": "password"}
    async with process_of("Closing", PATIENT_MS if how == "hang" else LONG_MS, configs) as (runner, process):
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
    """A cancelled judgement is not waited for, and its answer never reaches another request."""
    async with process_of("Hostile") as (runner, process):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(said, runner, create("killed-1"))
            await trio.testing.wait_all_tasks_blocked(0.05)
            nursery.cancel_scope.cancel()
        await passes(runner)
        assert process.restarts == 1


NODE = """
import sys, trio
from minicontroller.admin.policy.process import PolicyProcess
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
    """The process ends with its node, also if the node is killed, and if the policy holds the
    interpreter or catches signals.
    """
    with subprocess.Popen(
        [sys.executable, "-c", NODE, f"{FILE}:Hostile", topic], stdout=subprocess.PIPE, text=True
    ) as node:
        assert node.stdout is not None
        pid = int(node.stdout.readline())
        assert is_there(pid)
        node.send_signal(signal.SIGKILL)
        node.wait()
    until(lambda: not is_there(pid))

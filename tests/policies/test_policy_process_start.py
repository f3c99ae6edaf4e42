"""A policy's process is started, and started anew after its end: until the policy is there, nothing
passes (K201-11).
"""

import subprocess
from pathlib import Path

import pytest
import trio

from minicontroller.admin.policy import process as policy_process
from minicontroller.admin.policy.process import PolicyProcess
from minicontroller.policies.load_errors import PolicyLoadError
from minicontroller.policies.loading import POLICY_KEY
from tests.policies.asking import create, delete
from tests.policies.in_process import LONG_MS, PATIENCE_SECONDS, SHORT_MS, passes, process_of, said

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
        ("time.sleep(100_000)", "takes more than 4 s to load. It is executing:"),
    ],
)
async def test_what_cannot_be_loaded_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, told: str
) -> None:
    """A policy that cannot be loaded ends the start in a sentence, whatever it does while it is
    imported; no process stays behind.
    """
    if "sleep" in what:
        monkeypatch.setattr(policy_process, "START_SECONDS", 4.0)
    process = PolicyProcess({POLICY_KEY: written(tmp_path / "policy.py", what)}, timeout_ms=LONG_MS)
    with pytest.raises(PolicyLoadError, match=told):
        await process.start()
    assert process.pid is None


async def test_a_slow_start_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A policy that starts slowly is logged while the node waits, and is in force once
    it is there.
    """
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
    """A node that is stopped while its policy is imported does not wait for it."""
    process = PolicyProcess({POLICY_KEY: written(tmp_path / "policy.py", "time.sleep(100_000)")}, timeout_ms=LONG_MS)
    with trio.move_on_after(0.2) as scope:
        await process.start()
    assert scope.cancelled_caught
    assert process.pid is None


async def test_a_policy_that_starts_slowly(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """While a policy restarts, requests wait for it at most one timeout, and then are refused until
    it is there.
    """
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
    """A restarted policy is loaded from its file once two checks find the same contents; verdicts
    have its new hash, and the log says so.
    """
    monkeypatch.setattr(policy_process, "BACKOFF_SECONDS", 0.0)
    path = tmp_path / "policy.py"
    async with process_of(written(path, which="first")) as (runner, _):
        before = runner.policy_hash
        assert await said(runner, create("which")) == "first"
        written(path, which="second")
        assert (await said(runner, create("which")), runner.policy_hash) == ("first", before)
        assert await said(runner, create("die")) is None
        assert await said(runner, create("which")) is None
        assert "once two checks in a row find the same files" in caplog.text
        assert await said(runner, create("which")) == "second"
        assert runner.policy_hash != before
        assert "has been replaced" in caplog.text


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
    """A restarted policy whose file has lost a method is not loaded, however long the file stays
    so.
    """
    monkeypatch.setattr(policy_process, "BACKOFF_SECONDS", 0.0)
    path = tmp_path / "policy.py"
    path.write_text(WHOLE)
    async with process_of(f"{path}:Policy") as (runner, _):
        path.write_text(WHOLE[: WHOLE.index("    def validate_delete")])
        assert await said(runner, create("die")) is None
        for _ in range(3):
            assert await said(runner, delete("t")) is None
            assert await said(runner, create("t")) is None
        assert "no longer judges DeleteTopicRequest" in caplog.text
        path.write_text(WHOLE)
        assert await said(runner, delete("t")) == "nobody deletes"
        assert await said(runner, create("t")) == ""


async def test_a_file_that_is_broken_meanwhile(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a policy cannot be restarted, all requests are refused, and restarts are tried at
    intervals, not at each request.
    """
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

"""A policy in Python in a process of its own, as a node runs it, and what its callers are told."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from minicontroller.admin.policy.process import PolicyProcess
from minicontroller.admin.policy.runner import PolicyRefusal, PolicyRunner
from minicontroller.policies.interface import JudgedRequest
from minicontroller.policies.loading import POLICY_KEY
from minicontroller.policies.states import ClusterSnapshot
from tests.policies import deeds
from tests.policies.asking import cluster, create

FILE = str(Path(deeds.__file__))
SHORT_MS = 700
LONG_MS = 60_000
PATIENCE_SECONDS = 60.0


@asynccontextmanager
async def process_of(
    name: str, timeout_ms: int = LONG_MS, configs: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[PolicyRunner, PolicyProcess]]:
    """Run a class of `deeds.py`, or of another file if `name` is `file:class`; at the end it is
    closed, and its process is gone.
    """
    spec = name if ":" in name else f"{FILE}:{name}"
    process = PolicyProcess({POLICY_KEY: spec, **(configs or {})}, timeout_ms=timeout_ms, secrets={"hidden"})
    await process.start()
    runner = PolicyRunner(process)
    try:
        yield runner, process
        await runner.close()
    finally:
        runner.kill()


async def said(runner: PolicyRunner, request: JudgedRequest, of: ClusterSnapshot | None = None) -> str | None:
    """Return the text that the caller gets; empty if the request passes."""
    try:
        await runner.judge(request, of or cluster())
    except PolicyRefusal as refused:
        return refused.message
    return ""


async def passes(runner: PolicyRunner, topic: str = "good") -> None:
    """Ask until the request passes: the process may still be starting."""
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            if await said(runner, create(topic)) == "":
                return
            await trio.sleep(0.01)


def is_there(pid: int) -> bool:
    """Whether there is such a process, if only as a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

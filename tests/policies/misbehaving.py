"""Policies that do what a test tells them, and the runner around them."""

import threading
from collections.abc import Callable

import pytest

from minicontroller.controller.policy_runner import (
    PolicyRefusal,
    PolicyRunner,
)
from minicontroller.policies import (
    ClusterState,
    CreateTopicRequest,
    TopicManagementPolicy,
)
from minicontroller.policies.judging import Judged
from tests.policies.asking import cluster

LIMIT_MS = 60_000  # never reached, but where a test moves the clock
LIMIT_SECONDS = LIMIT_MS / 1000
REAL_PATIENCE_SECONDS = 60.0  # for another thread to get as far as it certainly will


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

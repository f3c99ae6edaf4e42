"""Policies that do what a test tells them, and the runner around them."""

from collections.abc import Callable

import pytest

from minicontroller.admin.policy.runner import PolicyRefusal, PolicyRunner
from minicontroller.policies import ClusterState, CreateTopicRequest, TopicManagementPolicy
from minicontroller.policies.interface import JudgedRequest
from tests.policies.asking import cluster
from tests.policies.in_place import InPlace


class Doing(TopicManagementPolicy):
    """Does what it is told when it is asked about a new topic."""

    def __init__(self, action: Callable[[CreateTopicRequest], object]) -> None:
        self.action = action

    def validate_create_topic(self, request: CreateTopicRequest, cluster: ClusterState) -> None:  # noqa: ARG002
        return self.action(request)  # type: ignore[return-value]


def running(policy: TopicManagementPolicy) -> PolicyRunner:
    return PolicyRunner(InPlace(policy))


def raising(error: BaseException) -> Doing:
    def action(_: object) -> None:
        raise error

    return Doing(action)


async def refusal(runner: PolicyRunner, request: JudgedRequest) -> PolicyRefusal:
    with pytest.raises(PolicyRefusal) as refused:
        await runner.judge(request, cluster())
    return refused.value

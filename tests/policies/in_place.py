"""A policy in Python that is asked here and now: for tests of what is around it. The same tests ask
it in its process, too.
"""

import trio

from minicontroller.policies import TopicManagementPolicy
from minicontroller.policies.interface import JudgedRequest
from minicontroller.policies.judging import PolicyDescription, PolicyJudge, PolicyReply, call_policy, describe_policy
from minicontroller.policies.states import VersionedCluster
from minicontroller.policies.verdict import PolicyOutcome


class InPlace:
    """An `Asked` (`admin/policy/runner.py`)."""

    restarts = 0

    def __init__(self, policy: TopicManagementPolicy) -> None:
        self._policy = policy
        self._judge = PolicyJudge(policy)
        self._is_closed = False
        self.described: PolicyDescription = describe_policy(policy)

    async def ask(self, request: JudgedRequest, cluster: VersionedCluster) -> PolicyReply:
        await trio.lowlevel.checkpoint()
        ask = self._judge.question(request, cluster)
        if self._is_closed:
            return PolicyOutcome.BROKEN, "it was asked after it was closed"
        return (PolicyOutcome.ALLOWED, None) if ask is None else ask()

    async def close(self) -> PolicyReply:
        self._is_closed = True
        return call_policy(self._policy.close)

    def kill(self) -> None:
        self._is_closed = True

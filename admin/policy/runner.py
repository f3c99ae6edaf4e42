"""Asks the policy about requests, and never takes its faults for consent (K201-11).

Rule: `judge` returns only if the policy looked at the request and said nothing against it. A
violation, an exception, a returned value, a method that hangs and a process that cannot be started
are all raised as a `PolicyRefusal`, so that a caller who ignores the verdict lets nothing through.

The client gets a reason only if the policy gives one: the text of a `PolicyViolation`. Every other
refusal is UNKNOWN_SERVER_ERROR without a message, and the log (`minicontroller.policy`) has the
reason with the request.

Rules and a policy in Python are all asked. The first that denies decides, rules first. Rules are
judged in this process: their cost is bounded when they are loaded, and is lower than that of a
message to the policy process.
"""

import logging
import time
from typing import Protocol

import trio

from ...audit.event import NOT_AUTHENTICATED
from ...cluster.errors import Refusal
from ...policies.interface import AdminRequest, JudgedRequest, PolicyRequest
from ...policies.judging import NO_POLICY, PolicyDescription, PolicyReply, Rules, Verdicts
from ...policies.states import VersionedCluster
from ...policies.verdict import PolicyOutcome, RuleAction, Verdict
from ...process.observe.logs import about
from ...process.observe.metrics import VerdictMetrics
from ...protocol.error_codes import ErrorCode
from ..description import RequestDescription
from .cluster_view import TopicStates

logger = logging.getLogger("minicontroller.policy")

MAX_NAME = 250
"""The longest name of an ACL, user, quota, token or group in the log, in characters."""
ERROR_CODES = {PolicyOutcome.VIOLATED: ErrorCode.POLICY_VIOLATION, PolicyOutcome.BROKEN: ErrorCode.UNKNOWN_SERVER_ERROR}


class PolicyRefusal(Refusal):
    """The policy refused a request."""

    def __init__(self, verdict: Verdict) -> None:
        said_to_the_caller = verdict.message if verdict.decision is PolicyOutcome.VIOLATED else None
        super().__init__(ERROR_CODES[verdict.decision], said_to_the_caller)
        self.verdict = verdict


class PythonPolicy(Protocol):
    """A policy in Python, in a process of its own (`process.py`) or not."""

    restarts: int
    """How often the policy was started anew."""

    @property
    def described(self) -> PolicyDescription:
        """The description of the policy as it is loaded now."""

    async def ask(self, request: JudgedRequest, cluster: VersionedCluster) -> PolicyReply:
        """Ask the policy, and return its reply. Raises nothing of the policy's."""

    async def close(self) -> PolicyReply:
        """Close the policy, even if the caller is cancelled. It refuses everything afterwards."""

    def kill(self) -> None: ...


class PolicyRunner:
    """The rules and the policy in Python of a node, for its life. Rules may be replaced."""

    def __init__(self, policy: PythonPolicy | None = None, *, rules: Rules | None = None) -> None:
        self._policy = policy
        self._verdicts = Verdicts(NO_POLICY if policy is None else policy.described, rules)
        self._closed = False
        self.topic_states = TopicStates()
        """The topics in the form that the policy sees, kept between requests."""
        self.metrics = VerdictMetrics()
        self.use(rules)

    def use(self, rules: Rules | None) -> None:
        """Judge by these rules from the next request on."""
        self._verdicts = Verdicts(self._verdicts.policy, rules)
        self.metrics.follow(self.name, {} if rules is None else rules.rule_actions)

    @property
    def rules(self) -> Rules | None:
        return self._verdicts.rules

    @property
    def name(self) -> str:
        return self._verdicts.name

    @property
    def policy_hash(self) -> str:
        return self._verdicts.policy_hash

    @property
    def restarts(self) -> int:
        """How often the policy in Python was started anew."""
        return 0 if self._policy is None else self._policy.restarts

    @property
    def judges_administration(self) -> bool:
        return bool(self._verdicts.judged_apis)

    def judges_api(self, api: str) -> bool:
        """Whether rules or policy judge the `AdminRequest`s of an API, which is given by Kafka's
        name.
        """
        return api in self._verdicts.judged_apis

    async def judge(
        self,
        request: JudgedRequest,
        cluster: VersionedCluster,
        context: RequestDescription | None = None,
        *,
        is_enforced: bool = True,
    ) -> Verdict:
        """Return the verdict that allows the request, or raise `PolicyRefusal` with the verdict
        that refuses it.

        `cluster` is the cluster before the request takes effect, but after the earlier elements of
        the same request. `context` is for the log, and so is whether the caller enforces a refusal.
        """
        lines = _JudgementLog(request, context, is_enforced=is_enforced)
        began = time.perf_counter()
        verdicts = self._verdicts  # the rules may be replaced meanwhile
        findings, fault = verdicts.found(request, cluster)
        said = await self._asked(verdicts, request, cluster)
        if self._policy is not None and verdicts.policy != self._policy.described:
            # The policy was started anew, and its files have changed.
            self._verdicts = Verdicts(self._policy.described, self.rules)
            verdicts = Verdicts(self._policy.described, verdicts.rules)
        verdict = verdicts.verdict(findings, fault, said, time.perf_counter() - began)
        if said[0] is PolicyOutcome.BROKEN and verdict.decision is PolicyOutcome.VIOLATED:
            lines.refused(Verdict(said[0], verdicts.name, said[1]))
        lines.found(verdict)
        self.metrics.found(findings)
        self.metrics.verdicts[verdict.policy, verdict.rule, verdict.decision.value] += 1
        self.metrics.latencies.observe(verdict.seconds)
        if verdict.decision is PolicyOutcome.ALLOWED:
            return verdict
        lines.refused(verdict)
        raise PolicyRefusal(verdict)

    async def close(self) -> None:
        """Close the policy, within its time limit. Does not raise; cancellation does not interrupt
        it.
        """
        if self._closed or self._policy is None:
            return
        self._closed = True
        with trio.CancelScope(shield=True):
            decision, message = await self._policy.close()
        if decision is not PolicyOutcome.ALLOWED:
            logger.error("The policy %s could not be closed: %s", self.name, message)

    def kill(self) -> None:
        """End the policy in Python at once, if it has not been closed."""
        if self._policy is not None:
            self._policy.kill()

    async def _asked(self, verdicts: Verdicts, request: JudgedRequest, cluster: VersionedCluster) -> PolicyReply:
        if self._policy is not None and verdicts.asks(request):
            return await self._policy.ask(request, cluster)
        await trio.lowlevel.checkpoint()
        return PolicyOutcome.ALLOWED, None


class _JudgementLog:
    """The log lines about the judgement of one request, without anything that may be a secret."""

    def __init__(self, request: JudgedRequest, context: RequestDescription | None, *, is_enforced: bool) -> None:
        self._request = request
        self._context = context
        self._is_enforced = is_enforced

    def found(self, verdict: Verdict) -> None:
        text = "%s would be refused by the rule %s: %s"
        if verdict.decision is not PolicyOutcome.ALLOWED:
            text = "%s is also objected to by the rule %s: %s"
        for finding in verdict.findings:
            if finding.error is not None:
                self._say(logging.ERROR, "The rule %s failed on %s: %s", finding.rule, self._described, finding.error)
            elif finding.action is RuleAction.WARN:
                self._say(logging.WARNING, text, self._described, finding.rule, finding.message)

    def refused(self, verdict: Verdict) -> None:
        if verdict.decision is PolicyOutcome.VIOLATED and not self._is_enforced:
            text = "%s would be refused by the policy %s: %s"
            self._say(logging.INFO, text, self._described, verdict.policy, verdict.message)
        elif verdict.decision is PolicyOutcome.VIOLATED:
            self._say(logging.INFO, "The policy %s refused %s: %s", verdict.policy, self._described, verdict.message)
        else:
            text = "The policy %s failed on %s: %s\n%s"
            self._say(logging.ERROR, text, verdict.policy, self._described, verdict.message, repr(self._request))

    @property
    def _described(self) -> str:
        request = self._request
        match request:
            case PolicyRequest():
                resource = f"topic {request.topic}"
            case AdminRequest():
                resource = f"{request.kind} {request.name[:MAX_NAME]}"
            case _:
                resource = f"broker {request.broker or '(default)'}"
        who = request.principal or NOT_AUTHENTICATED
        return f"{request.api or type(request).__name__} of {resource} by {who}"

    def _say(self, level: int, text: str, *arguments: str | None) -> None:
        if logger.isEnabledFor(level):
            said = [argument or "" for argument in arguments]
            logger.log(level, text, *said, extra=None if self._context is None else about(self._context))

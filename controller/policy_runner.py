"""Asks the policy, and never lets its faults pass for consent (K201-11).

Rule: `judge` returns for one reason only: the policy looked at the request and said nothing against it. A violation, an exception,
a returned value, a hanging method and a thread that cannot be had are all raised as a `PolicyRefusal`. So whoever forgets to look
at the verdict lets nothing through.

The caller learns why only where the policy said it for him: a `PolicyViolation` carries its text, everything else is
UNKNOWN_SERVER_ERROR without one, and the reason stands in the log (`minicontroller.policy`) with the request.

Rules and a policy in Python are all asked; the first that denies gives the answer, the rules coming first. Rules are judged in place:
what they may cost is bounded when they are loaded, and the policy's thread would cost more than they do.
"""

import logging
import time
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import trio

from ..policies.interface import ClusterState, PolicyRequest, TopicManagementPolicy
from ..policies.judging import Judge, Judged, Said, answer
from ..policies.verdict import Action, Decision, Finding, Verdict
from ..protocol.error_codes import ErrorCode
from .errors import Refusal
from .metrics import VerdictMetrics
from .policy_thread import CallHangsError, PolicyThread, TooManyCallsHangError

if TYPE_CHECKING:
    from ..policies.rules import RuleSet

logger = logging.getLogger("minicontroller.policy")

ERROR_CODES = {Decision.VIOLATED: ErrorCode.POLICY_VIOLATION, Decision.BROKEN: ErrorCode.UNKNOWN_SERVER_ERROR}


class PolicyRefusal(Refusal):
    """The request is refused for the sake of the policy."""

    def __init__(self, verdict: Verdict) -> None:
        said_to_the_caller = verdict.message if verdict.decision is Decision.VIOLATED else None
        super().__init__(ERROR_CODES[verdict.decision], said_to_the_caller)
        self.verdict = verdict


class PolicyRunner:
    """One policy for the life of a node; its methods are called one at a time, off the event loop. Its rules may be replaced."""

    def __init__(self, policy: TopicManagementPolicy, *, timeout_ms: int, rules: "RuleSet | None" = None) -> None:
        self._judge = Judge(policy, rules)
        self._policy = policy
        self._timeout_ms = timeout_ms
        self._thread = PolicyThread(timeout_ms / 1000)
        self._closed = False
        self.metrics = VerdictMetrics()

    def use(self, rules: "RuleSet | None") -> None:
        """These rules judge from the next request on."""
        self._judge = self._judge.with_rules(rules)
        self.metrics.keep({rule.name for rule in rules.rules} if rules is not None else ())

    @property
    def rules(self) -> "RuleSet | None":
        return self._judge.rules

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def policy_hash(self) -> str:
        return self._judge.policy_hash

    @property
    def abandoned(self) -> int:
        """How many calls hang at this moment."""
        return self._thread.abandoned

    async def judge(self, request: Judged, cluster: ClusterState) -> Verdict:
        """The verdict that allows the request; a `PolicyRefusal` with the verdict that does not.

        `cluster` is as before the request takes effect, but after the earlier elements of its batch have.
        """
        began = time.perf_counter()
        judge = self._judge  # its rules may be replaced meanwhile
        findings, fault = judge.found(request, cluster)
        said = await self._asked(judge.question(request, cluster))
        verdict = judge.verdict(findings, fault, said, time.perf_counter() - began)
        if said[0] is Decision.BROKEN and verdict.decision is Decision.VIOLATED:
            _log(request, Verdict(said[0], judge.name, said[1]))
        _warn(request, findings)
        self.metrics.found(findings)
        self.metrics.verdicts[verdict.policy, verdict.rule, verdict.decision.value] += 1
        self.metrics.latencies.observe(verdict.seconds)
        if verdict.decision is Decision.ALLOWED:
            return verdict
        _log(request, verdict)
        raise PolicyRefusal(verdict)

    async def close(self) -> None:
        """Close the policy, within the same time limit. Does not raise, and is not cut short by cancellation."""
        if self._closed:
            return
        self._closed = True
        with trio.CancelScope(shield=True):
            decision, message = await self._guarded(lambda: answer(self._policy.close))
        self._thread.stop()
        if decision is not Decision.ALLOWED:
            logger.error("The policy %s could not be closed: %s", self.name, message)

    async def _asked(self, ask: Callable[[], Said] | None) -> Said:
        if self._closed:
            return Decision.BROKEN, "it was asked after it was closed"
        if ask is None:
            await trio.lowlevel.checkpoint()
            return Decision.ALLOWED, None
        return await self._guarded(ask)

    async def _guarded(self, ask: Callable[[], Said]) -> Said:
        try:
            return await self._thread.call(ask)
        except CallHangsError as hang:
            return (
                Decision.BROKEN,
                f"it takes more than policy.timeout.ms ({self._timeout_ms}), and is here now:\n{hang}",
            )
        except TooManyCallsHangError:
            return Decision.BROKEN, f"it was not asked, because {self.abandoned} calls of it hang"
        except Exception:  # noqa: BLE001 - whatever went wrong between us and the policy, it did not allow
            return Decision.BROKEN, f"it could not be asked:\n{traceback.format_exc()}"


def _wish(request: Judged) -> str:
    resource = (
        f"topic {request.topic}" if isinstance(request, PolicyRequest) else f"broker {request.broker or '(default)'}"
    )
    return (
        f"{request.api or type(request).__name__} of {resource} by {request.principal or 'an unauthenticated caller'}"
    )


def _warn(request: Judged, findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.error is not None:
            logger.error("The rule %s failed on %s: %s", finding.rule, _wish(request), finding.error)
        elif finding.action is Action.WARN:
            logger.warning("The rule %s warns of %s: %s", finding.rule, _wish(request), finding.message)


def _log(request: Judged, verdict: Verdict) -> None:
    wish = _wish(request)
    if verdict.decision is Decision.VIOLATED:
        logger.info("The policy %s refused %s: %s", verdict.policy, wish, verdict.message)
    else:
        logger.error(
            "The policy %s is broken and %s therefore refused: %s\n%r", verdict.policy, wish, verdict.message, request
        )

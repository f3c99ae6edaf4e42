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
from .hiding import secrets_of, without
from .logs import about
from .metrics import VerdictMetrics
from .policy_thread import CallHangsError, PolicyThread, TooManyCallsHangError

if TYPE_CHECKING:
    from ..policies.rules import RuleSet
    from .context import RequestContext

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

    async def judge(self, request: Judged, cluster: ClusterState, context: "RequestContext | None" = None) -> Verdict:
        """The verdict that allows the request; a `PolicyRefusal` with the verdict that does not.

        `cluster` is as before the request takes effect, but after the earlier elements of its batch have. `context` is for the log.
        """
        lines = _Lines(request, context)
        began = time.perf_counter()
        judge = self._judge  # its rules may be replaced meanwhile
        findings, fault = judge.found(request, cluster)
        said = await self._asked(judge.question(request, cluster))
        verdict = judge.verdict(findings, fault, said, time.perf_counter() - began)
        if said[0] is Decision.BROKEN and verdict.decision is Decision.VIOLATED:
            lines.refused(Verdict(said[0], judge.name, said[1]))
        lines.found(findings)
        self.metrics.found(findings)
        self.metrics.verdicts[verdict.policy, verdict.rule, verdict.decision.value] += 1
        self.metrics.latencies.observe(verdict.seconds)
        if verdict.decision is Decision.ALLOWED:
            return verdict
        lines.refused(verdict)
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


class _Lines:
    """What the log says of one request and its judgement: about whom, and nothing that may be a secret."""

    def __init__(self, request: Judged, context: "RequestContext | None") -> None:
        self._request = request
        self._context = context

    def found(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            if finding.error is not None:
                self._say(logging.ERROR, "The rule %s failed on %s: %s", finding.rule, self._wish, finding.error)
            elif finding.action is Action.WARN:
                self._say(logging.WARNING, "The rule %s warns of %s: %s", finding.rule, self._wish, finding.message)

    def refused(self, verdict: Verdict) -> None:
        if verdict.decision is Decision.VIOLATED:
            self._say(logging.INFO, "The policy %s refused %s: %s", verdict.policy, self._wish, verdict.message)
        else:
            text = "The policy %s is broken and %s therefore refused: %s\n%s"
            self._say(logging.ERROR, text, verdict.policy, self._wish, verdict.message, repr(self._request))

    @property
    def _wish(self) -> str:
        request = self._request
        topic = f"topic {request.topic}" if isinstance(request, PolicyRequest) else ""
        resource = topic or f"broker {getattr(request, 'broker', '') or '(default)'}"
        who = request.principal or "an unauthenticated caller"
        return f"{request.api or type(request).__name__} of {resource} by {who}"

    def _say(self, level: int, text: str, *arguments: str | None) -> None:
        if logger.isEnabledFor(level):
            secrets = secrets_of(self._request)
            said = [without(argument or "", secrets) for argument in arguments]
            logger.log(level, text, *said, extra=None if self._context is None else about(self._context))

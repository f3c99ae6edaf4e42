"""Asks the policy, and never lets its faults pass for consent (K201-11).

Rule: `judge` returns for one reason only: the policy looked at the request and said nothing against it. A violation, an exception,
a returned value, a hanging method and a thread that cannot be had are all raised as a `PolicyRefusal`. So whoever forgets to look
at the verdict lets nothing through.

The caller learns why only where the policy said it for him: a `PolicyViolation` carries its text, everything else is
UNKNOWN_SERVER_ERROR without one, and the reason stands in the log (`minicontroller.policy`) with the request.

Rules and a policy in Python are all asked; the first that denies gives the answer, the rules coming first. Rules are judged in place:
what they may cost is bounded when they are loaded, and the policy's thread would cost more than they do.
"""

import inspect
import logging
import time
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import trio

from ..policies.interface import (
    AlterTopicRequest,
    ClusterState,
    CreateTopicRequest,
    DeleteRecordsRequest,
    DeleteTopicRequest,
    PolicyRequest,
    PolicyViolation,
    TopicManagementPolicy,
)
from ..policies.legacy import AlterBrokerConfigsRequest, LegacyPolicies
from ..policies.loading import policy_hash
from ..policies.verdict import Action, Decision, Finding, Verdict, refusal
from ..protocol.error_codes import ErrorCode
from .errors import MAX_TEXT, Refusal
from .metrics import VerdictMetrics
from .policy_thread import CallHangsError, PolicyThread, TooManyCallsHangError

if TYPE_CHECKING:
    from ..policies.rules import RuleSet

NO_TEXT = "Request parameters do not satisfy the configured policy."

logger = logging.getLogger("minicontroller.policy")

Judged = PolicyRequest | AlterBrokerConfigsRequest


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
        self._class_name = policy.policy_name if isinstance(policy, LegacyPolicies) else type(policy).__qualname__
        self._class_hash = policy_hash(policy)
        self.use(rules)
        self._policy = policy
        self._timeout_ms = timeout_ms
        self._thread = PolicyThread(timeout_ms / 1000)
        self._methods = _methods(policy)
        self._closed = False
        self.metrics = VerdictMetrics()

    def use(self, rules: "RuleSet | None") -> None:
        """These rules judge from the next request on."""
        self.rules = rules
        judges = (self._class_name if self._class_hash else "", "" if rules is None else rules.name)
        self.name = " and ".join(filter(None, judges)) or self._class_name
        self.policy_hash = (
            sha256(f"{self._class_hash} {rules.hash}".encode()).hexdigest()
            if rules is not None and rules.hash
            else self._class_hash
        )

    @property
    def abandoned(self) -> int:
        """How many calls hang at this moment."""
        return self._thread.abandoned

    async def judge(self, request: Judged, cluster: ClusterState) -> Verdict:
        """The verdict that allows the request; a `PolicyRefusal` with the verdict that does not.

        `cluster` is as before the request takes effect, but after the earlier elements of its batch have.
        """
        began = time.perf_counter()
        name, in_force = self.name, self.policy_hash
        findings, fault = self._found(request, cluster)
        decision, message = await self._asked(request, cluster)
        if fault is not None:
            decision, message = Decision.BROKEN, fault
        elif (denied := refusal(findings)) is not None:
            if decision is Decision.BROKEN:
                _log(request, Verdict(decision, name, message))
            decision, message = Decision.VIOLATED, _sendable(denied.message) or NO_TEXT
        verdict = Verdict(decision, name, message, time.perf_counter() - began, findings, in_force)
        _warn(request, findings)
        self.metrics.verdicts[verdict.policy, rule_of(verdict), decision.value] += 1
        self.metrics.latencies.observe(verdict.seconds)
        if decision is Decision.ALLOWED:
            return verdict
        _log(request, verdict)
        raise PolicyRefusal(verdict)

    async def close(self) -> None:
        """Close the policy, within the same time limit. Does not raise, and is not cut short by cancellation."""
        if self._closed:
            return
        self._closed = True
        with trio.CancelScope(shield=True):
            decision, message = await self._guarded(partial(_answer, self._policy.close))
        self._thread.stop()
        if decision is not Decision.ALLOWED:
            logger.error("The policy %s could not be closed: %s", self.name, message)

    def _found(self, request: Judged, cluster: ClusterState) -> tuple[tuple[Finding, ...], str | None]:
        """What the rules have against the request, and why they could not tell, which is our fault."""
        if self.rules is None or not isinstance(request, PolicyRequest):
            return (), None
        try:
            return self.rules.judge(request, cluster), None
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - a panic of the engine is none of Exception's
            return (), f"its rules could not be asked:\n{traceback.format_exc()}"

    async def _asked(self, request: Judged, cluster: ClusterState) -> tuple[Decision, str | None]:
        if self._closed:
            return Decision.BROKEN, "it was asked after it was closed"
        method = self._methods.get(type(request))
        if method is None:
            await trio.lowlevel.checkpoint()
            return Decision.ALLOWED, None
        return await self._guarded(partial(_answer, method, request, cluster))

    async def _guarded(self, ask: Callable[[], tuple[Decision, str | None]]) -> tuple[Decision, str | None]:
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


def _methods(policy: TopicManagementPolicy) -> dict[type, Callable[[Any, ClusterState], object]]:
    """What to call for a request. A method that the policy did not override allows, and costs nothing."""
    methods: dict[type, Callable[[Any, ClusterState], object]] = {}
    for request, name in (
        (CreateTopicRequest, "validate_create_topic"),
        (AlterTopicRequest, "validate_alter_topic"),
        (DeleteTopicRequest, "validate_delete_topic"),
        (DeleteRecordsRequest, "validate_delete_records"),
    ):
        method = getattr(policy, name)
        if getattr(method, "__func__", None) is not getattr(TopicManagementPolicy, name):
            methods[request] = method
    if isinstance(policy, LegacyPolicies):
        methods[AlterBrokerConfigsRequest] = policy.validate_alter_broker_configs
    return methods


def _answer(method: Callable[..., object], *arguments: object) -> tuple[Decision, str | None]:
    """Runs in the policy's thread. All that is the policy's stays within, its exceptions' `__str__` included."""
    try:
        try:
            returned = method(*arguments)
        except PolicyViolation as violation:
            return Decision.VIOLATED, _sendable(str(violation)) or NO_TEXT
        if returned is None:
            return Decision.ALLOWED, None
        if inspect.iscoroutine(returned):
            returned.close()
        return Decision.BROKEN, f"it returned {returned!r:.200}, but a policy allows by returning nothing"
    except BaseException:  # noqa: BLE001 - a policy's SystemExit is no better than its ValueError
        return Decision.BROKEN, f"it raised:\n{traceback.format_exc()}"


def _sendable(text: str) -> str:
    """What a string of the protocol can carry: valid UTF-8, and not too long."""
    return text.strip()[:MAX_TEXT].encode("utf-8", "replace").decode()


def rule_of(verdict: Verdict) -> str:
    """The rule behind a verdict, where the policy has rules."""
    return getattr(verdict, "rule", None) or ""


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

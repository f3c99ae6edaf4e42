"""Compares the recorded verdict with the candidate's, and classifies the difference.

A value that the log hides equals any text. Of an exception the last line is compared, because the
others depend on the machine; so do addresses in memory and the module names of loaded policies,
which are left out.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from ...audit.event import REDACTED, Decision, Effect, RecordedState, Requested, RuleFinding
from ...policies.verdict import PolicyOutcome as Decided
from ...policies.verdict import RuleAction, Verdict

ALLOWED, VIOLATED, BROKEN = (decided.value for decided in Decided)
TIMED_OUT = "it takes more than policy.timeout.ms"
TRACEBACK = "Traceback (most recent call last):"
ADDRESS = re.compile(r" at 0x[0-9a-f]{1,16}>")
"""The address of an object in memory, which is another one in each process."""
NO_ADDRESS = " at 0x...>"
MODULE = re.compile(r"\bpolicy_[0-9a-f]{8}_")
"""The beginning of the module name that `class_lookup` gives to a policy's file, another one in
each folder.
"""


class DifferenceKind(StrEnum):
    NEWLY_DENIED = "newly-denied"
    NEWLY_ALLOWED = "newly-allowed"
    """The policy refused the request, and the candidate allows it. What Kafka itself would have had
    against it is not known.
    """
    OTHER_MESSAGE = "other-message"
    """The same decision, by another rule, in other words or with other warnings."""
    BROKEN = "broken"
    """The candidate fails, where the policy then did not, or failed otherwise."""
    TIMED_OUT = "timed-out"
    """The candidate takes too long."""
    RECORDED_BROKEN = "recorded-broken"
    """The policy failed then; the candidate does not."""
    MOOT = "moot"
    """The request could not have been made in the counterfactual history, after what the candidate
    refused or allowed before.
    """


class Opinion(msgspec.Struct, frozen=True):
    decision: str
    """`allowed`, `violated` or `broken`."""
    rule: str = ""
    message: str | None = None
    findings: tuple[RuleFinding, ...] = ()


NO_POLICY = Opinion(ALLOWED)


class ComparedVerdicts(NamedTuple):
    """The recorded opinion on a request, the candidate's, and how they differ."""

    then: Opinion
    now: Opinion
    kind: DifferenceKind | None
    """How the two opinions differ; None if they agree."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A request on which the candidate's verdict differs from the recorded one."""

    cluster_id: str
    epoch: int
    sequence: int
    time_ms: int
    kind: DifferenceKind
    principal: str | None
    operation: str
    topic: str
    rule: str
    """The rule that makes the difference: the candidate's, or else that of the policy then; empty
    where it was no rule.
    """
    recorded: Opinion
    candidate: Opinion
    hidden: tuple[str, ...]
    """Configs whose values the log does not show, in what the candidate was asked about."""
    is_certain: bool
    """Whether the log records the whole cluster as it was."""
    is_steady: bool
    """Whether the candidate said the same when it was asked once more."""
    before: RecordedState | None = None
    """The topic as it would have been before the request, with --counterfactual."""
    requested: Requested | None = None
    """The topic that was asked for, as it would have been, with --counterfactual."""
    event: msgspec.Raw
    """The recorded event: the request, the topic before and after, and what became of it."""


def recorded(event: Decision) -> Opinion:
    """Return the recorded opinion as far as it had consequences: a verdict that was not enforced
    let the request pass, whatever it says.
    """
    policy = event.policy
    if policy is None:
        return NO_POLICY
    if not event.enforced:
        return passed(policy.findings)
    return Opinion(policy.decision, policy.rule, policy.message, policy.findings)


def passed(findings: tuple[RuleFinding, ...]) -> Opinion:
    """Return the opinion that counts where these findings of rules were not enforced."""
    return Opinion(ALLOWED, findings=tuple(each for each in findings if each.action != RuleAction.DENY.value))


def is_failed(event: Decision) -> bool:
    """Whether the cluster itself refused a request that a gateway passed on without enforcing a
    verdict: no policy would have changed what became of it.
    """
    return not event.enforced and event.effect is Effect.NONE and event.error_code != 0


def opinion(verdict: Verdict, *, names: Mapping[str, str]) -> Opinion:
    """Return the candidate's opinion; `names` says where its files were unpacked, and where they
    came from.
    """
    findings = tuple(
        RuleFinding(
            rule=finding.rule,
            action=finding.action.value,
            message=finding.message,
            error=finding.error if finding.error is None else _everywhere_alike(finding.error, names),
        )
        for finding in verdict.findings
    )
    message = verdict.message
    if message is not None:
        message = _everywhere_alike(message, names)
    return Opinion(verdict.decision.value, verdict.rule, message, findings)


def difference_between(then: Opinion, now: Opinion, *, timed_out: bool = False) -> DifferenceKind | None:
    if now.decision == BROKEN:
        if then.decision == BROKEN and _essence(then.message) == _essence(now.message):
            return None
        return DifferenceKind.TIMED_OUT if timed_out else DifferenceKind.BROKEN
    if then.decision == BROKEN:
        return DifferenceKind.RECORDED_BROKEN
    if then.decision != now.decision:
        return DifferenceKind.NEWLY_DENIED if now.decision == VIOLATED else DifferenceKind.NEWLY_ALLOWED
    same = then.rule == now.rule and agree(then.message, now.message) and _findings_agree(then.findings, now.findings)
    return None if same else DifferenceKind.OTHER_MESSAGE


def rule_behind(then: Opinion, now: Opinion) -> str:
    if now.rule or then.rule or now.decision != then.decision:
        return now.rule or then.rule
    others = [finding.rule for finding in now.findings if finding not in then.findings]
    others += [finding.rule for finding in then.findings if finding not in now.findings]
    return next(iter(others), "")


def agree(then: str | None, now: str | None) -> bool:
    """Whether two opinions agree, as far as the log shows the recorded one."""
    if then == now:
        return True
    if then is None or now is None:
        return False
    then, now = _of_any_process(then), _of_any_process(now)
    return then == now or (REDACTED in then and _fits(then.split(REDACTED), now))


def _findings_agree(then: tuple[RuleFinding, ...], now: tuple[RuleFinding, ...]) -> bool:
    return then == now or (
        len(then) == len(now)
        and all(
            one.rule == other.rule
            and one.action == other.action
            and agree(one.message, other.message)
            and agree(one.error, other.error)
            for one, other in zip(then, now, strict=True)
        )
    )


def _fits(parts: list[str], text: str) -> bool:
    """Whether a text consists of these parts with something between them."""
    first, *middle, last = parts
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _essence(message: str | None) -> str:
    """Return why a policy broke, without what is different each time."""
    text = _of_any_process(message or "").strip()
    if text.startswith(TIMED_OUT):
        return TIMED_OUT
    return text.splitlines()[-1].strip() if TRACEBACK in text else text


def _everywhere_alike(text: str, names: Mapping[str, str]) -> str:
    for here, there in names.items():
        text = text.replace(here, there)
    return _of_any_process(text)


def _of_any_process(text: str) -> str:
    """Return a text as every process would write it. To look for what is rarely there takes longer
    than most verdicts.
    """
    if " at 0x" in text:
        text = ADDRESS.sub(NO_ADDRESS, text)
    return MODULE.sub("", text) if "policy_" in text else text

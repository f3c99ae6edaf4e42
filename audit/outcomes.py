"""Classifies the outcome of a requested change in the words that log, page, command line, metrics,
reports and back-tests share (docs/audit.md, "Would be refused").

Rule: a change without an error *would be refused* if a rule or a policy objects to it and the
objection is not enforced, because a gateway observes or passes on failure, or because the rule has
the action `warn` or `audit`. So would be a change that was passed because nothing could judge it.
A change with an error is refused and nothing else.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..policies.verdict import PolicyOutcome, RuleAction
from .event import Decision

ALLOWED, REFUSED, WOULD_BE_REFUSED = "allowed", "refused", "would be refused"


class Found(Protocol):
    """The finding of a rule: `Finding` of a policy, or `RuleFinding` of the audit log."""

    @property
    def rule(self) -> str: ...
    @property
    def action(self) -> str: ...
    @property
    def message(self) -> str: ...


class Said(Protocol):
    """The decision of a policy: a `Verdict`, or the `PolicyDecision` of the audit log."""

    @property
    def decision(self) -> str: ...
    @property
    def policy(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def message(self) -> str | None: ...
    @property
    def findings(self) -> Sequence[Found]: ...


class Objection(NamedTuple):
    """The rule and the policy that refuse a change, or would if they were enforced."""

    rule: str
    """The rule that objects; empty if it was no rule."""
    policy: str
    """The policy or the rule files that object; empty if nothing could judge the change."""
    message: str

    @property
    def by(self) -> str:
        """The name of the rule or policy that objects; empty if nothing could judge the change."""
        return self.rule or self.policy


def objection(code: int, said: Said | None, *, is_enforced: bool, unjudged: str | None = None) -> Objection | None:
    """Return why a change would be refused; None if it was refused, or nothing objects to it.

    `code` is the change's error code, `said` the policy's verdict if there is one, and `unjudged`
    the reason why there is none. What needs no verdict counts as enforced.
    """
    if code:
        return None
    if said is None:
        return None if is_enforced or unjudged is None else Objection("", "", unjudged)
    if said.decision == PolicyOutcome.BROKEN:
        return None if is_enforced else Objection(said.rule, said.policy, broken(said.message))
    if said.decision == PolicyOutcome.VIOLATED:
        return None if is_enforced else Objection(said.rule, said.policy, said.message or "")
    found = next((each for each in said.findings if each.action != RuleAction.DENY), None)
    return None if found is None else Objection(found.rule, said.policy, found.message)


def would_be_refused(event: Decision) -> Objection | None:
    """Return why the change of a decision would be refused; None if it was refused, or nothing
    objects to it.
    """
    return objection(event.error_code, event.policy, is_enforced=event.enforced, unjudged=event.unjudged)


def outcome(event: Decision) -> str:
    """Return the outcome of a decision: ALLOWED, REFUSED or WOULD_BE_REFUSED."""
    if event.error_code:
        return REFUSED
    return ALLOWED if would_be_refused(event) is None else WOULD_BE_REFUSED


def broken(message: str | None) -> str:
    """Return the last line of a policy's traceback, which says why it failed."""
    last = (message or "").rstrip().rpartition("\n")[2].strip()
    return f"The policy failed: {last}"

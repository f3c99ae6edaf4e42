"""The verdict of a policy on a request, for the answer, the log, the audit and the metrics.

Rule: a verdict is frozen and complete. It says what was decided, by which rule, for what reason and
under which policy, so that its reader needs neither the policy nor the request.
"""

from collections.abc import Sequence
from enum import StrEnum

import msgspec


class PolicyOutcome(StrEnum):
    ALLOWED = "allowed"
    VIOLATED = "violated"
    """The policy refused the request, with a message for the client."""
    BROKEN = "broken"
    """The policy failed, with a message for the log. The request is refused."""


class RuleAction(StrEnum):
    """The consequence of a request that does not meet a rule."""

    DENY = "deny"
    WARN = "warn"
    """The request is allowed, and the log has the finding."""
    AUDIT = "audit"
    """The request is allowed, and only the verdict has the finding."""


class Finding(msgspec.Struct, frozen=True):
    """A rule's objection to a request."""

    rule: str
    action: RuleAction
    message: str
    error: str | None = None
    """Why the rule could not be evaluated, in which case it denies."""


def refusal(findings: Sequence[Finding]) -> Finding | None:
    """Return the first finding that denies, whose message the client gets; None if none denies."""
    return next((finding for finding in findings if finding.action is RuleAction.DENY), None)


class Verdict(msgspec.Struct, frozen=True):
    """The outcome of asking the policy about one request."""

    decision: PolicyOutcome
    policy: str
    """The name of the policy's class, of the rule files, or both."""
    message: str | None = None
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    """The findings of the rules, in their order; a policy in Python has none."""
    policy_hash: str = ""
    """SHA-256, in hexadecimal, of the policy and rules that were in force."""

    @property
    def rule(self) -> str:
        """The name of the rule that refused the request; empty if none did."""
        denied = refusal(self.findings)
        return "" if denied is None else denied.rule

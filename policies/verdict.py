"""What came of asking the policy once: for the answer, the log, the audit and the metrics.

Rule: plain, frozen, and complete: who reads a verdict needs neither the policy nor the request to
tell what was decided by which rule, for what reason, and under which policy.
"""

from collections.abc import Sequence
from enum import Enum

import msgspec


class PolicyOutcome(Enum):
    ALLOWED = "allowed"
    VIOLATED = "violated"
    """The policy refused, with a message for the caller."""
    BROKEN = "broken"
    """The policy failed, with a message for the log."""


class Action(Enum):
    """What a rule does about a request that it has something against."""

    DENY = "deny"
    WARN = "warn"
    """The request passes, and the log says so."""
    AUDIT = "audit"
    """The request passes, and the verdict alone says so."""


class Finding(msgspec.Struct, frozen=True):
    """What one rule has against a request."""

    rule: str
    action: Action
    message: str
    error: str | None = None
    """Why the rule could not be evaluated; then its action is to deny."""


def refusal(findings: Sequence[Finding]) -> Finding | None:
    """Return the first finding that denies: its message is the caller's."""
    return next((finding for finding in findings if finding.action is Action.DENY), None)


class Verdict(msgspec.Struct, frozen=True):
    """The outcome of asking the policy once."""

    decision: PolicyOutcome
    policy: str
    """The name of its class, of its files, or both."""
    message: str | None = None
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    """Of the rules, in their order; a policy in Python has none."""
    policy_hash: str = ""
    """SHA-256, in hexadecimal, of the policy that was in force."""

    @property
    def rule(self) -> str:
        """The rule that decided; empty if none did."""
        denied = refusal(self.findings)
        return "" if denied is None else denied.rule

"""The recent decisions of this process, for the page that shows them: who asked for a change, the
outcome, and the reason.

Every answer to a request for changes is listed, also if nothing was judged because the request came
too late or was not allowed. The list has a fixed length; the audit log is the record of all
decisions.
"""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from ...audit.outcomes import WOULD_BE_REFUSED, Objection, Said, broken, objection
from ...clock import now
from ...cluster.errors import Refusal
from ...policies.verdict import PolicyOutcome, RuleAction
from ...process.observe.logs import about
from ...process.observe.secrets import redact, secret_values
from ...protocol.dry_runs import is_dry_run
from ...protocol.error_codes import ErrorCode
from ..changes import Outcome
from ..description import RequestDescription

log = logging.getLogger("minicontroller.decision")

KEPT = 200
MAX_NOTED = 5
"""The most findings of rules in one decision."""
MAX_CHARACTERS = 500
"""The most characters of a reason, a name or a client in one decision."""


class RecentDecision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The decision about one element of one request, as the page shows it."""

    number: int
    """The number of the decision in this process, from 1."""
    time: float
    """The time in seconds since 1970."""
    node: int
    """The broker id of the node that decided."""
    epoch: int
    """The epoch of the controller that decided, or that the node followed."""
    api: str
    """Kafka's name of the API that the client used."""
    kind: str
    """`topic`, `broker`, `logger` or one of ENTITY_KINDS; `request` for a request that names
    nothing.
    """
    name: str
    outcome: str
    """The name of the error code; NONE if the change was carried out."""
    reason: str = ""
    would_be_refused: bool = False
    """Whether it was carried out although a rule or a policy objects to it, or nothing could judge
    it; `reason`, `policy` and `rule` tell why.
    """
    policy: str = ""
    """The class of the policy that refused the change, or would; empty if none did."""
    rule: str = ""
    principal: str = ""
    client: str = ""
    host: str = ""
    software: str = ""
    validate_only: bool = False
    sequence: int = 0
    """The number of its event in the audit log of that epoch; 0 if there is none."""
    is_late: bool = False
    """Whether it was carried out although its client got REQUEST_TIMED_OUT."""
    in_doubt: bool = False
    """Whether its outcome is unknown to the controller."""
    noted: tuple[str, ...] = ()
    """The findings of rules that did not refuse the change, beside the one that `reason` tells."""


class RecentDecisions:
    """A bounded list of the recent decisions of a process, the newest last."""

    def __init__(self) -> None:
        self.count = 0
        """The number of all decisions so far, which is that of the newest."""
        self._ring: deque[RecentDecision] = deque(maxlen=KEPT)
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def __iter__(self) -> Iterator[RecentDecision]:
        """Iterate over the decisions, the oldest first."""
        return iter(self._ring)

    def after(self, number: int) -> list[RecentDecision]:
        """Return the kept decisions with a number above this one, the oldest first."""
        return list(islice(self._ring, max(0, len(self._ring) - (self.count - number)), None))

    def of(self, kind: str, name: str) -> list[RecentDecision]:
        """Return the kept decisions about one topic or broker, the oldest first."""
        return [each for each in self._ring if each.name == name and each.kind == kind]

    def skip(self, count: int) -> None:
        self.count += count

    def append(self, decision: RecentDecision) -> None:
        """Keep a decision, whose number must be `count + 1`."""
        self.count = decision.number
        self._ring.append(decision)

    def notify(self) -> None:
        """Call the listeners. It is called once per request."""
        for listener in self._listeners:
            listener()


class NodeDecisions:
    """Adds the decisions of one node to the list that all nodes of the process share."""

    def __init__(
        self,
        recent: RecentDecisions,
        *,
        broker_id: int,
        epoch: Callable[[], int],
        counts: Counter[tuple[int, int]],
        would_be_refused: Counter[tuple[str, str]],
    ) -> None:
        """Begin with a function that returns the epoch of the controller that decides now, and with
        the counters of the controller's decisions by API key and error code, and of those that
        would be refused by policy and rule.
        """
        self._recent = recent
        self._broker_id = broker_id
        self._epoch = epoch
        self._counts = counts
        self._would_be_refused = would_be_refused

    def record(self, context: RequestDescription, outcomes: Sequence[Outcome], *, validate_only: bool) -> None:
        """Note decisions of the controller. All of a large batch are counted, but only the last
        ones are kept.
        """
        once = (
            outcomes if len(outcomes) == 1 else list({id(outcome): outcome for outcome in outcomes}.values())
        )  # K4-D1
        for outcome in once:
            self._counts[context.api_key, outcome.code] += 1
            if (objects := _objection(outcome)) is not None:
                self._would_be_refused[objects.policy, objects.rule] += 1
        self.add(context, once, validate_only=validate_only)

    def add(self, context: RequestDescription, outcomes: Sequence[Outcome], *, validate_only: bool) -> None:
        """Note decisions that the receiving node made without the controller."""
        if not outcomes:
            return
        skipped = 0 if log.isEnabledFor(logging.DEBUG) else max(0, len(outcomes) - KEPT)
        self._recent.skip(skipped)
        for outcome in outcomes[skipped:]:
            decision = self._decision(context, outcome.change.kind, outcome.change.resource, outcome.refusal)
            self._append(context, _with_judgement(decision, outcome, validate_only=validate_only))
        self._recent.notify()

    def refused(self, context: RequestDescription, request: Any, refusal: Refusal) -> None:
        """Note that a request was refused as a whole, because it was not allowed, came too late, or
        met a node that is not the controller.
        """
        if refusal.code == ErrorCode.NOT_CONTROLLER and context.forwarded:
            return  # the request goes on to another node
        validate_only = getattr(request, "validate_only", False) or is_dry_run(request)
        for kind, name in _asked_for(context, request, refusal.code):
            decision = self._decision(context, kind, name, refusal)
            self._append(context, msgspec.structs.replace(decision, validate_only=validate_only))
        self._recent.notify()

    def _decision(self, context: RequestDescription, kind: str, name: str, refusal: Refusal | None) -> RecentDecision:
        return RecentDecision(
            number=self._recent.count + 1,
            time=now(),
            node=self._broker_id,
            epoch=self._epoch(),
            api=context.policy_api,
            kind=kind,
            name=name[:MAX_CHARACTERS],
            outcome=(ErrorCode.NONE if refusal is None else refusal.code).name,
            reason="" if refusal is None else (refusal.message or refusal.reason)[:MAX_CHARACTERS],
            principal=context.origin.principal or "",
            client=(context.client_id or "")[:MAX_CHARACTERS],
            host=context.origin.client_host,
            software=context.origin.software[:MAX_CHARACTERS],
        )

    def _append(self, context: RequestDescription, decision: RecentDecision) -> None:
        self._recent.append(decision)
        if log.isEnabledFor(logging.DEBUG):
            reason = f" ({decision.reason})" if decision.reason else ""
            outcome = WOULD_BE_REFUSED if decision.would_be_refused else decision.outcome
            log.debug(
                "%s of %s %s: %s%s", decision.api, decision.kind, decision.name, outcome, reason,
                extra=about(context),
            )  # fmt: skip


def _objection(outcome: Outcome) -> Objection | None:
    """Return why a change would be refused; None if it was refused, or nothing objects to it."""
    said = None if outcome.judgement is None else outcome.judgement.verdict
    unjudged = None if outcome.unjudged is None else outcome.unjudged.reason
    return objection(outcome.code, said, is_enforced=outcome.is_enforced, unjudged=unjudged)


def _with_judgement(decision: RecentDecision, outcome: Outcome, *, validate_only: bool) -> RecentDecision:
    """Add the policy's or the node's reasons to a decision, without secrets."""
    verdict = None if outcome.judgement is None else outcome.judgement.verdict
    objects = _objection(outcome)
    if (
        verdict is None
        and objects is None
        and not (decision.reason or validate_only or outcome.sequence or outcome.is_late)
    ):
        return decision  # there is nothing to add
    reason = decision.reason
    if verdict is None:
        reason = redact(reason, secret_values(outcome.change.operations, outcome.change.kind))
    explained = explanation(reason, verdict, objects, is_enforced=outcome.is_enforced)
    return msgspec.structs.replace(
        decision,
        reason=explained.message[:MAX_CHARACTERS],
        would_be_refused=objects is not None,
        policy=explained.policy,
        rule=explained.rule,
        validate_only=validate_only,
        sequence=outcome.sequence,
        is_late=outcome.is_late,
        noted=notes(verdict, objects),
    )


def explanation(reason: str, said: Said | None, objects: Objection | None, *, is_enforced: bool) -> Objection:
    """Return the reason for the outcome of a change, and the policy and the rule that refused it or
    would. `reason` is the text of its error, and `objects` what objects to a change without one.
    """
    if objects is not None:
        return objects
    if said is None or said.decision == PolicyOutcome.ALLOWED or not is_enforced:
        return Objection("", "", reason)
    return Objection(said.rule, said.policy, broken(said.message) if said.decision == PolicyOutcome.BROKEN else reason)


def notes(said: Said | None, objects: Objection | None) -> tuple[str, ...]:
    """Return the findings of rules that did not refuse a change, without the objection to it."""
    told = None if objects is None else (objects.rule, objects.message)
    found = () if said is None else said.findings
    noted = [each for each in found if each.action != RuleAction.DENY and (each.rule, each.message) != told]
    return tuple(f"{each.rule}: {each.message}"[:MAX_CHARACTERS] for each in noted[:MAX_NOTED])


def _asked_for(context: RequestDescription, request: Any, code: ErrorCode) -> list[tuple[str, str]]:
    """Return kind and name of the last elements that a request would have changed. A request that
    changes nothing is listed only if it was not allowed, and without a name.
    """
    changes = context.changes
    if changes is None:
        return [("request", "")] if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else []
    named = dict.fromkeys((each.kind, each.resource) for each in changes.requested(request))
    return list(named)[-KEPT:]

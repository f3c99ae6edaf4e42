"""The last decisions of this process, for people who look: who asked for what, what came of it, and
why.

Rule: whatever a client was told of a wish to change something is here, also where nobody judged it:
it came too late, or was not allowed. A fixed number is kept, however many are made and whoever
looks. It is no record: the audit log is.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from ...policies.verdict import Action
from ...policies.verdict import PolicyOutcome as Verdicts
from ...protocol.error_codes import ErrorCode
from ..errors import Refusal
from ..observe.logs import about
from ..observe.secrets import redact, secret_values
from ..requests.changes import Change, kind_and_name
from ..requests.context import RequestContext
from ..requests.error_answers import ENTITIES, error_answer

if TYPE_CHECKING:
    from ..handlers.node import Node

log = logging.getLogger("minicontroller.decision")

KEPT = 200
MAX_NOTED = 5
"""What rules noted of one decision."""
MAX_CHARACTERS = 500
"""Of a reason: a policy may say a lot."""


class Decision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What was decided about one element of one request."""

    number: int
    """Counts the decisions of this process, from 1."""
    time: float
    """Seconds since 1970."""
    node: int
    epoch: int
    """Of the controller that decided."""
    api: str
    """Kafka's name of what the client used."""
    kind: str
    """`topic`, `broker` or `logger`; `request` for one that names nothing."""
    name: str
    outcome: str
    """The name of the error code, NONE if it was carried out."""
    reason: str = ""
    policy: str = ""
    """The class that refused it, where one did."""
    rule: str = ""
    principal: str = ""
    client: str = ""
    host: str = ""
    software: str = ""
    validate_only: bool = False
    sequence: int = 0
    """Of its event in the audit log of that epoch; 0 if it has none."""
    is_late: bool = False
    """It was carried out, and its client was told REQUEST_TIMED_OUT."""
    in_doubt: bool = False
    """Whether it was carried out the controller did not learn."""
    noted: tuple[str, ...] = ()
    """What rules had to note that did not refuse it."""


class Decisions:
    """A bounded list of the last decisions, the newest last."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.count = 0
        """Ever made; the newest has this number."""
        self._ring: deque[Decision] = deque(maxlen=KEPT)
        self._clock = clock
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def __iter__(self) -> Iterator[Decision]:
        """Iterate over the decisions, the oldest first."""
        return iter(self._ring)

    def after(self, number: int) -> list[Decision]:
        """Return the kept decisions with a higher number, the oldest first."""
        return list(islice(self._ring, max(0, len(self._ring) - (self.count - number)), None))

    def of(self, kind: str, name: str) -> list[Decision]:
        """Return what was decided about one topic or broker, the oldest first."""
        return [each for each in self._ring if each.name == name and each.kind == kind]

    def record(self, node: "Node", context: RequestContext, changes: Sequence[Change], *, validate_only: bool) -> None:
        """Note what the controller has decided. All of a large batch is counted, but only its end
        is kept.
        """
        once = changes if len(changes) == 1 else list({id(change): change for change in changes}.values())  # K4-D1
        for change in once:
            node.metrics.decisions[context.api_key, change.code] += 1
        self.add(node, context, once, validate_only=validate_only)

    def add(self, node: "Node", context: RequestContext, changes: Sequence[Change], *, validate_only: bool) -> None:
        """Note what the node that was asked has decided without the controller."""
        if not changes:
            return
        skipped = 0 if log.isEnabledFor(logging.DEBUG) else max(0, len(changes) - KEPT)
        self.count += skipped
        for change in changes[skipped:]:
            decision = self._decision(node, context, change.kind, change.resource, change.refusal)
            self._append(context, _with_judgement(decision, change, validate_only=validate_only))
        self._tell()

    def refused(self, node: "Node", context: RequestContext, request: Any, refusal: Refusal) -> None:
        """Note that a request was refused as a whole: not allowed, too late, or by a node that is
        not the controller.
        """
        if refusal.code == ErrorCode.NOT_CONTROLLER and context.forwarded:
            return  # it is on its way to another one
        validate_only = getattr(request, "validate_only", False)
        for kind, name in _asked_for(context, request, refusal.code):
            decision = self._decision(node, context, kind, name, refusal)
            self._append(context, msgspec.structs.replace(decision, validate_only=validate_only))
        self._tell()

    def _decision(
        self, node: "Node", context: RequestContext, kind: str, name: str, refusal: Refusal | None
    ) -> Decision:
        self.count += 1
        return Decision(
            number=self.count,
            time=self._clock(),
            node=node.broker_id,
            epoch=node.cache.image.controller_epoch,
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

    def _append(self, context: RequestContext, decision: Decision) -> None:
        self._ring.append(decision)
        if log.isEnabledFor(logging.DEBUG):
            reason = f" ({decision.reason})" if decision.reason else ""
            log.debug(
                "%s of %s %s: %s%s", decision.api, decision.kind, decision.name, decision.outcome, reason,
                extra=about(context),
            )  # fmt: skip

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


def broken(message: str | None) -> str:
    """Say in a line why a policy failed: the end of a traceback says most."""
    last = (message or "").rstrip().rpartition("\n")[2].strip()
    return f"The policy is broken: {last}"


def _with_judgement(decision: Decision, change: Change, *, validate_only: bool) -> Decision:
    """Add to a decision what the policy said, or else the node, without secrets."""
    verdict = None if change.judgement is None else change.judgement.verdict
    if verdict is None and not (decision.reason or validate_only or change.sequence or change.is_late):
        return decision  # there is nothing to add
    reason, policy, noted = decision.reason, "", list[str]()
    if verdict is None and reason:
        reason = redact(reason, secret_values(change.operations))
    if verdict is not None and verdict.decision is not Verdicts.ALLOWED:
        policy = verdict.policy
        if verdict.decision is Verdicts.BROKEN:
            reason = broken(verdict.message)
    if verdict is not None:
        noted = [f"{each.rule}: {each.message}" for each in verdict.findings if each.action is not Action.DENY]
    return msgspec.structs.replace(
        decision,
        reason=reason[:MAX_CHARACTERS],
        policy=policy,
        rule="" if verdict is None else verdict.rule,
        validate_only=validate_only,
        sequence=change.sequence,
        is_late=change.is_late,
        noted=tuple(each[:MAX_CHARACTERS] for each in noted[:MAX_NOTED]),
    )


def _asked_for(context: RequestContext, request: Any, code: ErrorCode) -> list[tuple[str, str]]:
    """Return kind and name of the last elements that a request would have changed; of any other
    request only that it was not allowed.
    """
    rows = ENTITIES.get(context.api_key)
    if rows is None:
        return [("request", "")] if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED else []
    response = error_answer(context.api_key, request, context.api_version, code=code)
    return [_named(row) for row in getattr(response, rows)[-KEPT:]]


def _named(row: Any) -> tuple[str, str]:
    resource_type = getattr(row, "resource_type", None)
    return ("topic", row.name or "") if resource_type is None else kind_and_name(resource_type, row.resource_name)

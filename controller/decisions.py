"""The last decisions of this process, for people who look: who asked for what, what came of it, and why.

Rule: it holds a fixed number of them, however many are made and whoever looks. It is no record: the audit log is.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from .logs import about
from .policy_runner import PolicyRefusal, rule_of

if TYPE_CHECKING:
    from .context import RequestContext
    from .handlers.changes import Change
    from .node import Node

log = logging.getLogger("minicontroller.decision")

KEPT = 200
MAX_CHARACTERS = 500
"""Of a reason: a policy may say a lot."""


class Decision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One element of one request."""

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
    """`topic` or `broker`."""
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
    in_doubt: bool = False
    """Whether it was carried out the controller did not learn."""
    noted: tuple[str, ...] = ()
    """What rules had to note that did not refuse it."""


class Decisions:
    """A ring, newest last."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.count = 0
        """Ever made; the newest has this number."""
        self._ring: deque[Decision] = deque(maxlen=KEPT)
        self._clock = clock
        self._listeners: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def __iter__(self) -> Iterator[Decision]:
        """Oldest first."""
        return iter(self._ring)

    def after(self, number: int) -> list[Decision]:
        """Those with a higher number that are still kept, oldest first."""
        return list(islice(self._ring, max(0, len(self._ring) - (self.count - number)), None))

    def of(self, kind: str, name: str) -> list[Decision]:
        """What was decided about one topic or broker, oldest first."""
        return [each for each in self._ring if each.name == name and each.kind == kind]

    def record(
        self, node: "Node", context: "RequestContext", changes: "Sequence[Change]", *, validate_only: bool
    ) -> None:
        """The outcome of a request is known. Of a large batch only the end is kept, but all of it is counted."""
        for change in changes:
            node.metrics.decisions[context.api_key, change.code] += 1
        talks, skipped = log.isEnabledFor(logging.DEBUG), max(0, len(changes) - KEPT)
        self.count += skipped
        for change in changes[skipped:]:
            self.count += 1
            decision = self._decision(node, context, change, validate_only=validate_only)
            self._ring.append(decision)
            if talks:
                log.debug(
                    "%s of %s %s: %s%s", decision.api, decision.kind, decision.name, decision.outcome,
                    f" ({decision.reason})" if decision.reason else "", extra=about(context),
                )  # fmt: skip
        for listener in self._listeners:
            listener()

    def _decision(self, node: "Node", context: "RequestContext", change: "Change", *, validate_only: bool) -> Decision:
        verdict = change.refusal.verdict if isinstance(change.refusal, PolicyRefusal) else None
        return Decision(
            number=self.count,
            time=self._clock(),
            node=node.broker_id,
            epoch=node.cache.image.controller_epoch,
            api=context.policy_api,
            kind=change.kind,
            name=change.topic[:MAX_CHARACTERS],
            outcome=change.code.name,
            reason=(change.message or "")[:MAX_CHARACTERS],
            policy="" if verdict is None else verdict.policy,
            rule="" if verdict is None else rule_of(verdict),
            principal=context.principal or "",
            client=(context.client_id or "")[:MAX_CHARACTERS],
            host=context.client_host,
            software=context.software[:MAX_CHARACTERS],
            validate_only=validate_only,
            sequence=change.sequence,
        )

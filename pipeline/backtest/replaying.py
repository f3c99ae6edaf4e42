"""The core of a back-test: takes recorded events and returns differences, without Spark or files.

It takes the events of one cluster in the order of (epoch, sequence), from any position whose topics
are known, and asks the candidate what the policy was asked then. What the log does not record is
counted and reported. The same events give the same differences, whole or in slices.

    with candidate.sandboxed() as sandbox:
        backtest = Backtest(sandbox)
        differences = [found for event in events if (found := backtest.feed(event)) is not None]
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from ...audit.event import REDACTED, AuditEvent, Decision, Dropped, Observed, RecordedState, Removal, Requested, encode
from ...audit.replay import DELETE_TOPIC, is_administration
from ...policies.judging import PolicyJudge
from ...policies.verdict import Verdict
from ..ingest.sequence_ranges import Position
from .lines import decision_of, request_of, state_of, step_of
from .recorded import RecordedTimeline
from .sandbox import Sandbox
from .tally import Note, Tally
from .timelines import CandidateQuestion, NotApplicable, Timeline
from .verdicts import (
    ALLOWED,
    BROKEN,
    ComparedVerdicts,
    Difference,
    DifferenceKind,
    Opinion,
    difference_between,
    is_failed,
    opinion,
    recorded,
    rule_behind,
)

NOWHERE: Position = (0, 0)
ASKED_AGAIN = 64
"""One of so many questions is asked twice, and so is each one that makes a difference."""
DAY_MS = 86_400_000
SAME = "same"


class Window(msgspec.Struct, frozen=True):
    """The time whose decisions are put to the candidate, in milliseconds since 1970."""

    since_ms: int | None = None
    until_ms: int | None = None

    def has(self, time_ms: int) -> bool:
        return (self.since_ms is None or time_ms >= self.since_ms) and (
            self.until_ms is None or time_ms < self.until_ms
        )


ALWAYS = Window()


class Settled(NamedTuple):
    """The key by which requests with the same outcome are counted."""

    principal: str
    operation: str
    day: int
    """The day of the request, in days since 1970."""
    policy: str
    policy_hash: str
    is_enforced: bool
    outcome: ComparedVerdicts


class PendingDecision(msgspec.Struct, frozen=True, gc=False):
    """A request whose topic is in the state that its event says, and the question about it."""

    event: Any
    """The decision, with its states as JSON."""
    asked: CandidateQuestion


class Backtest:
    """Replays one slice of a cluster's history and asks the candidate about its requests."""

    def __init__(
        self,
        sandbox: Sandbox,
        timeline: Timeline | None = None,
        *,
        after: Position = NOWHERE,
        window: Window = ALWAYS,
    ) -> None:
        """Start with a timeline in its state `after` an event, or without known topics until the
        first snapshot.
        """
        self._sandbox = sandbox
        self._timeline = timeline or RecordedTimeline()
        self._last = after
        self._window = window
        self._tally = Tally()
        self._cells: Counter[tuple[str, str, int, str]] = Counter()

    def feed(
        self, event: AuditEvent, line: bytes | memoryview | None = None, judge: PolicyJudge | None = None
    ) -> Difference | None:
        """Take the next event, decoded from `line`, and return the difference between its verdict
        and the candidate's, if any. A `judge` by some of the candidate's rules is asked in its
        place where the others certainly do not object.
        """
        if not self._follows(event):
            return None
        difference = self._decided(event, line, judge) if type(event) is Decision else None
        self._apply(event)
        if line is not None and (topic := _topic_of(event)):
            self._timeline.wrote(topic, bytes(step_of(line).after))
        return difference

    def carries(self, line: bytes | memoryview) -> bool:
        """Take the next event without reading its states: one whose topic it changes and no more,
        or a decision which `count` gets, if the topic is what the policy saw. Return False,
        and take nothing, if `feed` has to look at it.
        """
        try:
            step = step_of(line)
        except msgspec.DecodeError:
            return False  # whoever decodes it says what is wrong
        topic = step.name or step.topic
        if not self._is_next(step) or not self._timeline.fits(topic, bytes(step.before)):
            return False
        self._takes(step, topic)
        return True

    def question(self, line: bytes | memoryview) -> PendingDecision | None:
        """Return what the candidate is to be asked about the next event, a request about a topic,
        without reading the topic's states; None if `feed` has to look at it.
        """
        try:
            event = decision_of(line)
        except msgspec.DecodeError:
            return None
        if not self._is_next(event) or not self._timeline.fits(event.name, bytes(event.before)):
            return None
        if event.operation == DELETE_TOPIC and event.asked_created_ms is None:
            # then the policy was given the time in the state
            event = msgspec.structs.replace(event, before=state_of(bytes(event.before)))
        asked = self._timeline.question(event)
        return PendingDecision(event, asked) if isinstance(asked, CandidateQuestion) else None

    def ask(self, question: PendingDecision, judge: PolicyJudge | None = None) -> Verdict:
        """Ask the candidate, or in its place a `judge` by some of its rules."""
        asked = question.asked
        return (self._sandbox.ask if judge is None else judge.judge)(asked.request, asked.cluster)

    def answered(
        self, question: PendingDecision, verdict: Verdict, outcome: ComparedVerdicts, line: bytes | memoryview
    ) -> Difference | None:
        """Take the event of a question to which the candidate has given this verdict, of whose
        outcome `count` gets. Return the difference, if any.
        """
        event, asked = question.event, question.asked
        is_steady = self._is_steady(asked, verdict, event) if self._is_asked_again(event, asked, outcome) else True
        self._takes(event, event.name)
        return None if outcome.kind is None else self._difference(event, outcome, line, is_steady=is_steady)

    def settled(self, outcome: ComparedVerdicts, line: bytes | memoryview) -> Difference:
        """Return the difference of a request that `carries` took."""
        return self._difference(request_of(line), outcome, line)

    def _is_next(self, event: Any) -> bool:
        """Whether an event follows the last one, and its topic is what the policy saw."""
        is_next = event.sequence == self._last[1] + 1 and event.epoch == self._last[0]
        return is_next and not (event.assumed and any(each.topic == event.name for each in event.assumed))

    def _takes(self, event: Any, topic: str) -> None:
        self._timeline.takes(topic, bytes(event.after))
        self._last = event.epoch, event.sequence

    def count(self, settled: Iterable[tuple[Settled, int]], unasked: Iterable[tuple[str, int]]) -> None:
        """Count the requests whose events `carries` and `answered` took, and the decisions that no
        policy was asked about, by their errors.
        """
        for (principal, operation, day, policy, policy_hash, is_enforced, outcome), count in settled:
            self._tally.counts[_in_force(is_enforced), policy, policy_hash] += count
            self._count((principal, operation, day), outcome, count)
        for error, count in unasked:
            self._tally.counts["not-asked", error] += count

    def tally(self) -> Tally:
        whole = Tally()
        whole.add(self._tally)
        whole.side_effects |= self._sandbox.side_effects
        for (principal, operation, day, label), count in self._cells.items():
            if label != DifferenceKind.MOOT:
                whole.counts["asked",] += count
            whole.counts["label", label] += count
            whole.counts["principal", label, principal] += count
            whole.counts["operation", label, operation] += count
            whole.counts["day", label, str(day)] += count
        return whole

    def _follows(self, event: AuditEvent) -> bool:
        """Go on to the position of an event, unless it was there before: the same event twice is
        one.
        """
        position = event.epoch, event.sequence
        if position <= self._last:
            return False
        if event.sequence != (self._last[1] + 1 if event.epoch == self._last[0] else 1):
            self._lose(event)
        self._last = position
        return True

    def _apply(self, event: AuditEvent) -> None:
        for fault in self._timeline.apply(event):
            self._note("dropped" if type(event) is Dropped else "misfit", event, fault)

    # ------------------------------------------------------------------ one decision

    def _decided(
        self, event: Decision, line: bytes | memoryview | None, judge: PolicyJudge | None
    ) -> Difference | None:
        counts = self._tally.counts
        is_within = self._window.has(event.time_ms)
        if (why := self._never_asked(event)) is not None:
            if is_within:
                counts[why] += 1
            return None
        asked = self._timeline.question(event)
        if not is_within:
            if isinstance(asked, CandidateQuestion):
                self._timeline.decided(event, allowed=None)
            return None
        if asked is None or is_failed(event):
            is_unknown = asked is None and event.asked_ms is not None
            counts[("unknown-operation", event.operation) if is_unknown else ("not-asked", event.error)] += 1
            return None
        policy = ("", "") if event.policy is None else (event.policy.policy, event.policy.policy_hash)
        counts[_in_force(event.enforced), *policy] += 1
        if not self._timeline.is_known:
            counts["uncertain",] += 1
        if isinstance(asked, NotApplicable):
            return self._mooted(event, asked, line)
        verdict = (self._sandbox.ask if judge is None else judge.judge)(asked.request, asked.cluster)
        self._timeline.decided(event, allowed=verdict.decision.value == ALLOWED)
        hidden = hidden_in(event)
        for key in hidden:
            counts["hidden", key] += 1
        return self._compared(event, asked, verdict, hidden, line)

    def _never_asked(self, event: Decision) -> tuple[str, str] | None:
        """Return the count of decisions that are not put to the candidate, by what the event is
        about; None if it may be.
        """
        if is_administration(event):
            is_judged = event.policy is not None or event.api in self._sandbox.judged_apis
            return None if is_judged else ("unjudged", event.operation)
        return None if event.resource == "topic" or event.entity is not None else ("other-resource", event.resource)

    def _compared(
        self,
        event: Decision,
        asked: CandidateQuestion,
        verdict: Verdict,
        hidden: tuple[str, ...],
        line: bytes | memoryview | None,
    ) -> Difference | None:
        then, now = recorded(event), opinion(verdict, names=self._sandbox.names)
        outcome = ComparedVerdicts(then, now, difference_between(then, now, timed_out=self._sandbox.timed_out))
        self._count(_cell(event), outcome, 1)
        is_steady = self._is_steady(asked, verdict, event) if self._is_asked_again(event, asked, outcome) else True
        if outcome.kind is None:
            return None
        if hidden:
            self._tally.counts["hidden-differences",] += 1
        asked_about = asked.before, asked.requested
        return self._difference(event, outcome, line, hidden=hidden, is_steady=is_steady, asked_about=asked_about)

    def _mooted(self, event: Decision, moot: NotApplicable, line: bytes | memoryview | None) -> Difference:
        self._tally.counts["moot", moot.why] += 1
        self._cells[(*_cell(event), DifferenceKind.MOOT)] += 1
        outcome = ComparedVerdicts(recorded(event), Opinion("", message=moot.text), DifferenceKind.MOOT)
        return self._difference(event, outcome, line)

    def _difference(
        self,
        event: Any,
        outcome: ComparedVerdicts,
        line: bytes | memoryview | None,
        *,
        hidden: tuple[str, ...] = (),
        is_steady: bool = True,
        asked_about: tuple[RecordedState | None, Requested | None] = (None, None),
    ) -> Difference:
        then, now, kind = outcome
        assert kind is not None
        before, requested = asked_about
        text = encode(event) if line is None else bytes(line)
        return Difference(
            cluster_id=event.cluster_id, epoch=event.epoch, sequence=event.sequence, time_ms=event.time_ms, kind=kind,
            principal=event.principal, operation=event.operation, topic=subject_of(event),
            rule="" if kind is DifferenceKind.MOOT else rule_behind(then, now), recorded=then, candidate=now, hidden=hidden,
            is_certain=self._timeline.is_known, is_steady=is_steady, before=before, requested=requested, event=msgspec.Raw(text.strip()),
        )  # fmt: skip

    def _count(self, cell: tuple[str, str, int], outcome: ComparedVerdicts, count: int) -> None:
        counts = self._tally.counts
        then, now, kind = outcome
        self._cells[(*cell, kind or SAME)] += count
        counts["verdicts", then.decision, now.decision] += count
        for which, described in (("recorded", then), ("candidate", now)):
            for finding in described.findings:
                counts["finding", which, finding.rule, finding.action] += count
                if finding.error is not None:
                    counts["rule-error", which, finding.rule] += count
        if now.decision == BROKEN:
            counts["errors",] += count

    def _is_asked_again(self, event: Any, asked: CandidateQuestion, outcome: ComparedVerdicts) -> bool:
        """Whether code that answered a question is to answer it once more."""
        is_due = outcome.kind is not None or event.sequence % ASKED_AGAIN == 0
        return is_due and self._sandbox.asks(asked.request) and not self._sandbox.timed_out

    def _is_steady(self, asked: CandidateQuestion, verdict: Verdict, event: Decision) -> bool:
        """Ask the candidate once more: if it answers otherwise, it looks at more than
        the question.
        """
        other = self._sandbox.ask(asked.request, asked.cluster)
        self._tally.counts["asked-again",] += 1
        if other == verdict or self._sandbox.timed_out:
            return True
        now, again = (opinion(each, names=self._sandbox.names) for each in (verdict, other))
        if difference_between(now, again) is None:
            return True
        self._note("unsteady", event, f"{event.name}: {described(now)}; called again: {described(again)}")
        return False

    # ------------------------------------------------------------------ the history

    def _lose(self, event: AuditEvent) -> None:
        missing = event.sequence - (self._last[1] if event.epoch == self._last[0] else 0) - 1
        if self._window.has(event.time_ms):
            self._tally.counts["missing",] += missing
        begins = self._last == NOWHERE
        self._note(
            "begins-late" if begins else "gap", event, f"{missing} event{'s' if missing > 1 else ''} before this one"
        )
        self._timeline.lost()

    def _note(self, about: str, event: AuditEvent, text: str) -> None:
        if self._window.has(event.time_ms):  # what is around it is replayed or not, as it comes
            self._tally.note(about, Note(event.cluster_id, event.epoch, event.sequence, text))


def _cell(event: Decision) -> tuple[str, str, int]:
    """Return the principal, operation and day of a request, by which requests are counted."""
    return event.principal or "", event.operation, event.time_ms // DAY_MS


def _in_force(is_enforced: bool) -> str:
    """Return the name of the counts of requests by the policies that were enforced, or were not."""
    return "in-force" if is_enforced else "observed"


def _topic_of(event: AuditEvent) -> str:
    """Return a topic's name, empty for what is about brokers, users and the like."""
    if isinstance(event, Decision):
        return event.name if event.resource == "topic" else ""
    return event.topic if isinstance(event, Removal | Observed) else ""


def subject_of(event: Any) -> str:
    """Name what an event is about, a topic by its name."""
    return event.name if event.resource == "topic" else f"{event.resource} {event.name or '(default)'}"


def hidden_in(event: Decision) -> tuple[str, ...]:
    """Return the configs of a request, named or kept, whose values the log does not show."""
    if is_administration(event):
        return ()  # what is hidden of them is hidden from a policy, too
    operations, requested, before = event.config_operations, event.requested, event.before
    if event.entity is not None:
        shown = (operations or {}, event.entity.requested, event.entity.before)
        return tuple(sorted({key for configs in shown for key, value in configs.items() if value == REDACTED}))
    if not (
        (operations and REDACTED in operations.values())
        or (requested is not None and requested.configs and REDACTED in requested.configs.values())
        or (before is not None and before.configs and REDACTED in before.configs.values())
    ):
        return ()  # nearly always, and therefore without a set
    shown = (operations or {}, {} if requested is None else requested.configs, {} if before is None else before.configs)
    return tuple(sorted({key for configs in shown for key, value in configs.items() if value == REDACTED}))


def described(opinion: Opinion) -> str:
    lines = (opinion.message or "").strip().splitlines()
    return f"{opinion.decision}{f' ({lines[-1].strip()[:200]})' if lines else ''}"

"""Replays two histories: the recorded one and the candidate's, in which the candidate's verdicts
took effect.

A topic that is equal in both takes its next state from the log; one that differs is computed from
the candidate's decisions. A request that is impossible in the candidate's history is not applicable
(moot), and the candidate is not asked about it. docs/pipeline.md lists the cases.
"""

from collections.abc import Iterator, Mapping

import msgspec

from ...audit.event import AuditEvent, Decision, Effect, Observed, RecordedState, Removal, Requested, SnapshotEnd
from ...audit.replay import (
    CREATE_PARTITIONS,
    CREATE_TOPIC,
    DELETE_RECORDS,
    DELETE_TOPIC,
    REASSIGN,
    Replay,
    carried_out,
    judged_request,
    same,
)
from ...policies.requests import kinds_with_omitted
from ...policies.rules.vocabulary import ADMIN
from ...protocol.error_codes import ErrorCode
from ...text import plural
from .tally import Note, Tally
from .timelines import CandidateQuestion, NotApplicable
from .verdicts import ALLOWED, recorded

POLICY_ERRORS = frozenset({ErrorCode.POLICY_VIOLATION, ErrorCode.UNKNOWN_SERVER_ERROR})
"""The error codes of requests that a policy refused, or could not judge."""


class Counterfactual:
    """The timeline in which the candidate's verdicts took effect."""

    def __init__(self, topics: Mapping[str, RecordedState] | None = None) -> None:
        self._recorded = Replay(topics)
        self._other = Replay(topics or {})
        self._allowed: bool | None = None
        """Whether the decision that is applied next is allowed: by the candidate or, outside the
        window, as recorded. None if no policy is asked about it.
        """
        self._prevented: set[str] = set()
        """Topics with a change that the candidate denied, and which the log does not show yet
        whether it took effect.
        """

    @property
    def is_known(self) -> bool:
        return self._recorded.is_known

    @property
    def topics(self) -> Mapping[str, RecordedState]:
        return self._other.topics

    def lost(self) -> None:
        self._recorded.lost()

    def fits(self, topic: str, before: bytes) -> bool:
        """Return False: a recorded state may differ from the counterfactual one."""
        del topic, before
        return False

    def takes(self, topic: str, after: bytes) -> None:
        """Do nothing: it is never called, because `fits` returns False."""

    def wrote(self, topic: str, after: bytes) -> None:
        """Ignore the recorded JSON, which `fits` does not compare."""

    def parted(self) -> Iterator[tuple[str, str]]:
        """Yield the topics that are not as recorded, and how: `missing`, `more` or `otherwise`."""
        for name in sorted({*self._recorded.topics, *self.topics}):
            was, would = self._recorded.topics.get(name), self.topics.get(name)
            if not same(was, would):
                yield name, "missing" if would is None else "more" if was is None else "otherwise"

    def report(self, tally: Tally, cluster_id: str) -> None:
        """Count, at the end, the topics that are not as recorded."""
        for name, how in self.parted():
            tally.counts["parted", how] += 1
            tally.note(f"parted-{how}", Note(cluster_id, 0, 0, name))

    # ------------------------------------------------------------------ asking

    def question(self, event: Decision) -> CandidateQuestion | NotApplicable | None:
        self._other.begin(event)
        self._allowed = None
        before, was = self._before(event)
        parted = not same(before, was)
        if parted and event.asked_ms is None and event.operation not in ADMIN:
            why = f"{event.name} would be different, and the log does not have the requested change."
            return NotApplicable("unknown-request", why)
        if parted and (moot := _not_applicable(event, before)) is not None:
            return moot
        wanted = _requested(event, before) if parted else event.requested
        request = judged_request(event if wanted is event.requested else _rewritten(event, before, wanted))
        if request is None:
            return None
        assumed = tuple(each for each in event.assumed if not self._is_parted(each.topic))
        cluster = self._other.cluster(msgspec.structs.replace(event, assumed=assumed) if event.assumed else event)
        is_changed = parted and event.operation not in ADMIN  # which change no topic's state
        return (
            CandidateQuestion(request, cluster, before, wanted) if is_changed else CandidateQuestion(request, cluster)
        )

    def decided(self, event: Decision, *, allowed: bool | None) -> None:
        self._allowed = _was_made(event) if allowed is None else allowed
        if allowed is False and event.effect is Effect.UNKNOWN and event.resource == "topic":
            self._prevented.add(event.name)

    def _before(self, event: Decision) -> tuple[RecordedState | None, RecordedState | None]:
        """Return the topic of a decision before it, as it would be and as it was; None if it is
        about something else. Where not all topics are known, only the event describes it.
        """
        if event.resource != "topic":
            return None, None
        if not self._recorded.is_known:
            self._other.becomes(event.name, event.before)
            return event.before, event.before
        return self.topics.get(event.name), self._recorded.topics.get(event.name)

    def _is_parted(self, name: str) -> bool:
        return not same(self.topics.get(name), self._recorded.topics.get(name))

    # ------------------------------------------------------------------ going on

    def apply(self, event: AuditEvent) -> Iterator[str]:
        match event:
            case Decision():
                if event.resource == "topic":
                    self._decide(event)
            case Removal():
                topic = self.topics.get(event.topic)
                if not self._is_parted(event.topic) or (topic and topic.marked_for_deletion):
                    self._other.becomes(event.topic, None)
            case Observed():
                if not (event.reassignment and self._is_parted(event.topic)):
                    self._observe(event.topic, self._recorded.topics.get(event.topic), event.after)
            case SnapshotEnd():
                yield from self._end_snapshot(event)
                return
        yield from self._recorded.apply(event)

    def _decide(self, event: Decision) -> None:
        """Apply a decision as it would have been, once the candidate was asked, unless it need not
        be or the request is moot.
        """
        allowed, self._allowed = self._allowed, None
        before, was = self._before(event)
        if allowed is None or event.operation in {*ADMIN, DELETE_RECORDS}:  # these leave a topic as it is
            if same(before, was):
                self._other.becomes(event.name, event.after)
            return
        was_made = _was_made(event)
        is_made = allowed and (was_made or _was_refused(event))
        parted = not same(before, was)
        is_as_recorded = is_made == was_made and not parted
        if is_as_recorded:
            self._other.becomes(event.name, event.after)
        if not is_made:
            return
        state = carried_out(event, before, _requested(event, before) if parted else event.requested)
        if event.validate_only:
            if state is not None:
                self._other.suppose(event.name, state)
        elif event.operation == DELETE_TOPIC and not was_made:
            self._other.becomes(event.name, None)  # no removal follows, which the log would have
        elif not is_as_recorded:
            self._other.becomes(event.name, state)

    def _observe(self, name: str, was: RecordedState | None, after: RecordedState | None) -> None:
        """Apply a change by others, whatever the policy says; what does not exist here, nobody can
        change.
        """
        before = self.topics.get(name)
        if name in self._prevented:
            self._prevented.remove(name)
        elif same(before, was) or (was is not None and before is not None):
            self._other.becomes(name, after)

    def _end_snapshot(self, event: SnapshotEnd) -> Iterator[str]:
        """Compare a complete snapshot with what is known: what differs was changed by others."""
        before = self._recorded.topics
        yield from self._recorded.apply(event)
        after = self._recorded.topics
        for name in sorted({*before, *after}):
            if before.get(name) != after.get(name):
                self._observe(name, before.get(name), after.get(name))
        self._prevented.clear()


def _was_made(event: Decision) -> bool:
    """Whether a request took place, or would have if it had not only been validated."""
    return event.error_code == 0 and event.effect is not Effect.UNKNOWN


def _was_refused(event: Decision) -> bool:
    """Whether it was the policy's verdict that kept a request from taking place. If Kafka's own
    checks refuse the request first, it is not.
    """
    return recorded(event).decision != ALLOWED and event.error_code in POLICY_ERRORS


def _not_applicable(event: Decision, before: RecordedState | None) -> NotApplicable | None:
    """Say why a request that was possible would not be possible here; None if it would."""
    if event.operation == CREATE_TOPIC:
        there = f"{event.name} would exist already: it would not have been deleted."
        return None if before is None else NotApplicable("topic-exists", there)
    if before is None or before.marked_for_deletion:
        return NotApplicable("no-topic", f"There would be no topic {event.name}.")
    wanted, has = event.requested, len(before.replicas)
    if event.operation == CREATE_PARTITIONS and wanted is not None and has >= len(wanted.replicas):
        return NotApplicable("partitions", f"{event.name} would have {has} partitions already.")
    if any(partition >= has for partition in {*(event.reassignments or ()), *(event.delete_records_offsets or ())}):
        return NotApplicable("no-partition", f"{event.name} would have only {plural(has, 'partition')}.")
    return None


def _requested(event: Decision, before: RecordedState | None) -> Requested | None:
    """Return what the request would lead to from the topic's state here."""
    wanted = event.requested
    if wanted is None or before is None or event.operation == CREATE_TOPIC:
        return wanted
    replicas, configs = before.replicas, before.configs
    if event.operation == REASSIGN:  # where one is cancelled, they stay as they are here: another topic was moved then
        moved = {partition: row for partition, row in (event.reassignments or {}).items() if row is not None}
        replicas = tuple((dict(enumerate(replicas)) | moved).values())
    elif event.operation == CREATE_PARTITIONS:
        replicas += wanted.replicas[len(replicas) :]
    elif event.operation == "incremental_alter_configs":
        named = event.config_operations or {}
        kept = {key: value for key, value in configs.items() if key not in named}
        configs = kept | {key: wanted.configs[key] for key in named if key in wanted.configs}
    else:
        configs = wanted.configs
    return msgspec.structs.replace(wanted, replicas=replicas, configs=configs)


def _rewritten(event: Decision, before: RecordedState | None, wanted: Requested | None) -> Decision:
    """Rewrite a decision for the topic's state here: AlterConfigs then leaves out other configs."""
    kinds = event.config_operation_kinds
    if kinds is not None and event.operation == "alter_configs" and before is not None and wanted is not None:
        named = {key: kinds[key] for key in event.config_operations or {}}
        kinds = kinds_with_omitted(named, before.configs, wanted.configs)
    return msgspec.structs.replace(event, requested=wanted, config_operation_kinds=kinds)

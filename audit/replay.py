"""The topics at any point of an audit log, and what a policy was asked there, for `audit verify`
and for back-tests.

Rule: events are applied in the order of (epoch, sequence). After all events before a decision were
applied, `question` returns exactly what the policy was asked about the decision. A contradiction is
reported when its event is applied. What the log lacks is never guessed.
"""

from collections.abc import Collection, Iterator, Mapping

import msgspec

from ..policies.configs.newer_keys import DEAD_LETTERS
from ..policies.interface import (
    AdminRequest,
    EntityRequest,
    JudgedRequest,
    PolicyRequest,
)
from ..policies.requests import RequestBuilder, operands_with_omitted
from ..policies.rules.vocabulary import ADMIN, OPERATION_OF_KIND
from ..policies.states import requested_state
from .event import (
    AuditEvent,
    Decision,
    Dropped,
    Effect,
    NamedState,
    Observed,
    RecordedState,
    Removal,
    Requested,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
)
from .replayed_topics import ReplayedCluster, ReplayedTopics, SeenStates, ValidatedElements

CREATE_TOPICS = "CreateTopics"
"""The API by which clients create topics. A creation by any other API is automatic."""
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The topic id of topics that no request of the log has created."""
CREATE_TOPIC, DELETE_TOPIC, DELETE_RECORDS = "create_topic", "delete_topic", "delete_records"
REASSIGN = "alter_partition_reassignments"
CREATE_PARTITIONS = "create_partitions"
ALTERATIONS = frozenset({"alter_configs", "incremental_alter_configs", CREATE_PARTITIONS, REASSIGN})


class Replay:
    """The topics of one cluster after all events that were applied."""

    def __init__(self, topics: Mapping[str, RecordedState] | None = None) -> None:
        """Begin with all topics as they are before the first event; without `topics` they are not
        known until a snapshot.
        """
        self._known = self._seen = ReplayedTopics.of(topics or {})
        self._states = SeenStates()
        self.is_known = topics is not None
        """Whether all topics are known. Before the first snapshot, and after a loss until the next
        one, topics may be missing or in another state.
        """
        self._snapshot: dict[str, RecordedState] | None = None
        self._expects_equal = False
        self._doubtful: set[str] = set()
        """Topics with a change whose effect is unknown, which the next snapshot may show."""
        self._request: tuple[int, int] = (-1, -1)
        self._elements = ValidatedElements()
        self._validated: dict[str, RecordedState] = {}
        """Topics as the validated elements of the current request would have made them; `_seen` has
        them so.
        """

    @property
    def topics(self) -> Mapping[str, RecordedState]:
        """The topics as they are now, unchanged by the further replay."""
        return self._known.states

    @property
    def validated(self) -> Collection[str]:
        """The topics that the next element of the current request sees as earlier elements of it,
        which were only validated, would have made them.
        """
        return self._validated.keys()

    def apply(self, event: AuditEvent) -> Iterator[str]:
        """Apply the next event, and yield a sentence for each contradiction to the
        events before.
        """
        match event:
            case Decision():
                yield from self._decided(event)
            case Removal():
                yield from self._was(event.topic, event.before)
                self.becomes(event.topic, None)
            case Observed():
                yield from self._was(event.topic, event.before)
                self.becomes(event.topic, event.after)
            case SnapshotBegin():
                self._snapshot = {}
                self._expects_equal = self.is_known and event.reason != "recovered"
            case SnapshotTopics():
                if self._snapshot is None:
                    yield "topics of a snapshot that did not begin"
                else:
                    self._snapshot.update((each.topic, each.state) for each in event.topics if each.state is not None)
            case SnapshotEnd():
                yield from self._end_snapshot(event)
            case Dropped():
                yield f"events {event.first_sequence} to {event.last_sequence} were dropped: {event.reason}"

    def lost(self) -> None:
        """Note that events are missing: the next snapshot is not compared with the known topics."""
        self.is_known = False

    def _decided(self, event: Decision) -> Iterator[str]:
        self.begin(event)
        if event.resource != "topic":
            return
        yield from self._was(event.name, event.before)
        if event.effect is Effect.UNKNOWN:
            self._doubtful.add(event.name)
        self.becomes(event.name, event.after)
        if event.validate_only and event.error_code == 0:
            supposed = carried_out(event, event.before, event.requested)
            if supposed is not None:
                self.suppose(event.name, supposed)

    def suppose(self, topic: str, state: RecordedState) -> None:
        """Show a topic to the later elements of the current request as a validated one would have
        made it.
        """
        self._validated[topic] = state
        self._seen = self._seen.changed(topic, state)

    def begin(self, event: Decision) -> None:
        """Go on with the request of a decision, if the last one was of another."""
        validated = self._elements.of(event)
        if (event.epoch, event.request) != self._request:
            self._request = event.epoch, event.request
            self._validated, self._seen = validated, self._known
            for name, state in validated.items():
                self._seen = self._seen.changed(name, state)

    def _was(self, topic: str, before: RecordedState | None) -> Iterator[str]:
        if self.is_known and not same(self.topics.get(topic), before):
            yield f"the state of topic {topic} before this event is not the one that the events before it give"

    def becomes(self, topic: str, after: RecordedState | None) -> None:
        """Take a change of a topic, of which the caller knows that it contradicts nothing."""
        if self.topics.get(topic) == after:
            return
        self._known = self._known.changed(topic, after)
        if not self._validated:
            self._seen = self._known
        elif topic not in self._validated:
            self._seen = self._seen.changed(topic, after)

    def _end_snapshot(self, event: SnapshotEnd) -> Iterator[str]:
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is None:
            yield "the end of a snapshot that did not begin"
            return
        if len(snapshot) != event.topics:
            yield f"the snapshot has {len(snapshot)} topics and says that it has {event.topics}"
        if self._expects_equal:
            # A clean-up that was under way when a controller was replaced has no event.
            different = sorted(
                name
                for name in {*snapshot, *self.topics} - self._doubtful
                if not same(snapshot.get(name), known := self.topics.get(name))
                and not (known is not None and known.marked_for_deletion and name not in snapshot)
            )
            if different:
                shown = ", ".join(different[:5]) + (f" and {len(different) - 5} more" if len(different) > 5 else "")
                yield f"the snapshot is not what the events before it give, in {len(different)} topics: {shown}"
        self._known = self._seen = ReplayedTopics.of(snapshot)
        for name, state in self._validated.items():
            self._seen = self._seen.changed(name, state)
        self.is_known = True
        self._doubtful.clear()

    # ------------------------------------------------------------------ what policies see

    def question(self, event: Decision) -> tuple[JudgedRequest, ReplayedCluster] | None:
        """Return the request and the cluster that the policy was asked about, or would have been,
        for a decision that was not applied yet; None if no policy judges such requests, or none
        that is known here.

        The returned cluster does not change while the replay goes on. If the topics are not known,
        the decision's own topic is in the state that the decision has in `before`.
        """
        asked = judged_request(event)
        return None if asked is None else (asked, self.cluster(event))

    def cluster(self, event: Decision) -> ReplayedCluster:
        """Return the cluster that the policy is asked about, or would be, for such a decision."""
        self.begin(event)
        seen = self._seen
        if (
            event.resource == "topic"
            and not self.is_known
            and seen.states.get(event.name) is self.topics.get(event.name)
        ):
            seen = seen.changed(event.name, event.before)
        for each in event.assumed:
            seen = seen.changed(each.topic, each.state)
        self._states.forget_beyond(len(seen.states))
        return ReplayedCluster(seen, event.cluster_size, self._states)


def carried_out(event: Decision, before: RecordedState | None, wanted: Requested | None) -> RecordedState | None:
    """Return the topic that the request of a decision makes of the one before it, if it leads to
    what is wanted; None if it makes none.
    """
    if event.operation == DELETE_TOPIC:
        return before and msgspec.structs.replace(before, marked_for_deletion=True)  # its removal follows
    if wanted is None:
        return None
    return RecordedState(
        topic_id=NO_ID if before is None else before.topic_id,
        replicas=wanted.replicas,
        configs=wanted.configs,
        marked_for_deletion=wanted.marked_for_deletion,
        internal=wanted.internal,
        created_ms=event.asked_ms if before is None else before.created_ms,
    )


def same(one: RecordedState | None, other: RecordedState | None) -> bool:
    """Whether two states are equal, apart from the time of creation, for which the creator's clock
    and ZooKeeper's may differ.
    """
    if one is None or other is None:
        return one is other
    return (
        one.topic_id == other.topic_id
        and one.replicas == other.replicas
        and one.configs == other.configs
        and one.marked_for_deletion == other.marked_for_deletion
    )


def entity_request(event: Decision) -> EntityRequest:
    """Return the request to change a broker's configs or loggers, as the policy was given it. The
    event must have an `entity`.
    """
    entity = event.entity
    assert entity is not None
    operands, kinds = operands_of(event) or {}, event.config_operation_kinds
    asked = _asked_by(event)
    if event.resource == "logger":
        return asked.alter_loggers(
            event.name, entity.before, entity.requested, config_operations=operands, config_operation_kinds=kinds
        )
    return asked.alter_broker_configs(
        event.name,
        entity.before,
        entity.requested,
        config_operations=operands,
        config_operation_kinds=kinds,
        default_configs_before=entity.default_configs_before,
        default_configs=entity.default_configs,
    )


def _asked_by(event: Decision, time_ms: int | None = None) -> RequestBuilder:
    """Return the builder of the request that a decision is about. `time_ms` stands for the time of
    the request if the event does not have it.
    """
    return RequestBuilder(
        principal=event.principal,
        client_id=event.client_id,
        client_host=event.client_host,
        api=event.api,
        validate_only=event.validate_only,
        time_ms=time_ms if event.asked_ms is None else event.asked_ms,
        state_may_be_old=event.upstream_cluster_id is not None,
    )


def admin_request(event: Decision) -> AdminRequest | None:
    """Return the request of an operation without a state, as the policy was given it; None if it
    was refused before it was judged. A policy that judges no such requests is not asked, and then
    the time of the decision stands for that of the request.
    """
    if event.policy is None and event.error_code:
        return None
    if event.resource == "group_config" and (event.config_operations or {}).get(DEAD_LETTERS):
        return None  # it was judged as the creation of a topic, too, which the event does not record
    return _asked_by(event, event.time_ms).admin(
        event.resource,
        event.name,
        config_operations=event.config_operations or {},
        config_operation_kinds=event.config_operation_kinds,
        election_type=event.election_type,
    )


def is_administration(event: Decision) -> bool:
    """Whether a decision is about something whose state policies do not see."""
    return event.operation in ADMIN or event.resource in OPERATION_OF_KIND


def judged_request(event: Decision) -> JudgedRequest | None:
    """Return the request that a decision is about, as the policy was given it; None if no policy
    was asked, or if this program does not know the operation.
    """
    if is_administration(event):
        return admin_request(event)
    if event.asked_ms is None:
        return None
    if event.resource == "topic":
        return policy_request(event)
    return None if event.entity is None else entity_request(event)


def policy_request(event: Decision) -> PolicyRequest | None:
    """Return the request to change a topic, as the policy was given it; None if the event is not
    one of an operation that changes topics and is known here.
    """
    asked = _asked_by(event)
    if event.operation == DELETE_TOPIC:
        created_ms = event.asked_created_ms
        if created_ms is None and event.before is not None:
            created_ms = event.before.created_ms
        return asked.delete_topic(event.name, created_ms=created_ms)
    if event.operation == DELETE_RECORDS:
        return asked.delete_records(event.name, event.delete_records_offsets or {})
    if event.requested is None or event.operation not in {CREATE_TOPIC, *ALTERATIONS}:
        return None
    wanted = requested_state(
        event.requested.replicas,
        event.requested.configs,
        generated_replica_assignments=event.requested.generated_replica_assignments,
        marked_for_deletion=event.requested.marked_for_deletion,
        internal=event.requested.internal,
        default_configs=event.requested.default_configs,
    )
    if event.operation == CREATE_TOPIC:
        return asked.create_topic(event.name, wanted, automatic=event.api != CREATE_TOPICS)
    return asked.alter_topic(
        event.name,
        wanted,
        config_operations=operands_of(event),
        config_operation_kinds=event.config_operation_kinds,
        reassignments=event.reassignments,
    )


def operands_of(event: Decision) -> Mapping[str, str | None] | None:
    """Return the operands of the keys that a request named, and None for those that it deleted by
    leaving them out; None if the request changes no configs.
    """
    named = event.config_operations
    kinds = event.config_operation_kinds
    return named if named is None or kinds is None else operands_with_omitted(named, kinds)


def named(topics: Mapping[str, RecordedState]) -> tuple[NamedState, ...]:
    return tuple(NamedState(topic=name, state=topics[name]) for name in sorted(topics))

"""Histories told in words: who asked for what, and what the policy of then said. The events are as
a controller would have written them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from minicontroller.audit.event import (
    AuditEvent,
    Decision,
    Dropped,
    Effect,
    EntityChange,
    NamedState,
    Observed,
    PolicyDecision,
    RecordedState,
    Removal,
    Requested,
    RuleFinding,
    SnapshotBegin,
    SnapshotEnd,
    SnapshotTopics,
)
from minicontroller.policies.rules.vocabulary import OPERATION_OF_API
from tests.audit.logs import a_creation, a_state

CLUSTER = "told-in-words-00000000"
BEGAN_MS = 1_767_225_600_000
"""2026-01-01; an event each second."""
ALLOWED = PolicyDecision(
    decision="allowed", policy="then", policy_hash="00", rule="", findings=(), message=None, microseconds=1
)


FAILED: dict[str, Any] = {"enforced": False, "error": "INVALID_CONFIG", "error_code": 40}
"""A gateway only observed, and the cluster itself refused the request."""


def denied(message: str, rule: str = "") -> PolicyDecision:
    findings = (RuleFinding(rule=rule, action="deny", message=message),) if rule else ()
    return msgspec.structs.replace(ALLOWED, decision="violated", rule=rule, message=message, findings=findings)


def broken(message: str) -> PolicyDecision:
    return msgspec.structs.replace(ALLOWED, decision="broken", message=message)


class History:
    """`events` are what was said so far, `topics` what there is after it."""

    def __init__(self, cluster_id: str = CLUSTER, *, snapshot: bool = True, began_ms: int = BEGAN_MS) -> None:
        self.events: list[AuditEvent] = []
        self.topics: dict[str, RecordedState] = {}
        self.cluster_id = cluster_id
        self._epoch, self._sequence, self._requests, self._began_ms = 1, 0, 0, began_ms
        if snapshot:
            self.snapshot()

    # ------------------------------------------------------------------ what is asked for

    def create(
        self, name: str, partitions: int = 1, *, configs: Mapping[str, str] | None = None, **said: Any
    ) -> "History":
        wanted = a_state(partitions, topic_id=f"{self._requests:022}", configs=dict(configs or {}))
        return self._decide(name, "create_topic", wanted, requested=_requested(wanted), **said)

    def delete(self, name: str, **said: Any) -> "History":
        marked = msgspec.structs.replace(self.topics[name], marked_for_deletion=True)
        return self._decide(name, "delete_topic", marked, **said)

    def remove(self, name: str) -> "History":
        """The clean-up of a deletion is complete."""
        return self._add(Removal, topic=name, before=self.topics.pop(name))

    def grow(self, name: str, partitions: int, **said: Any) -> "History":
        grown = msgspec.structs.replace(self.topics[name], replicas=((1,),) * partitions)
        return self._decide(name, "create_partitions", grown, requested=_requested(grown), **said)

    def alter(self, name: str, configs: Mapping[str, str], **said: Any) -> "History":
        """These are all configs from now on."""
        altered = msgspec.structs.replace(self.topics[name], configs=dict(configs))
        return self._decide(
            name, "alter_configs", altered, requested=_requested(altered), config_operations=dict(configs), **said
        )

    def adjust(self, name: str, operations: Mapping[str, str | None], **said: Any) -> "History":
        """These are set, or deleted; all others stay."""
        configs: dict[str, Any] = {**self.topics[name].configs, **operations}
        kept = {key: value for key, value in configs.items() if value is not None}
        adjusted = msgspec.structs.replace(self.topics[name], configs=kept)
        more = {"requested": _requested(adjusted), "config_operations": dict(operations)}
        return self._decide(name, "incremental_alter_configs", adjusted, **more, **said)

    def reassign(self, name: str, rows: Mapping[int, tuple[int, ...]], **said: Any) -> "History":
        """These partitions are to move: until `settle` they have the old and the new replicas."""
        before = self.topics[name].replicas
        wanted = msgspec.structs.replace(self.topics[name], replicas=_with_rows(before, rows))
        both = {number: (*row, *(old for old in before[number] if old not in row)) for number, row in rows.items()}
        moving = msgspec.structs.replace(wanted, replicas=_with_rows(before, both))
        more = {"requested": _requested(wanted), "reassignments": dict(rows)}
        return self._decide(name, "alter_partition_reassignments", moving, **more, **said)

    def settle(self, name: str, rows: Mapping[int, tuple[int, ...]]) -> "History":
        """The reassignment of these partitions ends."""
        before = self.topics[name]
        after = msgspec.structs.replace(before, replicas=_with_rows(before.replicas, rows))
        self._become(name, after)
        return self._add(Observed, topic=name, before=before, after=after, reassignment=True)

    def delete_records(self, name: str, offsets: Mapping[int, int], **said: Any) -> "History":
        return self._decide(name, "delete_records", self.topics[name], delete_records_offsets=dict(offsets), **said)

    def decide_entity(
        self, resource: str, name: str, entity: EntityChange, operands: Mapping[str, str | None], **said: Any
    ) -> "History":
        """A change of what is no topic; what it names without a value it deletes."""
        kinds = {key: "delete" if operand is None else "set" for key, operand in operands.items()}
        more = {"config_operations": dict(operands), "config_operation_kinds": kinds, "entity": entity}
        none = {"resource": resource, "before": None, "after": None}
        return self._decide(name, "incremental_alter_configs", self.topics.get(name), **none, **more, **said)

    def administer(
        self, operation: str, resource: str, name: str, operands: Mapping[str, str | None], **said: Any
    ) -> "History":
        """A change of ACLs, users, quotas, tokens or groups, or an election of leaders."""
        [api] = [api for api, of in OPERATION_OF_API.items() if of == operation]
        kinds = {key: "delete" if operand is None else "set" for key, operand in operands.items()}
        values = {
            "api": api,
            "resource": resource,
            "config_operations": dict(operands),
            "config_operation_kinds": kinds,
            **({} if resource == "topic" else {"before": None, "after": None}),
            **({"asked_ms": None} if said.get("policy", ALLOWED) is None else {}),
        }
        return self._decide(name, operation, self.topics.get(name), **values, **said)

    def refuse(self, name: str, error: str, **said: Any) -> "History":
        """Before the policy had its turn."""
        topic = self.topics.get(name)
        values = {
            "asked_ms": None,
            "error": error,
            "error_code": 1,
            "effect": Effect.NONE,
            "after": topic,
            "policy": None,
        }
        return self._decide(name, said.pop("operation", "create_topic"), topic, **values, **said)

    # ------------------------------------------------------------------ what happens

    def observe(self, name: str, after: RecordedState | None) -> "History":
        before = self.topics.get(name)
        self._become(name, after)
        return self._add(Observed, topic=name, before=before, after=after)

    def elect(self) -> "History":
        """Another controller, which reads everything."""
        self._epoch, self._sequence, self._requests = self._epoch + 1, 0, 0
        return self.snapshot()

    def snapshot(self, reason: str = "elected") -> "History":
        self._add(SnapshotBegin, reason=reason, cluster_size=3, topics=len(self.topics))
        if self.topics:
            named = tuple(NamedState(topic=name, state=state) for name, state in sorted(self.topics.items()))
            self._add(SnapshotTopics, topics=named)
        return self._add(SnapshotEnd, topics=len(self.topics))

    def drop(self, events: int) -> "History":
        first = self._sequence + 1
        self._sequence += events
        return self._add(Dropped, first_sequence=first, last_sequence=first + events - 1, reason="the disk was full")

    def lose(self, events: int = 1) -> "History":
        """The last ones never came to a file."""
        del self.events[-events:]
        return self

    def become(self, name: str, state: RecordedState | None) -> "History":
        """And the log does not tell."""
        self._become(name, state)
        return self

    def _decide(self, name: str, operation: str, wanted: RecordedState | None, **said: Any) -> "History":
        before, policy = self.topics.get(name), said.get("policy", ALLOWED)
        is_refused = policy is not None and policy.decision != "allowed" and said.get("enforced", True)
        error = "POLICY_VIOLATION" if is_refused else "NONE"
        values: dict[str, Any] = {
            "request": self._requests,
            "operation": operation,
            "cluster_size": 3,
            "before": before,
            "policy": policy,
            "error": error,
            "error_code": 0 if error == "NONE" else 44,
            "asked_ms": BEGAN_MS + 1000 * self._sequence,
            **said,
        }
        carried_out = values["error_code"] == 0 and not values.get("validate_only", False)
        values.setdefault("effect", Effect.APPLIED if carried_out else Effect.NONE)
        if values["effect"] is Effect.APPLIED:
            self._become(name, wanted)
        values.setdefault("after", self.topics.get(name))
        self._requests += values.get("element", 0) + 1 >= values.get("elements", 1)
        stamp = self._stamp()
        event = a_creation(stamp.pop("sequence"), name, stamp.pop("epoch"), **stamp, **values)
        self.events.append(event)
        return self

    def _add(self, kind: Any, **values: Any) -> "History":
        self.events.append(kind(**self._stamp(), **values))
        return self

    def _stamp(self) -> dict[str, Any]:
        self._sequence += 1
        return {
            "schema_version": 1,
            "cluster_id": self.cluster_id,
            "epoch": self._epoch,
            "sequence": self._sequence,
            "time_ms": self._began_ms + 1000 * len(self.events),
            "decided_node": 1,
        }

    def _become(self, name: str, state: RecordedState | None) -> None:
        if state is None:
            self.topics.pop(name, None)
        else:
            self.topics[name] = state


def _with_rows(
    replicas: tuple[tuple[int, ...], ...], rows: Mapping[int, tuple[int, ...]]
) -> tuple[tuple[int, ...], ...]:
    return tuple(rows.get(number, row) for number, row in enumerate(replicas))


def _requested(state: RecordedState) -> Requested:
    return Requested(
        replicas=state.replicas, configs=state.configs, marked_for_deletion=False, internal=state.internal,
        generated_replica_assignments=True,
    )  # fmt: skip


def decisions(events: Sequence[AuditEvent]) -> list[Decision]:
    return [event for event in events if isinstance(event, Decision)]

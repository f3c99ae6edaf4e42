"""The model of each entity: a state, and what an operation with a given answer makes of it.

Rule: pure. `step` returns the state after the operation, or None where the operation cannot have
had that answer there. An operation that was refused because of the state is a look at the state;
any other refusal says nothing, and is not asked about here.
"""

from collections.abc import Mapping

import msgspec

from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.detector.history import (
    ACLS,
    ALTER,
    CONFIGS,
    CREATE,
    DELETE,
    DESCRIBE,
    ELECT,
    GROW,
    OK,
    PERMIT,
    READS,
    REASSIGN,
    REFUSED,
    REPLACE,
    REVOKE,
    UNKNOWN,
    Operation,
    Step,
    Topic,
)

LEFT = {"flush.ms": "77"}
"""The configs that other programs leave for topics that are not there."""
ABSENT, ALIVE, DYING = "absent", "alive", "dying"

Items = frozenset[tuple[str, str]]


class State(msgspec.Struct, frozen=True):
    """The state of a topic; of a broker's configs and of ACLs only those count.

    A dying topic may be gone already: its end is nobody's operation.
    """

    phase: str = ABSENT
    topic_id: str = ""
    partitions: int = 0
    configs: Items = frozenset()
    replicas: tuple[int, ...] = ()
    """The replicas of partition 0, or those that it moves to; empty while only the controller
    knows.
    """


GONE = State()
TELLING = {
    CREATE: {ErrorCode.TOPIC_ALREADY_EXISTS},
    DELETE: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    GROW: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PARTITIONS, ErrorCode.INVALID_TOPIC_EXCEPTION},
    ALTER: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    REPLACE: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    REASSIGN: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    ELECT: {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    },
    PERMIT: set(),
    REVOKE: set(),
    ACLS: set(),
    DESCRIBE: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    CONFIGS: {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
}
"""Refusals that tell of the state."""

SET, REMOVE, APPEND, SUBTRACT = range(4)
LISTS_BY_DEFAULT = {"log.cleanup.policy": "delete"}
"""Upon what APPEND and SUBTRACT work where nothing is set."""


def initial(topic: Topic | None) -> State:
    if topic is None:
        return GONE
    return State(ALIVE, topic.topic_id, topic.partitions, frozenset(topic.configs.items()), topic.replicas)


def tells(operation: Operation) -> bool:
    """Whether the operation says anything of the state."""
    if operation.outcome == REFUSED:
        return operation.code in TELLING[operation.kind]
    if operation.outcome == UNKNOWN:
        return operation.kind not in READS and not operation.only_validated
    return True


def changes_nothing(operation: Operation) -> bool:
    found_nothing = operation.kind == REVOKE and operation.outcome == OK and not operation.configs
    return operation.outcome == REFUSED or operation.only_validated or operation.kind in READS or found_nothing


def step(state: State, operation: Operation) -> State | None:
    if operation.outcome == REFUSED:
        return state if _is_reason(state, operation) else None
    after = _done(state, operation)
    return state if operation.only_validated and after is not None else after


def _is_reason(state: State, operation: Operation) -> bool:
    match operation.code:
        case ErrorCode.TOPIC_ALREADY_EXISTS:
            return state.phase != ABSENT
        case ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return state.phase != ALIVE
        case ErrorCode.INVALID_TOPIC_EXCEPTION:
            return state.phase == DYING
        case ErrorCode.ELECTION_NOT_NEEDED | ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE:
            return state.phase == ALIVE
        case _:
            return state.phase == ALIVE and operation.partitions <= state.partitions


def _done(state: State, operation: Operation) -> State | None:
    alive, seen = state.phase == ALIVE, frozenset(operation.configs.items())  # or asked for
    match operation.kind:
        case "create":
            return None if alive else State(ALIVE, operation.topic_id, operation.partitions, seen)
        case "delete":
            return None if state.phase == ABSENT else State(DYING, configs=state.configs)
        case "grow" if alive and operation.partitions > state.partitions:
            return msgspec.structs.replace(state, partitions=operation.partitions)
        case "alter" if alive:
            return msgspec.structs.replace(state, configs=altered(state.configs, operation.steps))
        case "replace" if alive:
            return msgspec.structs.replace(state, configs=seen)
        case "reassign" if alive:
            return msgspec.structs.replace(state, replicas=operation.replicas)
        case "elect" if alive:
            return state  # who leads is checked by epochs (leaders.py), because leaders change by themselves
        case "permit":
            return msgspec.structs.replace(state, configs=altered(state.configs, operation.steps))
        case "revoke":
            return _revoked(state, operation)
        case "acls" if state.configs == seen:
            return state
        case "describe" if alive and _same(state, operation):
            return state
        case "configs" if alive and state.configs == seen:
            return state
        case "configs" if state.phase == DYING and not seen:
            return state
        case "configs" if (
            state.phase == DYING and operation.node and (operation.configs == LEFT or seen == state.configs)
        ):
            return state  # a node that does not know yet that the topic is gone reads what lies there
        case "alter" if operation.node == 0 and state.phase == DYING:  # somebody wrote what was already on its way out
            return msgspec.structs.replace(state, configs=altered(state.configs, operation.steps))
        case "replace" if operation.node == 0 and state.phase == DYING:
            return msgspec.structs.replace(state, configs=seen)
        case "alter" | "replace" if operation.node == 0:
            return state
    return None


def _revoked(state: State, operation: Operation) -> State | None:
    """Return the state after a removal, if what is answered to have been removed was there, and
    nothing else that was asked for.
    """
    named = {key for key, _, _ in operation.steps}
    removed = frozenset(item for item in state.configs if not named or item[0] in named)
    if operation.outcome != UNKNOWN and removed != frozenset(operation.configs.items()):
        return None
    return msgspec.structs.replace(state, configs=state.configs - removed)


def _same(state: State, operation: Operation) -> bool:
    """Nobody knows the id of a topic whose creator got no answer. Nodes do not show a partition
    that nobody has led yet, as while the only broker that has it is gone.
    """
    ids = {state.topic_id, operation.topic_id} - {""}
    may_be_less = operation.node != 0 and not operation.is_fresh
    as_many = operation.partitions == state.partitions or (may_be_less and operation.partitions < state.partitions)
    moved = operation.replicas and state.replicas and operation.replicas != state.replicas
    return len(ids) < 2 and as_many and not moved


def altered(before: Items, steps: list[Step]) -> Items:
    """IncrementalAlterConfigs, as Kafka means it."""
    configs = dict(before)
    for key, verb, value in steps:
        if verb == SET:
            configs[key] = value or ""
        elif verb == REMOVE:
            configs.pop(key, None)
        else:
            configs[key] = _edited(configs, key, verb, value or "")
    return frozenset(configs.items())


def _edited(configs: Mapping[str, str], key: str, verb: int, value: str) -> str:
    present = [each for each in configs.get(key, LISTS_BY_DEFAULT.get(key, "")).split(",") if each]
    named = [each for each in value.split(",") if each]
    if verb == APPEND:
        return ",".join(present + [each for each in named if each not in present])
    return ",".join(each for each in present if each not in named)


def shown(state: State) -> str:
    """For people."""
    if state.phase != ALIVE:
        return "no topic" if state.phase == ABSENT else "a topic that is being deleted"
    topic = f"{state.partitions} partitions, " if state.partitions else ""
    topic += f"on {state.replicas}, " if state.replicas else ""
    return f"{topic}{dict(sorted(state.configs))}{f', id {state.topic_id[:8]}' if state.topic_id else ''}"

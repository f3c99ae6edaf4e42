"""The anomalies of a window: each by its name, with the operations that show it."""

from collections.abc import Sequence

import msgspec

from minicontroller.controller.active.conflicts import MAX_CONFLICTS
from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.detector.history import (
    ACLS,
    ALTER,
    CONFIGS,
    DESCRIBE,
    OK,
    READS,
    REFUSED,
    REPLACE,
    STRANGER,
    Operation,
    Window,
    by_entity,
    told,
)
from tests.faults.detector.leaders import contradictions
from tests.faults.detector.linearizability import Contradiction, Undecided, changes_until, check
from tests.faults.detector.models import changes_nothing, initial, shown

LOST, DONE, STALE, ORDER, LEADERS, ODD, WORLD, TRACEBACK = (
    "acknowledged and lost",
    "refused and done",
    "stale read",
    "no order explains it",
    "epochs of a leader contradict each other",
    "answer out of place",
    "the cluster is not as it says",
    "traceback",
)
EXPECTED = {
    "create": {ErrorCode.TOPIC_ALREADY_EXISTS},
    "delete": {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    "grow": {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PARTITIONS,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.REASSIGNMENT_IN_PROGRESS,
    },
    "alter": {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    "replace": {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    # The second: a broker is not registered now.
    "reassign": {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REPLICA_ASSIGNMENT},
    "elect": {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    },
    "permit": set(),
    "revoke": set(),
    "acls": set(),
    "describe": {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE},
    "configs": {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
}
ALWAYS_EXPECTED = {
    ErrorCode.NONE,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.INVALID_REPLICATION_FACTOR,
}
"""The last: while few nodes are registered there may be none to place a replica on."""
GIVEN_UP = {
    ("topics", ErrorCode.INVALID_UPDATE_VERSION),
    ("brokers", ErrorCode.UNKNOWN_SERVER_ERROR),
}
"""The answers to changes of configs that met too many conflicts with another program."""
SUSPECTS = 80
"""Operations before a contradiction of which each is tried as its cause."""
SHOWN = 12


class Anomaly(msgspec.Struct, frozen=True):
    name: str
    text: str


class Verdict(msgspec.Struct):
    """The verdict on one window."""

    anomalies: list[Anomaly] = []
    undecided: list[str] = []
    """Entities whose history allows too much to be followed."""


def judge(window: Window) -> Verdict:
    verdict = Verdict(
        anomalies=[Anomaly(TRACEBACK if "stumbled" in finding else WORLD, finding) for finding in window.findings]
    )
    verdict.anomalies += _odd_answers(window)
    verdict.anomalies += [Anomaly(LEADERS, text) for text in contradictions(window)]
    for entity, operations in by_entity(window):
        whole = [*operations, *_last_look(window, entity)]
        before = initial(window.before.get(entity))
        try:
            contradiction = check(before, whole)
            if contradiction is not None:
                verdict.anomalies.append(_named(window, whole, contradiction))
        except Undecided:
            verdict.undecided.append(entity)
    return verdict


def _odd_answers(window: Window) -> list[Anomaly]:
    """Return an unexpected answer of each kind."""
    odd: dict[tuple[str, int], list[Operation]] = {}
    for each in window.operations:
        expected = each.code in ALWAYS_EXPECTED | EXPECTED[each.kind] or _is_rightly_given_up(window, each)
        if each.ended is not None and not expected:
            odd.setdefault((each.kind, each.code), []).append(each)
    return [
        Anomaly(
            ODD,
            f"{len(found)} times {kind} was answered {code}, first:\n{told(found[0], window.began)}: {found[0].message}",
        )
        for (kind, code), found in sorted(odd.items())
    ]


def _is_rightly_given_up(window: Window, change: Operation) -> bool:
    """Return whether another program wrote to the same entity so often while the change was under
    way that each of its attempts met another conflict. What the first one met may be older.
    """
    group, _, _name = change.entity.partition("/")
    if change.kind not in (ALTER, REPLACE) or (group, change.code) not in GIVEN_UP or change.ended is None:
        return False
    writes = [
        each
        for each in window.operations
        if each.client == STRANGER
        and each.entity == change.entity
        and each.began <= change.ended
        and (each.ended is None or each.ended >= change.began)
    ]
    return len(writes) >= MAX_CONFLICTS


def _last_look(window: Window, entity: str) -> list[Operation]:
    """Return what the tree says in the end, as operations that are part of the history."""
    topic = window.after.get(entity)

    def look(number: int, kind: str) -> Operation:
        absent = topic is None
        return Operation(
            number=-number,
            client="the end",
            entity=entity,
            kind=kind,
            began=window.ended,
            ended=window.ended + number / 1000,
            outcome=REFUSED if absent else OK,
            code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if absent else 0,
            partitions=0 if topic is None else topic.partitions,
            topic_id="" if topic is None else topic.topic_id,
            configs={} if topic is None else topic.configs,
            replicas=() if topic is None else topic.replicas,
        )

    if entity.startswith("acls/"):
        return [look(1, ACLS)]
    return [look(1, DESCRIBE), look(2, CONFIGS)]


# ---------------------------------------------------------------------- what it is called


def _named(window: Window, operations: Sequence[Operation], found: Contradiction) -> Anomaly:
    culprit = found.operation
    name, cause = (STALE, None) if _was_so(window, operations, found) else _cause(window, operations, culprit)
    lines = [f"{culprit.entity}: {_sentence(name, culprit, cause)}"]
    possible = "; ".join(sorted(shown(state) for state in found.possible)[:3])
    lines.append(f"By what was answered before it could be: {possible}.")
    lines.append(f"Then: {told(culprit, window.began)}")
    if cause is not None:
        lines.append(f"The cause may be: {told(cause, window.began)}")
    near = [each for each in operations if each.began <= (culprit.ended or culprit.began) and each is not culprit]
    writes = [each for each in near if each.outcome != REFUSED and not changes_nothing(each)]
    lines += ["Changes before it:", *(f"  {told(each, window.began)}" for each in writes[-SHOWN:])]
    return Anomaly(name, "\n".join(lines))


def _sentence(name: str, culprit: Operation, cause: Operation | None) -> str:
    if name == STALE:
        return "a node showed what was no longer so when it was asked."
    where = "what the tree holds in the end" if culprit.number < 0 else "an answer"
    if name == LOST and cause is not None:
        return f"{where} can only be if an acknowledged operation was not done."
    if name == DONE and cause is not None:
        return f"{where} can only be if a refused operation was done."
    return f"{where} fits no order of the operations."


def _was_so(window: Window, operations: Sequence[Operation], found: Contradiction) -> bool:
    """Whether a node that may be behind the others could have said so."""
    read = found.operation
    if not (found.is_read and (read.is_fresh or read.is_fresh_of_node)):
        return False
    late = msgspec.structs.replace(read, is_fresh=False, is_fresh_of_node=False)
    others = changes_until(read.ended or read.began, operations)
    try:
        return check(initial(window.before.get(read.entity)), [*others, late]) is None
    except Undecided:
        return True


def _cause(window: Window, operations: Sequence[Operation], culprit: Operation) -> tuple[str, Operation | None]:
    """Whether the history makes sense with one answer changed: a success that was none, or a
    refusal that was.
    """
    until = culprit.ended or culprit.began
    near = [each for each in operations if each.began <= until]
    before = initial(window.before.get(culprit.entity))
    for name, outcome in ((LOST, OK), (DONE, REFUSED)):
        suspects = [each for each in near if each.outcome == outcome and each.number >= 0 and each is not culprit]
        for suspect in reversed([each for each in suspects if each.kind not in READS][-SUSPECTS:]):
            others = [each for each in near if each is not suspect]
            if name == DONE:
                others.append(msgspec.structs.replace(suspect, outcome=OK, after=None))
            try:
                if check(before, others) is None:
                    return name, suspect
            except Undecided:
                continue
    return ORDER, None

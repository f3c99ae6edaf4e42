"""The checker of histories: it tells possible from impossible, on histories that are known and on
small ones of any kind.
"""

import itertools
import random
from collections.abc import Sequence

import pytest

from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.detector.history import (
    ALTER,
    CONFIGS,
    CREATE,
    DELETE,
    DESCRIBE,
    GROW,
    OK,
    REASSIGN,
    REFUSED,
    REPLACE,
    STRANGER,
    UNKNOWN,
    Operation,
    Topic,
)
from tests.faults.detector.linearizability import Undecided, check
from tests.faults.detector.models import GONE, State, initial, step

UNKNOWN_TOPIC, EXISTS, INVALID = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.TOPIC_ALREADY_EXISTS,
    ErrorCode.INVALID_PARTITIONS,
)
THREE = Topic("", 3, {"a": "1"})
numbers = itertools.count(1)


def op(kind: str, began: float, ended: float | None, outcome: str = OK, **more: object) -> Operation:
    fields = {"number": next(numbers), "client": "c", "node": 1, "entity": "topics/x", "kind": kind}
    return Operation(**{**fields, "began": began, "ended": ended, "outcome": outcome, **more})  # type: ignore[arg-type]


def setting(began: float, ended: float | None, value: str, outcome: str = OK, **more: object) -> Operation:
    return op(ALTER, began, ended, outcome, steps=[("k", 0, value)], **more)


def seen(began: float, ended: float, node: int = 0, **configs: str) -> Operation:
    return op(CONFIGS, began, ended, node=node, configs=configs, is_fresh=True)


def is_possible(before: Topic | None, *operations: Operation) -> bool:
    return check(initial(before), operations) is None


def test_where_a_partition_is() -> None:
    """A partition is in the end where the last reassignment moved it that was acknowledged, or one
    in doubt.
    """
    moves = [op(REASSIGN, 1, 2, replicas=(1, 2)), op(REASSIGN, 3, 4, replicas=(3,))]
    doubt = op(REASSIGN, 5, None, UNKNOWN, replicas=(2,))
    for replicas, others, right in (((3,), [], True), ((1, 2), [], False), ((2,), [], False), ((2,), [doubt], True)):
        end = op(DESCRIBE, 6, 7, node=0, partitions=3, replicas=replicas)
        assert is_possible(THREE, *moves, *others, end) is right


def test_what_follows_its_order_is_possible() -> None:
    """Operations one after the other are possible, each with the answer that the state before it
    gives.
    """
    assert is_possible(
        None,
        op(DELETE, 0, 1, REFUSED, code=UNKNOWN_TOPIC),
        op(CREATE, 2, 3, partitions=2),
        op(CREATE, 4, 5, REFUSED, code=EXISTS),
        op(GROW, 6, 7, partitions=5),
        op(GROW, 8, 9, REFUSED, partitions=5, code=INVALID),
        op(ALTER, 10, 11, steps=[("k", 2, "x")]),
        op(ALTER, 12, 13, steps=[("k", 2, "y,x"), ("z", 0, "1")]),
        seen(14, 15, k="x,y", z="1"),
        op(REPLACE, 16, 17, configs={"q": "2"}),
        seen(18, 19, q="2"),
        op(DELETE, 20, 21),
        op(CREATE, 22, 23, REFUSED, code=EXISTS),  # its end takes a while
        op(CREATE, 24, 25, partitions=1),
        op(DESCRIBE, 26, 27, partitions=1),
    )


def test_concurrent_operations_may_have_any_order() -> None:
    """Either of two operations that overlap may be the later one."""
    for last in ("1", "2"):
        assert is_possible(THREE, op(REPLACE, 0, 9), setting(10, 20, "1"), setting(11, 19, "2"), seen(21, 22, k=last))


def test_a_lost_write_is_impossible() -> None:
    """What was acknowledged first cannot be what remains, and what was acknowledged must be
    somewhere.
    """
    assert not is_possible(THREE, op(REPLACE, 0, 1), setting(2, 3, "1"), setting(4, 5, "2"), seen(6, 7, k="1"))
    assert not is_possible(
        None, op(CREATE, 0, 1, partitions=1), op(DESCRIBE, 2, 3, REFUSED, node=0, code=UNKNOWN_TOPIC)
    )
    assert not is_possible(THREE, op(DELETE, 0, 1), seen(2, 3, a="1"))


def test_doubt_may_come_true_at_any_time_or_never() -> None:
    """An unknown outcome explains the value later, much later, and not at all; and explains nothing
    before it was asked.
    """
    doubt = setting(2, None, "2", UNKNOWN)
    first = (op(REPLACE, 0, 1), setting(1.1, 1.2, "1"))
    assert is_possible(THREE, *first, doubt, seen(50, 51, k="1"), seen(52, 53, k="2"))
    assert not is_possible(THREE, *first, doubt, seen(50, 51, k="2"), seen(52, 53, k="1"))
    assert not is_possible(THREE, *first, seen(1.3, 1.4, k="2"), doubt)


def test_a_refused_write_must_not_show() -> None:
    """A refusal for another reason than the state says nothing, and changes nothing."""
    refused = setting(2, 3, "2", REFUSED, code=ErrorCode.NOT_CONTROLLER)
    assert is_possible(THREE, refused, seen(4, 5, a="1"))
    assert not is_possible(THREE, refused, seen(4, 5, a="1", k="2"))


def test_what_only_validates_changes_nothing() -> None:
    """A dry run changes nothing, and its success tells of the state all the same."""
    assert not is_possible(
        THREE, op(GROW, 0, 1, partitions=5, only_validated=True), op(DESCRIBE, 2, 3, node=0, partitions=5)
    )
    assert not is_possible(THREE, op(CREATE, 0, 1, partitions=5, only_validated=True))


def test_a_connection_has_an_order() -> None:
    """The second of two operations that were sent together takes effect after the first."""
    first, second = setting(0, 5, "1"), setting(0, 6, "2")
    assert is_possible(THREE, op(REPLACE, -2, -1), first, second, seen(7, 8, k="1"))
    second.after = first.number
    assert not is_possible(THREE, op(REPLACE, -2, -1), first, second, seen(7, 8, k="1"))


def test_a_read_sees_what_was_asked_before_it() -> None:
    """On one connection, and done: the read is behind it, though it was sent before that was
    answered.
    """
    change, other = setting(0, 5, "1"), setting(1, 2, "2", node=2)
    for configs, is_right in (({"k": "1"}, True), ({"k": "2"}, True), ({}, False)):
        read = op(CONFIGS, 0, 6, configs={"a": "1", **configs}, after=change.number)
        assert is_possible(THREE, change, other, read) is is_right, configs
    doubtful = setting(7, None, "3", UNKNOWN)
    assert is_possible(THREE, doubtful, op(CONFIGS, 7, 8, configs={"a": "1"}, after=doubtful.number))


def test_a_read_behind_a_change_needs_no_answer_that_came_later() -> None:
    """What was under way when the read was answered ends as something explains that comes behind
    the read.
    """
    change, slow = setting(2, 3, "1"), op(DELETE, 1, 9, REFUSED, code=UNKNOWN_TOPIC)
    read = op(CONFIGS, 2, 4, configs={"a": "1", "k": "1"}, after=change.number)
    assert is_possible(THREE, slow, change, read, op(DELETE, 5, 6))
    assert not is_possible(THREE, slow, change, read)


def test_a_read_behind_a_change_may_miss_a_partition_without_a_leader() -> None:
    """Nodes show the partitions that were led: fewer than the topic has, whatever else the node
    must know.
    """
    change = setting(0, 1, "1")
    for partitions, is_right in ((3, True), (2, True), (4, False)):
        read = op(DESCRIBE, 0, 2, partitions=partitions, after=change.number)
        assert is_possible(THREE, change, read) is is_right, partitions


def test_a_read_behind_a_change_may_miss_what_was_written_to_the_tree() -> None:
    """A node is notified of what no node wrote, and may answer before that, also behind a change of
    the topic's partitions that was done since.
    """
    elsewhere, change = setting(0, 1, "1"), op(GROW, 2, 3, partitions=4)
    read = op(CONFIGS, 2, 4, configs={"a": "1"}, after=change.number)
    assert not is_possible(THREE, elsewhere, change, read)
    elsewhere.client = STRANGER
    assert is_possible(THREE, elsewhere, change, read)


def test_nodes_may_be_behind_unless_they_must_not() -> None:
    """A read that need not be fresh may show any earlier state, and none that never was."""
    change = setting(0, 1, "1")
    old, fresh = op(CONFIGS, 2, 3, configs={"a": "1"}), op(CONFIGS, 2, 3, configs={"a": "1"}, is_fresh=True)
    assert is_possible(THREE, change, old)
    assert not is_possible(THREE, change, fresh)
    assert not is_possible(THREE, change, op(CONFIGS, 2, 3, configs={"a": "7"}))


def test_a_node_shows_what_it_has_answered() -> None:
    """A node shows what it has acknowledged, and may not know what was acknowledged elsewhere, also
    meanwhile.
    """

    def shown(began: float, node: int, **configs: str) -> Operation:
        return op(CONFIGS, began, began + 1, node=node, configs=configs, is_fresh_of_node=True)

    first, second = setting(0, 5, "1", node=1), setting(2, 3, "2", node=2)
    for read in (shown(6, 1, a="1", k="1"), shown(6, 1, a="1", k="2"), shown(6, 3, a="1"), shown(4, 1, a="1")):
        assert is_possible(THREE, first, second, read), read
    assert not is_possible(THREE, first, second, shown(6, 1, a="1"))
    assert not is_possible(THREE, first, second, shown(6, 2, a="1"))
    later = setting(6, 7, "3", node=2)
    assert is_possible(THREE, first, second, later, shown(8, 1, a="1", k="1"))
    assert not is_possible(THREE, first, second, later, shown(8, 2, a="1", k="1"))


def test_many_doubts_are_followed() -> None:
    """Thirty operations of which nobody knows the outcome are no reason to give up."""
    doubts = [setting(at, None, str(at), UNKNOWN) for at in range(30)]
    assert is_possible(THREE, op(REPLACE, -2, -1), *doubts, seen(40, 41, k="17"), seen(42, 43, k="3"))
    assert not is_possible(THREE, op(REPLACE, -2, -1), *doubts, seen(40, 41, k="17"), seen(42, 43, k="99"))


def orders(before: State, operations: Sequence[Operation]) -> bool:
    """The definition itself, by trying every order."""
    for chosen in itertools.product((True, False), repeat=len(operations)):
        if not all(take or each.outcome == UNKNOWN for take, each in zip(chosen, operations, strict=True)):
            continue
        kept = [each for take, each in zip(chosen, operations, strict=True) if take]
        for order in itertools.permutations(kept):
            if all(not precedes(later, earlier) for earlier, later in itertools.combinations(order, 2)):
                state: State | None = before
                for each in order:
                    state = None if state is None else step(state, each)
                if state is not None:
                    return True
    return False


def precedes(one: Operation, other: Operation) -> bool:
    return one.outcome != UNKNOWN and one.ended is not None and one.ended < other.began


@pytest.mark.parametrize("seed", range(8))
def test_small_histories_are_judged_as_by_definition(seed: int) -> None:
    """For any five operations the search finds an order exactly where there is one."""
    dice = random.Random(seed)
    answers = {True: 0, False: 0}
    for _ in range(60):
        before = dice.choice((GONE, initial(THREE)))
        operations = [any_operation(dice) for _ in range(5)]
        try:
            possible = check(before, operations) is None
        except Undecided:
            pytest.fail("five operations are not many")
        assert possible == orders(before, operations), operations
        answers[possible] += 1
    assert min(answers.values()) > 0, answers


def any_operation(dice: random.Random) -> Operation:
    began = dice.uniform(0, 10)
    ended = began + dice.uniform(0, 6)
    outcome = dice.choice((OK, OK, OK, UNKNOWN))
    kind = dice.choice((CREATE, DELETE, GROW, ALTER, CONFIGS))
    if kind == CONFIGS:
        return op(CONFIGS, began, ended, node=0, configs=dice.choice(({}, {"k": "1"}, {"k": "2"})))
    if dice.random() < 0.2 and kind in (CREATE, DELETE):
        return op(kind, began, ended, REFUSED, code=EXISTS if kind == CREATE else UNKNOWN_TOPIC)
    steps = [("k", dice.randrange(4), dice.choice(("1", "2")))]
    return op(kind, began, ended, outcome, partitions=dice.randint(1, 5), steps=steps if kind == ALTER else [])


def test_an_older_acknowledgement_does_not_tell_of_what_a_look_has_shown() -> None:
    """A topic is created, and a refusal shows that it is being deleted already: that its creation
    is acknowledged then ends nothing of it, and that its deletion is, does.
    """
    made, deleted = op(CREATE, 1, 5, partitions=3), op(DELETE, 2, 10)
    looks = [op(GROW, 1.5, 3, REFUSED, partitions=3, code=INVALID), op(REASSIGN, 3.5, 4, REFUSED, code=UNKNOWN_TOPIC)]
    assert is_possible(None, made, deleted, *looks, op(DESCRIBE, 6, 7, partitions=3, node=3, is_fresh=True))
    assert not is_possible(None, made, deleted, *looks, op(DESCRIBE, 11, 12, partitions=3, node=3, is_fresh=True))


def test_what_a_look_has_shown_need_not_be_known_everywhere() -> None:
    """A refusal or a dry run shows that a change has taken effect that nobody was told of yet:
    nodes may be behind until it is acknowledged.
    """
    made = op(CREATE, 0, 9, partitions=2)
    look = op(CREATE, 1, 2, REFUSED, code=EXISTS)
    unaware = op(DESCRIBE, 3, 4, REFUSED, code=UNKNOWN_TOPIC, is_fresh=True)
    assert is_possible(None, made, look, unaware)
    too_late = op(DESCRIBE, 10, 11, REFUSED, code=UNKNOWN_TOPIC, is_fresh=True)
    assert not is_possible(None, made, look, too_late)

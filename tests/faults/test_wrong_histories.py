"""Histories that nobody may accept, written by hand: each is told by what is wrong with it."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from minicontroller.controller.active.conflicts import MAX_CONFLICTS
from minicontroller.protocol.error_codes import ErrorCode
from tests.faults.detector.checks import DONE, LEADERS, LOST, ODD, ORDER, STALE, judge
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
    REFUSED,
    REVOKE,
    STRANGER,
    UNKNOWN,
    Operation,
    Topic,
    Window,
    load,
    save,
)
from tests.faults.detector.models import APPEND, SET

ORDERS, GUARDED, END = "topics/orders", "acls/orders", 100.0
ANN, BOB = {"User:ann": "allow"}, {"User:bob": "allow"}


def op(kind: str, began: float, ended: float | None = None, outcome: str = OK, **more: Any) -> Operation:
    """Return an operation that takes a second, unless it is said otherwise."""
    entity = GUARDED if kind in (PERMIT, REVOKE, ACLS) else ORDERS
    if outcome != UNKNOWN and ended is None:
        ended = began + 1
    fields = {"number": 0, "client": "client-1", "node": 1, "entity": entity, "kind": kind, "outcome": outcome}
    return Operation(**{**fields, "began": began, "ended": ended, **more})


def history(*operations: Operation, before: Topic | None = None, after: Topic | None = None) -> Window:
    """About the topic, or about its ACLs; one that was not there has no entry."""
    numbers = itertools.count(1)
    for operation in operations:
        operation.number = next(numbers)
    entity = operations[0].entity
    states = [{} if topic is None else {entity: topic} for topic in (before, after)]
    return Window(ended=END, before=states[0], after=states[1], operations=list(operations))


def topic(partitions: int = 1, **more: Any) -> Topic:
    return Topic(topic_id="a", partitions=partitions, **more)


def setting(began: float, value: str, **more: Any) -> Operation:
    return op(ALTER, began, steps=[("k", SET, value)], **more)


def appending(began: float, value: str, **more: Any) -> Operation:
    return op(ALTER, began, steps=[("list", APPEND, value)], **more)


def seeing(began: float, leader: int, epoch: int, **more: Any) -> Operation:
    return op(DESCRIBE, began, partitions=1, topic_id="a", leader=leader, leader_epoch=epoch, **more)


def given_up(writes: int) -> Window:
    """Another program writes to the cluster's default so often while it is being changed."""
    own, default = setting(10, "1", ended=20, outcome=REFUSED, code=ErrorCode.UNKNOWN_SERVER_ERROR), "brokers/<default>"
    before = setting(1, "0", client=STRANGER, node=0)
    others = [setting(10 + at / 2, str(at), ended=10.2 + at / 2, client=STRANGER, node=0) for at in range(writes)]
    for each in (before, own, *others):
        each.entity = default
    return history(before, own, *others, before=Topic(), after=Topic(configs={"k": str(writes - 1)}))


WRONG = {
    "a creation that was acknowledged is not there": (LOST, history(op(CREATE, 1, partitions=1, topic_id="a"))),
    "a deletion that was acknowledged was not done": (
        LOST,
        history(op(DELETE, 1), before=topic(), after=topic()),
    ),
    "a doubt was taken for a failure": (
        DONE,
        history(
            setting(1, "1", outcome=REFUSED, code=ErrorCode.NOT_CONTROLLER),
            before=topic(),
            after=topic(configs={"k": "1"}),
        ),
    ),
    "the earlier of two changes remained": (
        LOST,
        history(setting(1, "1"), setting(3, "2"), before=topic(), after=topic(configs={"k": "1"})),
    ),
    "one of two that append at once is gone": (
        LOST,
        history(appending(1, "x"), appending(1.5, "y"), before=topic(), after=topic(configs={"list": "y"})),
    ),
    "two have created the same topic": (
        LOST,
        history(op(CREATE, 1, partitions=1, topic_id="a"), op(CREATE, 3, partitions=1, topic_id="b"), after=topic()),
    ),
    "a topic shrank": (
        ORDER,
        history(op(GROW, 1, partitions=5), op(DESCRIBE, 3, partitions=5), before=topic(), after=topic(2)),
    ),
    "a node does not know what was acknowledged everywhere": (
        STALE,
        history(
            setting(1, "1"),
            op(CONFIGS, 3, is_fresh=True),
            before=topic(),
            after=topic(configs={"k": "1"}),
        ),
    ),
    "a doubt has an effect before it was asked": (
        ORDER,
        history(
            op(CONFIGS, 1, configs={"k": "1"}),
            setting(3, "1", outcome=UNKNOWN),
            before=topic(),
            after=topic(configs={"k": "1"}),
        ),
    ),
    "a request in doubt was carried out twice": (
        ORDER,
        history(
            setting(1, "1", outcome=UNKNOWN),
            op(CONFIGS, 3, node=0, configs={"k": "1"}),
            setting(5, "2"),
            op(CONFIGS, 7, node=0, configs={"k": "2"}),
            before=topic(),
            after=topic(configs={"k": "1"}),
        ),
    ),
    "an ACL was removed twice": (
        LOST,
        history(
            op(REVOKE, 1, configs=ANN),
            op(REVOKE, 1.5, configs=ANN),
            before=Topic(configs=ANN),
            after=Topic(),
        ),
    ),
    "an ACL is in force that was removed": (
        LOST,
        history(op(REVOKE, 1, configs=BOB), before=Topic(configs=BOB), after=Topic(configs=BOB)),
    ),
    "one epoch has two leaders": (
        LEADERS,
        history(seeing(1, leader=1, epoch=3), seeing(3, leader=2, epoch=3), before=topic(), after=topic()),
    ),
    "an epoch fell": (
        LEADERS,
        history(
            seeing(1, leader=1, epoch=3),
            before=topic(),
            after=topic(leader=2, leader_epoch=2),
        ),
    ),
    "an election raised no epoch": (
        LEADERS,
        history(
            seeing(1, leader=1, epoch=3),
            op(ELECT, 3),
            before=topic(),
            after=topic(leader=1, leader_epoch=3),
        ),
    ),
    "an answer that nobody expects": (
        ODD,
        history(op(CREATE, 1, outcome=REFUSED, code=ErrorCode.UNKNOWN_SERVER_ERROR)),
    ),
    "a change was given up although another program left it room": (ODD, given_up(MAX_CONFLICTS - 1)),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_history_is_told_by_its_name(what: str, tmp_path: Path) -> None:
    """By the verdict of the history in memory, and of the same from a file."""
    name, window = WRONG[what]
    save(window, tmp_path / "history")
    for verdict in (judge(window), judge(load(tmp_path / "history"))):
        assert [anomaly.name for anomaly in verdict.anomalies] == [name], verdict.anomalies


def test_the_same_deeds_may_be_right() -> None:
    """Each in its order, with the answers that it must have."""
    right = [
        history(op(PERMIT, 1, steps=[("User:ann", SET, "allow")]), op(REVOKE, 3, configs=ANN), after=Topic()),
        history(op(REVOKE, 1, configs=ANN), op(REVOKE, 1.5), op(ACLS, 4), before=Topic(configs=ANN), after=Topic()),
        history(
            op(REVOKE, 1, None, UNKNOWN), op(ACLS, 4, configs=ANN), before=Topic(configs=ANN), after=Topic(configs={})
        ),
        history(  # a removal that found nothing is a look: the one before it is not acknowledged yet
            op(REVOKE, 1, 9, configs=ANN),
            op(REVOKE, 2),
            op(ACLS, 4, configs=ANN, is_fresh=True),
            before=Topic(configs=ANN),
            after=Topic(),
        ),
        history(
            seeing(1, leader=1, epoch=3),
            op(ELECT, 3),
            seeing(5, leader=2, epoch=4),
            before=topic(),
            after=topic(leader=2, leader_epoch=4),
        ),
        history(appending(1, "x"), appending(1.5, "y"), before=topic(), after=topic(configs={"list": "y,x"})),
    ]
    for window in right:
        assert judge(window).anomalies == []


def test_a_change_is_rightly_given_up() -> None:
    """Another program wrote to the same znode during each attempt."""
    assert judge(given_up(MAX_CONFLICTS)).anomalies == []

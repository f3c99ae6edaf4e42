"""AlterPartitionReassignments and ListPartitionReassignments: what is refused, what has arrived
when it is asked for, and what is listed when nothing moves.

A reassignment takes its time, so what it leaves behind is looked at until it is there.
"""

from collections.abc import Sequence

from tests.conformance.case import Body, Case, creation, new_topic

API, LIST = "AlterPartitionReassignments", "ListPartitionReassignments"
UNKNOWN = "reassignments-unknown"


def named(topic: str, *partitions: int) -> Body:
    return {"name": topic, "partition_indexes": list(partitions)}


def moved(topic: str, *rows: tuple[int, Sequence[int] | None]) -> Body:
    return {"name": topic, "partitions": [{"partition_index": index, "replicas": to} for index, to in rows]}


def move(name: str, *topics: Body, timeout_ms: int = 30_000) -> Case:
    return Case(name, API, 0, {"timeout_ms": timeout_ms, "topics": list(topics)})


def one(name: str, to: Sequence[int] | None, index: int = 0, topic: str = "reassignments-t") -> Case:
    return move(name, moved(topic, (index, to)))


def look(name: str, *topics: str) -> Case:
    body = {"topics": [{"name": topic} for topic in topics], "allow_auto_topic_creation": False}
    return Case(name, "Metadata", 12, body, settles=True)


CASES = [
    Case("setup reassignments", "CreateTopics", 7, creation(
        new_topic("reassignments-t", placed={0: [1, 2], 1: [2, 3]}),
        new_topic("reassignments-grow", placed={0: [1]}),
        new_topic("reassignments-shrink", placed={0: [1, 2, 3]}),
        new_topic("reassignments-order", placed={0: [1, 2, 3]}),
        new_topic("reassignments-move", placed={0: [1, 2], 1: [2, 3]}),
        new_topic("reassignments-swap", placed={0: [1]}),
        new_topic("reassignments-twice", placed={0: [1, 2]}),
    )),
    Case("all topics", LIST, 0, {"topics": None}),
    Case("no topics", LIST, 0, {"topics": []}),
    Case("known topic", LIST, 0, {"topics": [named("reassignments-t", 0, 1)]}),
    Case("unknown topic", LIST, 0, {"topics": [named(UNKNOWN, 0)]}),
    Case("partitions out of range", LIST, 0, {"topics": [named("reassignments-t", 2, -1)]}),
    Case("no partitions", LIST, 0, {"topics": [named("reassignments-t")]}),
    Case("topic and partition twice", LIST, 0, {"topics": [named("reassignments-t", 0, 0), named("reassignments-t", 0)]}),
    Case("names that no topic can have", LIST, 0, {"topics": [named("bad name!", 0), named("", 0)]}),
    *[Case(f"timeout {timeout_ms}", LIST, 0, {"timeout_ms": timeout_ms, "topics": None}) for timeout_ms in (1, 0, -1)],
    move("nothing to move"),
    move("topic without partitions", moved("reassignments-t")),
    one("no replicas", []),
    one("replica twice", [1, 1]),
    one("replica twice of three", [3, 1, 3]),
    one("negative replica", [1, -1]),
    one("negative replica twice", [-1, -1]),
    one("broker that is not there", [1, 99]),
    one("brokers that are not there", [98, 99]),
    one("broker that is not there of an unknown topic", [99], topic=UNKNOWN),
    one("live broker of an unknown topic", [1], topic=UNKNOWN),
    one("partition out of range", [1], 2),
    one("negative partition", [1], -1),
    one("nothing to cancel", None),
    one("nothing to cancel of an unknown topic", None, topic=UNKNOWN),
    one("nothing to cancel of a partition out of range", None, 2),
    one("name that no topic can have", [1], topic="bad name!"),
    one("empty name", [1], topic=""),
    move("good and bad", moved("reassignments-t", (0, [1, 2]), (1, []), (2, [1])), moved(UNKNOWN, (0, [1]))),
    look("what has stayed", "reassignments-t"),
    move("partition twice", moved("reassignments-twice", (0, []), (0, [2, 1]))),
    move("topic twice", moved("reassignments-twice", (0, [1, 2])), moved("reassignments-twice", (0, None))),
    look("what the last row left", "reassignments-twice"),
    one("fewer replicas", [3, 1], topic="reassignments-shrink"),
    look("what is left of three", "reassignments-shrink"),
    one("another order", [3, 2, 1], topic="reassignments-order"),
    look("the other order", "reassignments-order"),
    one("more replicas", [1, 2], topic="reassignments-grow"),
    look("what has grown", "reassignments-grow"),
    move("timeout 0", moved("reassignments-move", (0, [3, 1]), (1, [1, 2])), timeout_ms=0),
    look("what has moved", "reassignments-move"),
    one("a leader that goes", [2], topic="reassignments-swap"),
    look("who leads then", "reassignments-swap"),
    Case("all topics at last", LIST, 0, {"topics": None}),
]  # fmt: skip

"""CreatePartitions: counts, placement by hand and by the controller, its checks and their order."""

from collections.abc import Sequence
from typing import Any

from tests.conformance.case import VERSIONS, Case, creation, each_version, new_topic

SETUP = [
    new_topic(f"cp-{what}-{version}", placed={0: [2, 3]})
    for version in VERSIONS["CreatePartitions"]
    for what in ("grow", "hand", "now")
]
SETUP += [
    new_topic("cp-two", placed={0: [1, 2], 1: [2, 3]}),
    new_topic("cp-three", placed={0: [3, 1, 2]}),
    new_topic("cp-batch", placed={0: [1]}),
]


def growth(topic: str, count: int, hand: Sequence[list[int]] | None = None) -> dict[str, Any]:
    rows = None if hand is None else [{"broker_ids": brokers} for brokers in hand]
    return {"name": topic, "count": count, "assignments": rows}


def asked(*topics: dict[str, Any], validate_only: bool = False, timeout_ms: int = 30_000) -> dict[str, Any]:
    return {"topics": list(topics), "timeout_ms": timeout_ms, "validate_only": validate_only}


def checks(name: str, *topics: dict[str, Any]) -> list[Case]:
    dry = Case(f"{name}-validate-only", "CreatePartitions", 3, asked(*topics, validate_only=True))
    return [*each_version(name, "CreatePartitions", asked(*topics)), dry]


def newest(name: str, *topics: dict[str, Any], validate_only: bool = True, timeout_ms: int = 30_000) -> Case:
    return Case(name, "CreatePartitions", 3, asked(*topics, validate_only=validate_only, timeout_ms=timeout_ms))


def look(name: str, topic: str, *, settles: bool = False) -> Case:
    return Case(
        name, "Metadata", 12, {"topics": [{"name": topic}], "allow_auto_topic_creation": False}, settles=settles
    )


CASES = [
    Case("setup partitions", "CreateTopics", 7, creation(*SETUP)),
    *each_version("grow", "CreatePartitions", asked(growth("cp-grow-{v}", 4))),
    look("what grow made", "cp-grow-3"),
    *each_version("by hand", "CreatePartitions", asked(growth("cp-hand-{v}", 3, [[3, 1], [1, 2]]))),
    look("what by hand made", "cp-hand-3"),
    *each_version("validate only", "CreatePartitions", asked(growth("cp-two", 4), validate_only=True)),
    *each_version("nothing", "CreatePartitions", asked()),
    *each_version("timeout 0", "CreatePartitions", asked(growth("cp-now-{v}", 2), timeout_ms=0)),
    look("what timeout 0 grew", "cp-now-3", settles=True),
    newest("timeout 0 validate only", growth("cp-two", 4), timeout_ms=0),
    newest("timeout -1", growth("cp-now-0", 3), validate_only=False, timeout_ms=-1),
    *checks("same count", growth("cp-two", 2)),
    *checks("fewer", growth("cp-two", 1)),
    *checks("unknown", growth("cp-nobody", 2)),
    *checks("twice in the batch", growth("cp-two", 3), growth("cp-two", 4)),
    *checks("unknown node", growth("cp-two", 3, [[1, 99]])),
    *checks("too few rows", growth("cp-two", 4, [[1, 2]])),
    *checks("other replication factor", growth("cp-two", 3, [[1]])),
    *checks("node twice in a row", growth("cp-two", 3, [[1, 1]])),
    newest("count 0", growth("cp-two", 0)),
    newest("count -1", growth("cp-two", -1)),
    newest("illegal name", growth("bad name!", 2)),
    newest("dot", growth(".", 2)),
    newest("no rows", growth("cp-two", 3, [])),
    newest("too many rows", growth("cp-two", 3, [[1, 2], [2, 3]])),
    newest("empty row", growth("cp-two", 3, [[]])),
    newest("empty row of two", growth("cp-two", 4, [[1, 2], []])),
    newest("two unknown nodes", growth("cp-two", 4, [[98, 1], [99, 1]])),
    newest("negative node", growth("cp-two", 3, [[-1, 1]])),
    newest("rows differ", growth("cp-two", 4, [[1, 2], [1, 2, 3]])),
    newest("all rows differ", growth("cp-two", 4, [[1], [1, 2, 3]])),
    newest("fewer by hand", growth("cp-two", 1, [[1, 2]])),
    newest("same by hand", growth("cp-two", 2, [])),
    newest("unknown node before rows", growth("cp-two", 4, [[1, 99]])),
    newest("rows before row", growth("cp-two", 4, [[]])),
    newest("twice before unknown", growth("cp-nobody", 2), growth("cp-nobody", 3)),
    newest("conflict of all", growth("cp-two", 1, [[99, 99]])),
    newest("unknown node before node twice", growth("cp-two", 3, [[99, 99]])),
    newest("node twice before length", growth("cp-two", 3, [[1, 1, 1]])),
    newest("empty row before node twice", growth("cp-two", 4, [[], [1, 1]])),
    newest("unknown before count", growth("cp-nobody", 0)),
    newest("twice beside others", growth("cp-two", 4), growth("cp-nobody", 2), growth("cp-two", 4), growth("cp-three", 2, [[1, 2, 3]])),
    newest("three times", *[growth("cp-two", 4)] * 3),
    newest("timeout smallest", growth("cp-nobody", 2), growth("cp-two", 1), timeout_ms=-(2**31), validate_only=False),
    newest("empty name", growth("", 2)),
    newest("longest string", growth("n" * 32_767, 2)),
    newest("neighbours", growth("cp-two", 1), growth("cp-nobody", 2), growth("cp-batch", 2, [[2]]), validate_only=False),
    newest("three replicas by hand", growth("cp-three", 2, [[1, 2, 3]]), validate_only=False),
    newest("three replicas", growth("cp-three", 5), validate_only=False),
    look("what three replicas made", "cp-three"),
]  # fmt: skip

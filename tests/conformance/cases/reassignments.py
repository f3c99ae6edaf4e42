"""ListPartitionReassignments on a cluster in which no replica is being moved."""

from tests.conformance.case import Body, Case, creation, new_topic

API = "ListPartitionReassignments"


def named(topic: str, *partitions: int) -> Body:
    return {"name": topic, "partition_indexes": list(partitions)}


CASES = [
    Case("setup reassignments", "CreateTopics", 7, creation(new_topic("reassignments-t", placed={0: [1, 2], 1: [2, 3]}))),
    Case("all topics", API, 0, {"topics": None}),
    Case("no topics", API, 0, {"topics": []}),
    Case("known topic", API, 0, {"topics": [named("reassignments-t", 0, 1)]}),
    Case("unknown topic", API, 0, {"topics": [named("reassignments-unknown", 0)]}),
    Case("partitions out of range", API, 0, {"topics": [named("reassignments-t", 2, -1)]}),
    Case("no partitions", API, 0, {"topics": [named("reassignments-t")]}),
    Case("topic and partition twice", API, 0, {"topics": [named("reassignments-t", 0, 0), named("reassignments-t", 0)]}),
    Case("names that no topic can have", API, 0, {"topics": [named("bad name!", 0), named("", 0)]}),
    *[Case(f"timeout {timeout_ms}", API, 0, {"timeout_ms": timeout_ms, "topics": None}) for timeout_ms in (1, 0, -1)],
]  # fmt: skip

"""DeleteRecords of partitions without records, at node 1: those that it leads, and others."""

from typing import Any

from tests.conformance.case import Body, Case, creation, each_version, new_topic

PLACED = {0: [1, 2], 1: [2, 3]}
"""Node 1 leads partition 0, has no replica of partition 1, and follows in partition 2."""
LED = ("records-t", "records-compact", "records-both")


def topic(name: str, *offsets: tuple[int, int]) -> Body:
    return {"name": name, "partitions": [{"partition_index": index, "offset": offset} for index, offset in offsets]}


def deletion(*topics: Body, timeout_ms: int = 10_000) -> Body:
    return {"topics": list(topics), "timeout_ms": timeout_ms}


def at_node_1(name: str, body: Body, **how: Any) -> list[Case]:
    return each_version(name, "DeleteRecords", body, node_1=True, **how)


CASES = [
    Case("setup records", "CreateTopics", 7, creation(
        new_topic("records-t", placed={**PLACED, 2: [2, 1]}),
        new_topic("records-compact", placed=PLACED, configs={"cleanup.policy": "compact"}),
        new_topic("records-both", placed=PLACED, configs={"cleanup.policy": "compact,delete"}),
    )),
    *at_node_1("up to the end", deletion(topic("records-t", (0, -1)), topic("records-both", (0, 0))), once_led=LED),
    *at_node_1("beyond the end", deletion(topic("records-t", (0, 1)))),
    *at_node_1("before all offsets", deletion(topic("records-t", (0, -2)))),
    *at_node_1("unknown topic", deletion(topic("records-nobody", (0, 0)))),
    *at_node_1("unknown partitions", deletion(topic("records-t", (3, 0), (-1, 0)))),
    *at_node_1("led by another node", deletion(topic("records-t", (1, 0), (2, 0)))),
    *at_node_1("not deleted but compacted", deletion(topic("records-compact", (0, 0), (1, 0)))),
    *at_node_1("compacted and beyond the end", deletion(topic("records-compact", (0, 7)))),
    *at_node_1("internal topic", deletion(topic("__consumer_offsets", (0, 0), (1, 9)))),
    *at_node_1("unknown partition of an internal topic", deletion(topic("__consumer_offsets", (99, 0)))),
    *at_node_1("partition twice", deletion(topic("records-t", (0, 5), (0, 0)))),
    *at_node_1("topic twice", deletion(topic("records-t", (0, 0)), topic("records-t", (0, 5)))),
    *at_node_1("no topics", deletion()),
    *at_node_1("no partitions", deletion(topic("records-t"))),
    *at_node_1("names that no topic can have", deletion(topic("bad name!", (0, 0)), topic("", (0, 0)))),
    *at_node_1("good and bad", deletion(topic("records-t", (0, 0), (1, 0), (9, 0)), topic("records-nobody", (0, 0)))),
    *at_node_1("timeout 0", deletion(topic("records-t", (0, 0)), timeout_ms=0)),
    *at_node_1("timeout -1", deletion(topic("records-t", (0, -1)), timeout_ms=-1)),
]  # fmt: skip

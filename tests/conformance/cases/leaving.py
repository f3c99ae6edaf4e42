"""LeaveGroup, and WriteTxnMarkers, as administrators ask for them where no group has members and
nobody began a transaction.

Node 1 coordinates every group: the coordinators' topic was placed there by the scenario of groups.
A partition is named once in a request, because Kafka never answers a request that names it twice.
"""

from tests.conformance.case import Body, Case, creation, each_version, new_topic

HERE, THERE = "lea-here", "lea-there"
NAMED = {"topics": [{"name": HERE}, {"name": THERE}], "allow_auto_topic_creation": False}


def leaving(name: str, group: str) -> list[Case]:
    """Return requests of LeaveGroup: one member leaves, and several since version 3."""
    members = [
        {"member_id": "m"},
        {"member_id": "", "group_instance_id": "i"},
        {"member_id": "m", "group_instance_id": "i"},
        {"member_id": ""},
    ]
    body = {"group_id": group, "member_id": "m", "members": members}
    return each_version(name, "LeaveGroup", body, node_1=True)


def marker(producer_id: int, *topics: tuple[str, list[int]], epoch: int = 0, commits: bool = False) -> Body:
    return {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "transaction_result": commits,
        "coordinator_epoch": 0,
        "topics": [{"name": name, "partition_indexes": indexes} for name, indexes in topics],
    }


def markers(name: str, *wanted: Body) -> list[Case]:
    return each_version(name, "WriteTxnMarkers", {"markers": list(wanted)}, node_1=True)


CASES = [
    Case("setup", "CreateTopics", 7, creation(new_topic(HERE, placed={0: [1], 1: [2]}), new_topic(THERE, placed={0: [2, 1]}))),
    Case("led", "Metadata", 12, NAMED, once_led=(HERE, THERE, "__consumer_offsets")),
    Case("here", "DescribeProducers", 0, {"topics": [{"name": HERE, "partition_indexes": [0]}]}, node_1=True, settles=True),
    Case("set", "OffsetCommit", 8, {"group_id": "lea-g", "topics": [{"name": HERE, "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}]}, node_1=True),
    *leaving("a group", "lea-g"),
    *leaving("an unknown group", "lea-none"),
    *leaving("a group without a name", ""),
    *each_version("nobody", "LeaveGroup", {"group_id": "lea-g", "members": []}, since=3, node_1=True),
    *each_version("nameless", "LeaveGroup", {"group_id": "lea-g", "member_id": ""}, node_1=True)[:3],
    *markers("no markers"),
    *markers("a marker for nothing", marker(1)),
    *markers("a marker for a topic", marker(1, (HERE, []))),
    *markers("a marker at the leader", marker(1, (HERE, [0, 1, 2, -1]))),
    *markers("a marker at a follower", marker(2, (THERE, [0]))),
    *markers("markers at the leader", marker(8, (HERE, [0])), marker(9, (HERE, [0]), commits=True)),
    *markers("markers for what is not there", marker(5, ("lea-none", [0])), marker(6, ("bad name", [0])), marker(7, ("", [0]))),
    Case("some markers here", "WriteTxnMarkers", 1, {"markers": [marker(1, (HERE, [0])), marker(5, ("lea-none", [0]))]}, node_1=True),
    *markers("markers of one producer", marker(3, (HERE, [1]), commits=True), marker(3, (HERE, [2]))),
    *markers("strange markers", marker(-1, (HERE, [1])), marker(4, (HERE, [1]), epoch=-1)),
]  # fmt: skip

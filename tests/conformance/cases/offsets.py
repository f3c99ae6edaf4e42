"""The offsets of groups, set, read and removed as administrators do.

Node 1 coordinates every group: the coordinators' topic was placed there by the scenario of groups.
"""

from typing import Any

from tests.conformance.case import Case, creation, each_version, new_topic

NODE_1: dict[str, Any] = {"node_1": True}


def offsets(*at: tuple[int, int], topic: str = "off-t", **more: Any) -> dict[str, Any]:
    """An element of OffsetCommit: an offset for each of these partitions."""
    parts = [
        {"partition_index": index, "committed_offset": offset, "committed_metadata": "", **more} for index, offset in at
    ]
    return {"name": topic, "partitions": parts}


def commit(name: str, group: str, *topics: dict[str, Any], version: int = 8, **more: Any) -> Case:
    return Case(name, "OffsetCommit", version, {"group_id": group, "topics": list(topics), **more}, **NODE_1)


def fetched(name: str, group: str, *topics: tuple[str, list[int]], version: int = 7) -> Case:
    """The offsets of these partitions, or all of the group."""
    named = [{"name": topic, "partition_indexes": indexes} for topic, indexes in topics] or None
    return Case(name, "OffsetFetch", version, {"group_id": group, "topics": named}, **NODE_1)


def removed(name: str, group: str, *topics: tuple[str, list[int]]) -> Case:
    named = [{"name": topic, "partitions": [{"partition_index": i} for i in indexes]} for topic, indexes in topics]
    return Case(name, "OffsetDelete", 0, {"group_id": group, "topics": named}, **NODE_1)


def deleted(name: str, *groups: str) -> list[Case]:
    return each_version(name, "DeleteGroups", {"groups_names": list(groups)}, **NODE_1)


def described(name: str, *groups: str) -> Case:
    return Case(name, "DescribeGroups", 5, {"groups": list(groups), "include_authorized_operations": True}, **NODE_1)


EVERYTHING = {"group_id": "off-v{v}", "topics": None}
NAMED = {
    "group_id": "off-v{v}",
    "topics": [{"name": "off-t", "partition_indexes": [2, 0, 1, 9]}, {"name": "off-missing", "partition_indexes": [0]}],
}
MANY = {
    "groups": [
        {"group_id": "off-v{v}", "topics": None},
        {"group_id": "off-nobody", "topics": None},
        {"group_id": "off-v{v}", "topics": [{"name": "off-t", "partition_indexes": [0, 2]}, {"name": "off-missing", "partition_indexes": [0]}]},
        {"group_id": "off-v{v}", "topics": []},
    ]
}  # fmt: skip

CASES = [
    Case("setup", "CreateTopics", 7, creation(new_topic("off-t", placed={0: [1], 1: [1], 2: [1]}), new_topic("off-u", placed={0: [1]}))),
    Case("led", "Metadata", 12, {"topics": [{"name": "off-t"}, {"name": "off-u"}, {"name": "__consumer_offsets"}], "allow_auto_topic_creation": False}, once_led=("off-t", "off-u", "__consumer_offsets")),
    *each_version("set", "OffsetCommit", {"group_id": "off-v{v}", "topics": [offsets((0, 5), (9, 1)), offsets((0, 7), topic="off-missing")]}, since=1, **NODE_1),
    *[case for case in each_version("all", "OffsetFetch", EVERYTHING, since=2, **NODE_1) if case.version < 8],
    *[case for case in each_version("named", "OffsetFetch", NAMED, since=1, **NODE_1) if case.version < 8],
    *each_version("many", "OffsetFetch", MANY, since=8, **NODE_1),
    Case("of a member", "OffsetFetch", 9, {"groups": [{"group_id": "off-v9", "member_id": "me", "member_epoch": 3, "topics": None}]}, **NODE_1),
    *each_version("groups", "ListGroups", {}, **NODE_1),
    *each_version("empty ones", "ListGroups", {"states_filter": ["eMPTY"]}, since=4, **NODE_1),
    *each_version("no state of theirs", "ListGroups", {"states_filter": ["Stable", "Dead", "nonsense"]}, since=4, **NODE_1),
    Case("of their type", "ListGroups", 5, {"types_filter": ["Classic"]}, **NODE_1),
    Case("of another type", "ListGroups", 5, {"types_filter": ["consumer"]}, **NODE_1),
    *each_version("state", "DescribeGroups", {"groups": ["off-v3", "off-nobody"]}, **NODE_1),
    commit("no topics", "off-none", version=9),
    commit("only a missing topic", "off-none", offsets((0, 5), topic="off-missing")),
    commit("a bad name", "off-none", offsets((0, 5), topic="bad name")),
    described("still none", "off-none"),
    commit("nameless", "", offsets((0, 5))),
    fetched("nameless offsets", ""),
    commit("with a slash", "off/a b~%", offsets((0, 5))),
    fetched("with a slash offsets", "off/a b~%"),
    commit("dots", "..", offsets((0, 5))),
    fetched("dots offsets", ".."),
    commit("long", "x" * 300, offsets((0, 5))),
    fetched("long offsets", "x" * 300),
    *deleted("strange ones", "", "off/a b~%", "..", "x" * 300, ""),
    commit("longest metadata", "off-m", offsets((0, 5), committed_metadata="x" * 4096)),
    commit("too long metadata", "off-m", offsets((0, 6), committed_metadata="x" * 4097), offsets((0, 6), topic="off-u")),
    fetched("after metadata", "off-m", ("off-t", [0]), ("off-u", [0])),
    commit("null metadata", "off-m", offsets((0, 5), committed_metadata=None)),
    commit("below zero", "off-m", offsets((1, -1), (2, -77), committed_leader_epoch=7)),
    commit("partition thrice", "off-m", offsets((0, 1), (0, 2), (0, 3))),
    fetched("what is kept", "off-m", ("off-t", [0, 1, 2])),
    commit("of a generation", "off-m", offsets((0, 9)), generation_id_or_member_epoch=0),
    commit("of a generation and a member", "off-m", offsets((0, 9)), generation_id_or_member_epoch=4, member_id="me"),
    commit("of a member of no generation", "off-m", offsets((0, 4)), member_id="me"),
    commit("of an instance", "off-m", offsets((0, 5)), group_instance_id="instance"),
    commit("of a low generation", "off-m", offsets((0, 6)), generation_id_or_member_epoch=-5),
    commit("of a generation of nobody", "off-none", offsets((0, 9)), generation_id_or_member_epoch=0),
    fetched("kept still", "off-m", ("off-t", [0])),
    removed("some", "off-m", ("off-t", [0, 9, 2]), ("off-missing", [0])),
    removed("of nobody", "off-none", ("off-t", [0])),
    removed("of nobody, nowhere", "off-none", ("off-missing", [0])),
    removed("nothing of nobody", "off-none"),
    removed("nameless", "", ("off-t", [0])),
    removed("nothing", "off-m"),
    fetched("left", "off-m", ("off-t", [0, 1, 2])),
    removed("the rest", "off-m", ("off-t", [1, 0]), ("off-u", [0])),
    described("gone with its last offset", "off-m"),
    fetched("gone", "off-m"),
    *deleted("gone before", "off-m"),
    commit("of a topic that goes", "off-d", offsets((0, 5), topic="off-u")),
    Case("a topic goes", "DeleteTopics", 5, {"topic_names": ["off-u"], "timeout_ms": 30_000}),
    Case("gone with its topic", "OffsetFetch", 7, {"group_id": "off-d", "topics": None}, settles=True, **NODE_1),
    fetched("gone with its topic, named", "off-d", ("off-u", [0])),
    Case("dead with its topic", "DescribeGroups", 5, {"groups": ["off-d"]}, settles=True, **NODE_1),
    *deleted("every one", "off-v1", "off-v2", "off-v1", "off-nobody"),
    *deleted("none"),
    commit("old", "off-old", offsets((0, 5), (9, 1)), version=0),
    fetched("old offsets", "off-old", ("off-t", [0, 1, 9]), version=0),
]  # fmt: skip

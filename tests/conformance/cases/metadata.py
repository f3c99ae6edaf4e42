"""Metadata: which topics, by name and id, errors of names, automatic creation, authorized
operations.
"""

from typing import Any

from tests.conformance.case import Case, TopicIdOf, creation, each_version, new_topic

NOBODY = "11111111-2222-3333-4444-555555555555"
ZERO = "00000000-0000-0000-0000-000000000000"

SETUP = [
    new_topic("md-a", placed={0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}),
    new_topic("md-b", placed={0: [3]}),
    new_topic("md.c", placed={0: [2]}),
]


def named(*names: str, create: bool = False, **more: Any) -> dict[str, Any]:
    return {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": create, **more}


def newest(name: str, body: dict[str, Any], version: int = 12, **how: Any) -> Case:
    return Case(name, "Metadata", version, body, **how)


CASES = [
    *each_version("empty cluster", "Metadata", {"topics": None}, since=1),
    *each_version("no topics on an empty cluster", "Metadata", {"topics": []}),
    Case("setup metadata", "CreateTopics", 7, creation(*SETUP)),
    *each_version("one", "Metadata", named("md-a")),
    *each_version("all by null", "Metadata", {"topics": None}, since=1),
    *each_version("empty list", "Metadata", {"topics": []}),
    *each_version("two", "Metadata", named("md-b", "md-a")),
    *each_version("twice", "Metadata", named("md-b", "md-b")),
    *each_version("unknown", "Metadata", named("md-nobody", "md-b"), since=4),
    *each_version("illegal name", "Metadata", named("bad name!"), since=4),
    *each_version("illegal name to create", "Metadata", named("bad name!", create=True)),
    *each_version("empty name", "Metadata", named(""), since=4),
    newest("empty name to create", named("", create=True)),
    newest("dots", named(".", "..")),
    newest("too long", named("n" * 250)),
    newest("null with create", {"topics": None, "allow_auto_topic_creation": True}),
    *each_version("topic operations", "Metadata", named("md-b", include_topic_authorized_operations=True), since=8),
    *[newest("cluster operations", named("md-b", include_cluster_authorized_operations=True), v) for v in (8, 9, 10)],
    newest("operations of an unknown topic", named("md-nobody", include_topic_authorized_operations=True)),
    # By id.
    newest("by id", {"topics": [{"name": None, "topic_id": TopicIdOf("md-b")}]}),
    newest("by unknown id", {"topics": [{"name": None, "topic_id": NOBODY}]}),
    newest("by two ids", {"topics": [{"name": None, "topic_id": NOBODY}, {"name": None, "topic_id": TopicIdOf("md-a")}]}),
    newest("by id and name", {"topics": [{"name": "md-a", "topic_id": TopicIdOf("md-b")}]}),
    newest("by id beside a name", {"topics": [{"name": "md-a"}, {"name": None, "topic_id": TopicIdOf("md-b")}]}),
    newest("null name, zero id", {"topics": [{"name": None, "topic_id": ZERO}]}),
    newest("null name, zero id, no create", {"topics": [{"name": None, "topic_id": ZERO}], "allow_auto_topic_creation": False}),
    *[newest("id too early", {"topics": [{"name": "md-b", "topic_id": TopicIdOf("md-b")}]}, v) for v in (10, 11)],
    *[newest("null name too early", {"topics": [{"name": None, "topic_id": ZERO}]}, v) for v in (10, 11)],
    # Automatic creation: v0 to v3 always ask for it.
    *each_version("create", "Metadata", named("md-auto-{v}", create=True)),
    *each_version(
        "created", "Metadata", named("md-auto-{v}"), random_placement=True, once_led=tuple(f"md-auto-{v}" for v in range(13))
    ),
    newest("create beside others", named("md-b", "md-nobody", "bad!", create=True)),
    newest("create colliding", named("md_c", create=True)),
    newest("unknown colliding", named("md_c")),
    # KRaft's own topic, which CreateTopics refuses to make.
    newest("cluster metadata", named("__cluster_metadata")),
    newest("create cluster metadata", named("__cluster_metadata", create=True)),
    newest("longest string", named("n" * 32_767)),
]  # fmt: skip

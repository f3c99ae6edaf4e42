"""DeleteTopics: by name and by id, unknown ones, duplicates, timeouts."""

from typing import Any

from tests.conformance.case import VERSIONS, Case, TopicIdOf, each_version, fill, one_partition

NOBODY = "11111111-2222-3333-4444-555555555555"
ZERO = "00000000-0000-0000-0000-000000000000"

SETUP = [f"dt-{what}-{version}" for version in VERSIONS["DeleteTopics"] for what in ("one", "two", "now", "twice")]
SETUP += [f"dt-id-{number}" for number in range(8)] + ["dt-old", "dt-kept", "dt-minus"]


def by_name(name: str, *topics: str, timeout_ms: int = 30_000) -> list[Case]:
    """In the form of each version: bare names until 5, structs from 6 on."""
    cases = []
    for version in VERSIONS["DeleteTopics"]:
        names = [fill(topic, version) for topic in topics]
        wish = {"topic_names": names} if version < 6 else {"topics": [{"name": topic} for topic in names]}
        cases.append(Case(name, "DeleteTopics", version, {**wish, "timeout_ms": timeout_ms}))
    return cases


def v6(name: str, *topics: dict[str, Any], timeout_ms: int = 30_000) -> Case:
    return Case(name, "DeleteTopics", 6, {"topics": list(topics), "timeout_ms": timeout_ms})


CASES = [
    Case("setup delete", "CreateTopics", 7, one_partition(*SETUP)),
    *by_name("one", "dt-one-{v}"),
    *each_version(
        "what delete left", "Metadata", {"topics": [{"name": "dt-one-0"}], "allow_auto_topic_creation": False}, since=4
    ),
    *by_name("unknown", "dt-nobody"),
    *by_name("illegal name", "bad name!"),
    *by_name("empty name", ""),
    *by_name("nothing"),
    *by_name("unknown twice", "dt-nobody", "dt-nobody"),
    *by_name("neighbours", "dt-nobody", "dt-two-{v}", "bad!"),
    *by_name("twice", "dt-twice-{v}", "dt-twice-{v}"),
    *by_name("timeout 0", "dt-now-{v}", "dt-nobody", timeout_ms=0),
    v6("timeout -1", {"name": "dt-minus"}, timeout_ms=-1),
    v6("by id", {"name": None, "topic_id": TopicIdOf("dt-id-0")}),
    v6("by unknown id", {"name": None, "topic_id": NOBODY}),
    v6("by two ids", {"name": None, "topic_id": TopicIdOf("dt-id-1")}, {"name": None, "topic_id": NOBODY}),
    v6("by the same id twice", {"name": None, "topic_id": TopicIdOf("dt-id-2")}, {"name": None, "topic_id": TopicIdOf("dt-id-2")}),
    v6("by id and name", {"name": "dt-id-3"}, {"name": None, "topic_id": TopicIdOf("dt-id-3")}),
    v6("id and name in one", {"name": "dt-id-4", "topic_id": TopicIdOf("dt-id-4")}, {"name": "dt-kept"}),
    v6("unknown id and name in one", {"name": "dt-id-4", "topic_id": NOBODY}),
    v6("unknown id and unknown name", {"name": None, "topic_id": NOBODY}, {"name": "dt-nobody"}),
    v6("empty name and id in one", {"name": "", "topic_id": NOBODY}),
    v6("unknown ids twice", *[{"name": None, "topic_id": NOBODY}] * 2),
    v6("timeout smallest", {"name": "dt-nobody"}, {"name": None, "topic_id": NOBODY}, timeout_ms=-(2**31)),
    v6("longest string", {"name": "n" * 32_767}),
    v6("neither", {"name": None, "topic_id": ZERO}),
    v6("neither beside one", {"name": None, "topic_id": ZERO}, {"name": "dt-id-5"}),
    v6("by id now", {"name": None, "topic_id": TopicIdOf("dt-id-6")}, timeout_ms=0),
    Case("what was kept", "Metadata", 12, {
        "topics": [{"name": name} for name in ("dt-kept", "dt-id-4", "dt-id-5", "dt-id-3")],
        "allow_auto_topic_creation": False,
    }),
]  # fmt: skip

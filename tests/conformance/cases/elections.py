"""ElectLeaders where every replica is alive and leads what it prefers to lead."""

from tests.conformance.case import Body, Case, creation, each_version, new_topic

API = "ElectLeaders"
PREFERRED, UNCLEAN, UNKNOWN = 0, 1, 2
TOPIC = "elections-t"


def named(topic: str, *partitions: int) -> Body:
    return {"topic": topic, "partitions": list(partitions)}


def asked(name: str, *topics: Body) -> list[Case]:
    """Ask for either kind of election."""
    preferred = each_version(name, API, {"election_type": PREFERRED, "topic_partitions": topics})
    unclean = {"election_type": UNCLEAN, "topic_partitions": list(topics)}
    return [*preferred, Case(f"{name}, unclean", API, 2, unclean)]


CASES = [
    Case("setup elections", "CreateTopics", 7, creation(new_topic(TOPIC, placed={0: [1, 2], 1: [2, 3], 2: [3, 1]}))),
    Case(
        "elections ready", "Metadata", 12,
        {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}, once_led=(TOPIC,), settles=True,
    ),
    *asked("known", named(TOPIC, 0, 1)),
    *asked("unknown topic", named("elections-unknown", 0, 1)),
    *asked("partitions out of range", named(TOPIC, 3, -1)),
    *asked("known and unknown", named(TOPIC, 2, 7), named("elections-unknown", 0)),
    *asked("no partitions", named(TOPIC)),
    *asked("nothing"),
    *asked("topic and partition twice", named(TOPIC, 0, 0), named(TOPIC, 0)),
    *asked("names that no topic can have", named("bad name!", 0), named("", 0)),
    *each_version("all", API, {"topic_partitions": None}),
    *each_version("all, unclean", API, {"election_type": UNCLEAN, "topic_partitions": None}, since=1),
    *each_version("unknown kind", API, {"election_type": UNKNOWN, "topic_partitions": [named(TOPIC, 0)]}, since=1),
    *each_version("negative kind", API, {"election_type": -1, "topic_partitions": None}, since=1),
    *[
        Case(f"timeout {timeout_ms}", API, 2, {"topic_partitions": [named(TOPIC, 0)], "timeout_ms": timeout_ms})
        for timeout_ms in (0, -1)
    ],
]  # fmt: skip

"""The logs of partitions without records: ListOffsets, DescribeLogDirs and
AlterReplicaLogDirs.
"""

from dataclasses import replace

from tests.conformance.case import Body, Case, creation, each_version, new_topic

OFFSETS, LOG_DIRS, MOVES = "ListOffsets", "DescribeLogDirs", "AlterReplicaLogDirs"
LATEST, EARLIEST, MAX, EARLIEST_LOCAL, LATEST_TIERED, NOBODYS = -1, -2, -3, -4, -5, -6
SOME_TIME = 1_700_000_000_000
CONSUMER = -1
T = "logs-t"


def asked(*topics: Body, isolation_level: int = 0, replica_id: int = CONSUMER) -> Body:
    return {"replica_id": replica_id, "isolation_level": isolation_level, "topics": list(topics)}


def named(topic: str, *partitions: int, timestamp: int = LATEST, leader_epoch: int = -1, most: int = 1) -> Body:
    rows = [
        {
            "partition_index": index, "current_leader_epoch": leader_epoch, "timestamp": timestamp,
            "max_num_offsets": most,
        }
        for index in partitions
    ]  # fmt: skip
    return {"name": topic, "partitions": rows}


def of_dirs(topic: str, *partitions: int) -> Body:
    return {"topics": [{"topic": topic, "partitions": list(partitions)}]}


def moved(*rows: tuple[str | int, ...]) -> Body:
    """Return a request of rows of a directory, a topic and its partitions."""
    dirs: dict[str | int, list[Body]] = {}
    for path, topic, *partitions in rows:
        dirs.setdefault(path, []).append({"name": topic, "partitions": partitions})
    return {"dirs": [{"path": path, "topics": topics} for path, topics in dirs.items()]}


ASKED = [
    Case(
        "setup logs", "CreateTopics", 7,
        creation(new_topic(T, placed={0: [1, 2], 1: [2, 3], 2: [1, 3]}, configs={"cleanup.policy": "compact"})),
    ),
    Case(
        "logs ready", "Metadata", 12, {"topics": [{"name": T}], "allow_auto_topic_creation": False},
        once_led=(T,), settles=True,
    ),
    *[
        case
        for name, timestamp in (
            ("latest", LATEST), ("earliest", EARLIEST), ("newest time", MAX), ("earliest local", EARLIEST_LOCAL),
            ("latest tiered", LATEST_TIERED), ("nobody's number", NOBODYS), ("a time", SOME_TIME), ("the first time", 0),
        )
        for case in each_version(name, OFFSETS, asked(named(T, 0, timestamp=timestamp)))
    ],
    *each_version("many offsets", OFFSETS, asked(named(T, 0, most=5))),
    *each_version("no offsets", OFFSETS, asked(named(T, 0, most=0))),
    *each_version("led by others", OFFSETS, asked(named(T, 0, 1))),
    *each_version("unknown topic", OFFSETS, asked(named("logs-unknown", 0))),
    *each_version("partitions out of range", OFFSETS, asked(named(T, 3, -1))),
    *each_version("illegal name", OFFSETS, asked(named("bad name!", 0))),
    *each_version("nothing", OFFSETS, asked()),
    *each_version("no partitions", OFFSETS, asked(named(T))),
    *each_version("partition twice", OFFSETS, asked(named(T, 0, 0))),
    *each_version("topic twice", OFFSETS, asked(named(T, 0), named(T, 0, 2))),
    *each_version("committed", OFFSETS, asked(named(T, 0), isolation_level=1), since=2),
    *each_version("unknown isolation", OFFSETS, asked(named(T, 0), isolation_level=7), since=2),
    *each_version("this epoch", OFFSETS, asked(named(T, 0, leader_epoch=0)), since=4),
    *each_version("a later epoch", OFFSETS, asked(named(T, 0, leader_epoch=9)), since=4),
    *each_version("an epoch of others", OFFSETS, asked(named(T, 1, leader_epoch=0)), since=4),
    *each_version("a later epoch of others", OFFSETS, asked(named(T, 1, leader_epoch=9)), since=4),
    *each_version("earliest of others", OFFSETS, asked(named(T, 1, timestamp=EARLIEST)), since=1),
    *each_version("debugging", OFFSETS, asked(named(T, 0, 1), replica_id=-2)),
    *each_version("some partitions", LOG_DIRS, of_dirs(T, 0, 1, 2, 9, -1)),
    *each_version("unknown topic", LOG_DIRS, of_dirs("logs-unknown", 0)),
    *each_version("no partitions", LOG_DIRS, of_dirs(T)),
    *each_version("partition twice", LOG_DIRS, of_dirs(T, 0, 0)),
    *each_version("nothing", LOG_DIRS, {"topics": []}),
    *each_version("unknown directory", MOVES, moved(("/no/such", T, 0, 1, 9, -1), ("/no/such", "logs-unknown", 0))),
    *each_version("relative directory", MOVES, moved((".", T, 0))),
    *each_version("empty directory", MOVES, moved(("", T, 0))),
    *each_version("partition twice", MOVES, moved(("/no/such", T, 0, 0))),
    *each_version("two directories", MOVES, moved(("/no/such", T, 0), ("/nor/this", T, 0, 2))),
    *each_version("nothing", MOVES, moved()),
    *each_version("no partitions", MOVES, moved(("/no/such", T))),
]  # fmt: skip

CASES = [replace(case, node_1=case.api in (OFFSETS, LOG_DIRS, MOVES)) for case in ASKED]

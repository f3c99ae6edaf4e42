"""CreateTopics: every row of its checks, their order, counts against assignments, timeouts,
batches, configs.
"""

from tests.conformance.case import Case, creation, each_version, new_topic

LONGEST = "n" * 249


def checks(name: str, *topics: dict[str, object], since: int = 0) -> list[Case]:
    """Refused in every version, also when it is only to be validated."""
    dry = Case(f"{name}-validate-only", "CreateTopics", 7, creation(*topics, validate_only=True))
    return [*each_version(name, "CreateTopics", creation(*topics), since=since), dry]


def newest(name: str, *topics: dict[str, object], timeout_ms: int = 30_000, validate_only: bool = True) -> Case:
    return Case(name, "CreateTopics", 7, creation(*topics, timeout_ms=timeout_ms, validate_only=validate_only))


def bad_config(key: str, value: str | None) -> Case:
    topic = new_topic("ct-config", 1, 1, configs={key: value})
    return newest(f"config {key}={value}", topic)


BAD_CONFIGS = [
    ("no.such.config", "1"),
    ("retention.ms", "abc"),
    ("retention.ms", ""),
    ("retention.ms", "-2"),
    ("retention.ms", "1.5"),
    ("retention.ms", "9223372036854775808"),
    ("segment.bytes", "13"),
    ("segment.bytes", "2147483648"),
    ("segment.bytes", "x"),
    ("min.insync.replicas", "0"),
    ("max.message.bytes", "-1"),
    ("cleanup.policy", "foo"),
    ("cleanup.policy", "compact,foo"),
    ("compression.type", "brotli"),
    ("compression.gzip.level", "10"),
    ("compression.gzip.level", "0"),
    ("compression.lz4.level", "18"),
    ("compression.zstd.level", "23"),
    ("preallocate", "yes"),
    ("preallocate", ""),
    ("min.cleanable.dirty.ratio", "1.1"),
    ("min.cleanable.dirty.ratio", "x"),
    ("min.cleanable.dirty.ratio", "NaN"),
    ("message.timestamp.type", "Never"),
    ("message.format.version", "99.9"),
    ("follower.replication.throttled.replicas", "0:1,x"),
    ("leader.replication.throttled.replicas", "*:1"),
    ("remote.storage.enable", "true"),
    ("remote.log.copy.disable", "true"),
    ("remote.log.delete.on.disable", "true"),
    ("local.retention.ms", "-3"),
    ("segment.ms", "0"),
    ("flush.messages", "0"),
    ("max.compaction.lag.ms", "0"),
]

GOOD_CONFIGS = {
    "retention.ms": " 86400000 ",
    "preallocate": "TRUE",
    "cleanup.policy": "compact, delete",
    "min.cleanable.dirty.ratio": "0.25",
    "max.message.bytes": "0",
    "compression.type": "zstd",
    "message.format.version": "2.8",
    "follower.replication.throttled.replicas": "0:1,1:2",
    "leader.replication.throttled.replicas": "*",
    "retention.bytes": "-5",
}

CASES = [
    # Granted.
    *each_version("counts", "CreateTopics", creation(new_topic("ct-counts-{v}", 2, 2))),
    *each_version("defaults", "CreateTopics", creation(new_topic("ct-defaults-{v}"))),
    *each_version("placed", "CreateTopics", creation(new_topic("ct-placed-{v}", placed={0: [1, 2], 1: [2, 3]}))),
    *each_version("with configs", "CreateTopics", creation(new_topic("ct-set-{v}", 1, 1, configs=GOOD_CONFIGS))),
    *each_version("validate only", "CreateTopics", creation(new_topic("ct-dry", 3, 3), validate_only=True), since=1),
    *each_version("nothing", "CreateTopics", creation()),
    Case("what with configs made", "DescribeConfigs", 4, {
        "resources": [{"resource_type": 2, "resource_name": "ct-set-7"}], "include_synonyms": True,
    }),
    Case("what placed made", "Metadata", 12, {"topics": [{"name": "ct-placed-7"}], "allow_auto_topic_creation": False}),
    newest("defaults validate only", new_topic("ct-dry-defaults")),
    newest("default partitions", new_topic("ct-dry-partitions", -1, 3)),
    newest("default replication factor", new_topic("ct-dry-replicas", 3, -1)),
    newest("placed validate only", new_topic("ct-dry-placed", placed={0: [1, 2], 1: [2, 3], 2: [3, 1]})),
    newest("longest name", new_topic(LONGEST, 1, 1)),
    newest("duplicate config key", new_topic("ct-last", 1, 1, configs=[("retention.ms", "1"), ("retention.ms", "2")])),
    newest("empty cleanup policy", new_topic("ct-no-policy", 1, 1, configs={"cleanup.policy": ""})),
    newest("blank boolean", new_topic("ct-blank", 1, 1, configs={"preallocate": " false "})),
    newest("placed with configs", new_topic("ct-both", placed={0: [1]}, configs={"retention.ms": "1"})),
    newest("placed out of order", new_topic("ct-unordered", placed={1: [1], 0: [2]})),
    # Refused, in every version.
    *checks("exists", new_topic("ct-counts-0", 1, 1)),
    *checks("twice in the batch", new_topic("ct-twice", 1, 1), new_topic("ct-single", 0, 1), new_topic("ct-twice", 2, 1)),
    *checks("cluster metadata", new_topic("__cluster_metadata", 1, 1)),
    *checks("null config", new_topic("ct-null", 1, 1, configs={"retention.ms": None})),
    *checks("counts and placed", new_topic("ct-conflict", 1, 1, placed={0: [1]})),
    *checks("no partitions", new_topic("ct-zero", 0, 1)),
    *checks("no replicas", new_topic("ct-zero", 1, 0)),
    *checks("too many replicas", new_topic("ct-many", 1, 4)),
    *checks("illegal character", new_topic("bad name!", 1, 1)),
    *checks("empty name", new_topic("", 1, 1)),
    *checks("unknown config", new_topic("ct-config", 1, 1, configs={"no.such.config": "1"})),
    *checks("bad config", new_topic("ct-config", 1, 1, configs={"retention.ms": "abc"})),
    *checks("replicas differ", new_topic("ct-differ", placed={0: [1, 2], 1: [1]})),
    *checks("neighbours", new_topic("ct-no", 0, 1), new_topic("ct-counts-0", 1, 1), new_topic("bad!", 1, 1)),
    # Refused, the finer points.
    newest("partitions -2", new_topic("ct-zero", -2, 1)),
    newest("replicas -2", new_topic("ct-zero", 1, -2)),
    newest("partitions and replicas 0", new_topic("ct-zero", 0, 0)),
    newest("partitions 0 and too many replicas", new_topic("ct-zero", 0, 9)),
    newest("partitions and placed", new_topic("ct-conflict", 1, -1, placed={0: [1]})),
    newest("replicas and placed", new_topic("ct-conflict", -1, 1, placed={0: [1]})),
    newest("zero counts and placed", new_topic("ct-conflict", 0, 0, placed={0: [1]})),
    newest("dot", new_topic(".", 1, 1)),
    newest("two dots", new_topic("..", 1, 1)),
    newest("too long", new_topic(LONGEST + "n", 1, 1)),
    newest("too long and illegal", new_topic(LONGEST + "!", 1, 1)),
    newest("not ascii", new_topic("töpic", 1, 1)),
    newest("slash", new_topic("a/b", 1, 1)),
    newest("blank", new_topic(" ", 1, 1)),
    newest("several null configs", new_topic("ct-null", 1, 1, configs={"retention.ms": None, "segment.ms": None, "a": "1"})),
    newest("placed twice on a node", new_topic("ct-manual", placed={0: [1, 1]})),
    newest("placed from 1", new_topic("ct-manual", placed={1: [1], 2: [2]})),
    newest("placed with a gap", new_topic("ct-manual", placed={0: [1], 2: [2]})),
    newest("placed at -1", new_topic("ct-manual", placed={-1: [1]})),
    newest("placed on unknown node", new_topic("ct-manual", placed={0: [1, 99]})),
    newest("placed on negative node", new_topic("ct-manual", placed={0: [-1]})),
    newest("placed nowhere", new_topic("ct-manual", placed={0: []})),
    newest("placed partition twice", new_topic("ct-manual", placed=[(0, [1]), (0, [2])])),
    newest("two bad configs", new_topic("ct-config", 1, 1, configs={"no.such.one": "1", "no.such.two": "1"})),
    *[bad_config(key, value) for key, value in BAD_CONFIGS],
    newest("lags cross", new_topic("ct-config", 1, 1, configs={"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"})),
    # The order of the checks: two faults, one told.
    newest("exists before null config", new_topic("ct-counts-0", 1, 1, configs={"a": None})),
    newest("exists before counts", new_topic("ct-counts-0", 0, 0)),
    newest("null config before conflict", new_topic("ct-order", 1, 1, placed={0: [1]}, configs={"a": None})),
    newest("null config before counts", new_topic("ct-order", 0, 0, configs={"a": None})),
    newest("conflict before name", new_topic("bad!", 1, 1, placed={0: [1]})),
    newest("counts before name", new_topic("bad!", 0, 1)),
    newest("replicas before name", new_topic("bad!", 1, 9)),
    newest("name before placement", new_topic("bad!", placed={0: [1], 1: [1, 2]})),
    newest("name before config", new_topic("bad!", 1, 1, configs={"no.such.config": "1"})),
    newest("replicas before config", new_topic("ct-order", 1, 9, configs={"no.such.config": "1"})),
    newest("placement before config", new_topic("ct-order", placed={0: [1, 1]}, configs={"no.such.config": "1"})),
    newest("duplicate before all", new_topic("bad!", 0, 9), new_topic("bad!", 0, 9)),
    newest("duplicate of an existing one", new_topic("ct-counts-0", 1, 1), new_topic("ct-counts-0", 1, 1)),
    newest("cluster metadata before counts", new_topic("__cluster_metadata", 0, 0)),
    newest("cluster metadata twice", new_topic("__cluster_metadata", 1, 1), new_topic("__cluster_metadata", 1, 1)),
    # Names that collide.
    newest("dotted", new_topic("ct.dotted.name", placed={0: [1]}), validate_only=False),
    newest("collides", new_topic("ct_dotted.name", 1, 1)),
    newest("collides with exact rest", new_topic("ct_dotted_name", 1, 1)),
    newest("does not collide", new_topic("ct-dotted-name", 1, 1)),
    newest("collision before placement", new_topic("ct_dotted_name", placed={0: [1, 1]})),
    newest("collision after counts", new_topic("ct_dotted_name", 1, 9)),
    # A batch: each by itself, in the order of the request.
    newest(
        "batch",
        new_topic("ct-batch-2", placed={0: [1]}),
        new_topic("ct-batch-no", 1, 9),
        new_topic("ct-batch-1", placed={0: [2]}),
        new_topic("ct-counts-0", 1, 1),
        new_topic("ct-batch-3", placed={0: [3]}),
        validate_only=False,
    ),
    # No time to wait: triggered, and answered at once.
    *each_version("timeout 0", "CreateTopics", creation(new_topic("ct-now-{v}", placed={0: [1]}), timeout_ms=0)),
    newest("timeout -1", new_topic("ct-now-minus", placed={0: [1]}), timeout_ms=-1, validate_only=False),
    newest("timeout 0 refused", new_topic("bad!", 1, 1), timeout_ms=0, validate_only=False),
    newest("timeout 0 validate only", new_topic("ct-dry", 1, 1), timeout_ms=0),
    Case(
        "what timeout 0 made", "Metadata", 12,
        {"topics": [{"name": "ct-now-7"}], "allow_auto_topic_creation": False}, once_led=("ct-now-7", "ct-now-minus"),
    ),
    newest("timeout smallest", new_topic("ct-now-smallest", placed={0: [1]}), timeout_ms=-(2**31), validate_only=False),
    newest("timeout 0 of an existing one", new_topic("ct-counts-0", 1, 1), new_topic("ct-now-beside", placed={0: [1]}), timeout_ms=0, validate_only=False),
    # Two faults, the finer points.
    newest("exists before conflict", new_topic("ct-counts-0", 1, 1, placed={0: [1]})),
    newest("conflict before placement", new_topic("ct-order", 1, 1, placed={0: [1, 1]})),
    newest("partitions before replicas", new_topic("ct-order", -2, -2)),
    newest("name before collision", new_topic("ct_dotted.name!", 1, 1)),
    newest("collision before config", new_topic("ct_dotted_name", 1, 1, configs={"no.such.config": "1"})),
    newest("unknown config before bad value", new_topic("ct-order", 1, 1, configs=[("retention.ms", "x"), ("no.such", "1")])),
    newest("null config before unknown config", new_topic("ct-order", 1, 1, configs=[("no.such", "1"), ("segment.ms", None)])),
    newest("bad value before lags", new_topic("ct-order", 1, 1, configs={
        "min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1", "segment.ms": "0",
    })),
    newest("unequal before gap", new_topic("ct-order", placed={0: [1], 2: [1, 2]})),
    newest("duplicate beside others", new_topic("ct-dup", 1, 1), new_topic("ct-free", placed={0: [1]}), new_topic("ct-dup", 1, 1), new_topic("bad!", 1, 1)),
    newest("three times", *[new_topic("ct-dup", 1, 1)] * 3),
    newest("duplicate null config", new_topic("ct-order", 1, 1, configs=[("retention.ms", None), ("retention.ms", "1")])),
    newest("long illegal name", new_topic("n" * 20_000, 1, 1)),
    newest("longest string", new_topic("n" * 32_767, 1, 1)),
    # Internal topics are topics.
    newest("internal", new_topic("__transaction_state", 1, 1)),
]  # fmt: skip

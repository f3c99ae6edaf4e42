"""CreateTopics at an elected controller: checks in Kafka's order, fields by version, timeouts and
batches.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
import trio

from minicontroller.cluster.cache import EXPECTED_UPDATE_SECONDS
from minicontroller.cluster.znodes import layout
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.header import RequestOrigin
from minicontroller.protocol.messages.create_topics import CreatableTopic
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.handlers.asking import Client, broker, image, node_with
from tests.handlers.ruling import NO_ID, Ruling, codes, creating, is_blank, ruling, wanted
from tests.support.specs import APIS

VERSIONS = range(8)
LAST = 7
NEVER = {"no.such.config": "1"}
LONGEST = "n" * 249


@pytest.fixture(name="cluster")
async def cluster_fixture(autojump_clock: object) -> Any:
    async with ruling() as cluster:
        await cluster.make(wanted("there", placed={0: [1, 2]}), wanted("dotted.name", 1, 1))
        yield cluster


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_each_version_tells(cluster: Ruling, version: int) -> None:
    """K4-C5: the answer comes when every partition has a leader; counts and configs are there from
    v5 on, the id from v7 on.
    """
    topic = wanted("new", 2, 3, configs={"retention.ms": "1000"})
    (row,) = (await cluster.ask(creating(topic), version)).topics
    made = cluster.node.cache.image.topics["new"]
    assert (row.name, row.error_code, row.error_message) == ("new", 0, None if version >= 1 else "")
    assert made.is_complete
    assert (row.num_partitions, row.replication_factor) == ((2, 3) if version >= 5 else (-1, -1))
    assert row.topic_id == (made.topic_id if version >= 7 else NO_ID)
    configs = {config.name: (config.value, config.config_source) for config in row.configs}
    if version >= 5:
        assert configs["retention.ms"] == ("1000", 1)
        assert configs["segment.ms"] == ("604800000", 5)
        assert [config.name for config in row.configs] == sorted(configs)
        assert len(configs) == 36
        assert not any(config.read_only or config.is_sensitive for config in row.configs)
    else:
        assert configs == {}


async def test_where_configs_come_from(autojump_clock: object) -> None:
    """Configs from a node's file have source 4, those of the topic source 1, and the
    rest source 5.
    """
    async with ruling({"log.retention.ms": "5", "log.segment.bytes": "4096"}) as cluster:
        answer = await cluster.ask(creating(wanted("new", 1, 1, configs={"segment.bytes": "2048"})), LAST)
    told = {config.name: (config.value, config.config_source) for config in answer.topics[0].configs}
    assert [told[name] for name in ("retention.ms", "segment.bytes", "preallocate")] == [
        ("5", 4),
        ("2048", 1),
        ("false", 5),
    ]


async def test_what_is_written(cluster: Ruling) -> None:
    """A topic is written with its configs (even if there are none), assignment and states, and no
    notification.
    """
    await cluster.make(wanted("plain", placed={0: [2, 3], 1: [3, 1]}))
    assert await cluster.configs("topics/plain") == {}
    for path in (layout.topic_path("plain"), *(layout.partition_state_path("plain", number) for number in (0, 1))):
        assert await cluster.store.get(path) is not None
    assert [partition.replicas for partition in cluster.topic("plain").partitions] == [(2, 3), (3, 1)]
    assert [partition.leader for partition in cluster.topic("plain").partitions] == [2, 3]
    assert await cluster.notifications() == []


async def test_configs_left_behind_are_replaced(cluster: Ruling) -> None:
    """Configs that an earlier topic of the same name left below /config are replaced by those of
    the new topic.
    """
    await cluster.store.ensure("/config/topics/heir")
    assert codes(await cluster.ask(creating(wanted("heir", 1, 1, configs={"retention.ms": "1"})), LAST)) == [0]
    assert await cluster.configs("topics/heir") == {"retention.ms": "1"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_defaults(autojump_clock: object, version: int) -> None:
    """K4-C4d: -1 is the node's default, for each count by itself; as in Kafka in every version."""
    async with ruling({"num.partitions": "4", "default.replication.factor": "2"}) as cluster:
        await cluster.ask(creating(wanted("both"), wanted("partitions", -1, 3), wanted("replicas", 2, -1)), version)
        made = [cluster.topic(name) for name in ("both", "partitions", "replicas")]
    assert [(len(topic.partitions), topic.replication_factor) for topic in made] == [(4, 2), (4, 3), (2, 2)]


async def test_replicas_differ_and_leaders_walk_round(cluster: Ruling) -> None:
    """K4-C4a: a generated assignment has no broker twice in a partition, and over as many
    partitions as brokers each leads once.
    """
    await cluster.make(wanted("spread", 3, 3))
    partitions = cluster.topic("spread").partitions
    assert {partition.leader for partition in partitions} == {1, 2, 3}
    assert all(sorted(partition.replicas) == [1, 2, 3] for partition in partitions)


async def test_racks(autojump_clock: object) -> None:
    """Where every broker has a rack, the replicas of a partition lie in different ones."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    async with ruling(brokers=[broker(number, rack=rack) for number, rack in racks.items()]) as cluster:
        await cluster.make(wanted("spread", 8, 2))
        for partition in cluster.topic("spread").partitions:
            assert {racks[replica] for replica in partition.replicas} == {"a", "b"}


async def test_racks_for_some(autojump_clock: object) -> None:
    """If only some brokers have racks, the code is -1, as in Kafka, and the text names the others;
    with an assignment racks do not matter.
    """
    async with ruling(brokers=[broker(1, rack="a"), broker(2)]) as cluster:
        answer = await cluster.ask(creating(wanted("generated", 1, 1), wanted("placed", placed={0: [2]})), LAST)
    assert codes(answer) == [ErrorCode.UNKNOWN_SERVER_ERROR, 0]
    assert "broker.rack on brokers 2" in (answer.topics[0].error_message or "")


# ------------------ refusals, each in every version that can say it

EXISTS = wanted("there", 1, 1)

REFUSALS: list[tuple[str, CreatableTopic, ErrorCode, Sequence[str]]] = [
    ("exists", EXISTS, ErrorCode.TOPIC_ALREADY_EXISTS, ["'there'", "exists"]),
    ("null config", wanted("x", 1, 1, configs={"a": None, "b": None}), ErrorCode.INVALID_CONFIG, ["a,b"]),
    ("counts and placed", wanted("x", 1, 1, placed={0: [1]}), ErrorCode.INVALID_REQUEST, ["numPartitions"]),
    ("count and placed", wanted("x", 1, -1, placed={0: [1]}), ErrorCode.INVALID_REQUEST, ["numPartitions"]),
    ("factor and placed", wanted("x", -1, 1, placed={0: [1]}), ErrorCode.INVALID_REQUEST, ["numPartitions"]),
    ("zeroes and placed", wanted("x", 0, 0, placed={0: [1]}), ErrorCode.INVALID_REQUEST, ["numPartitions"]),
    ("no partitions", wanted("x", 0, 1), ErrorCode.INVALID_PARTITIONS, ["larger than 0"]),
    ("partitions -2", wanted("x", -2, 1), ErrorCode.INVALID_PARTITIONS, ["larger than 0"]),
    ("no replicas", wanted("x", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR, ["larger than 0"]),
    ("replicas -2", wanted("x", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR, ["larger than 0"]),
    ("too many replicas", wanted("x", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR, ["4", "3"]),
    ("most replicas", wanted("x", 1, 2**15 - 1), ErrorCode.INVALID_REPLICATION_FACTOR, ["32767", "3"]),
    ("empty name", wanted("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["empty"]),
    ("dot", wanted(".", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["'.'"]),
    ("two dots", wanted("..", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["'..'"]),
    ("250 characters", wanted(LONGEST + "n", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["249", LONGEST]),
    ("illegal character", wanted("a b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["'a b'", "ASCII"]),
    ("slash", wanted("../config", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["'../config'"]),
    ("not ascii", wanted("t\u00f6pic", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["ASCII"]),
    ("digits of others", wanted("\u0661", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["ASCII"]),
    ("line end", wanted("topic\n", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["ASCII"]),
    ("collision", wanted("dotted_name", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION, ["dotted_name", "dotted.name"]),
    ("unequal", wanted("x", placed={0: [1, 2], 1: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["same number"]),
    ("node twice", wanted("x", placed={0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["[1, 1]"]),
    ("gap", wanted("x", placed={0: [1], 2: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["consecutive"]),
    ("from 1", wanted("x", placed={1: [1], 2: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["consecutive"]),
    ("from -1", wanted("x", placed={-1: [1], 0: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["consecutive"]),
    ("unknown node", wanted("x", placed={0: [1, 9]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["[9]"]),
    ("negative node", wanted("x", placed={0: [-1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["[-1]"]),
    ("nowhere", wanted("x", placed={0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["no replicas"]),
    ("twice", wanted("x", placed=[(0, [1]), (0, [2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT, ["more than once"]),
    ("unknown config", wanted("x", 1, 1, configs=NEVER), ErrorCode.INVALID_CONFIG, ["no.such.config"]),
    ("bad value", wanted("x", 1, 1, configs={"retention.ms": "abc"}), ErrorCode.INVALID_CONFIG, ["retention.ms", "abc"]),
    ("out of range", wanted("x", 1, 1, configs={"segment.bytes": "13"}), ErrorCode.INVALID_CONFIG, ["segment.bytes", "14"]),
    (
        "values that contradict",
        wanted("x", 1, 1, configs={"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}),
        ErrorCode.INVALID_CONFIG,
        ["min.compaction.lag.ms", "max.compaction.lag.ms"],
    ),
    ("cluster metadata", wanted("__cluster_metadata", 1, 1), ErrorCode.INVALID_REQUEST, ["__cluster_metadata"]),
]  # fmt: skip


@pytest.mark.parametrize(("wish", "code", "said"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
async def test_refused(cluster: Ruling, wish: CreatableTopic, code: ErrorCode, said: Sequence[str]) -> None:
    """K4-C8a, K4-C4c, K4-3: each fault has its code in every version, and from v1 on a text that
    says what to mend, also if it is only validated; nothing is written.
    """
    before = cluster.image
    for version in VERSIONS:
        for validate_only in (False, True) if version >= 1 else (False,):
            (row,) = (await cluster.ask(creating(wish, validate_only=validate_only), version)).topics
            assert (row.name, row.error_code) == (wish.name, code)
            assert is_blank(row)
            if version >= 1:
                assert row.error_message is not None
                assert all(part in row.error_message for part in said), row.error_message
    assert cluster.image is before


ORDER: list[tuple[str, CreatableTopic, ErrorCode]] = [
    ("exists, null config", wanted("there", 1, 1, configs={"a": None}), ErrorCode.TOPIC_ALREADY_EXISTS),
    ("exists, conflict", wanted("there", 1, 1, placed={0: [1]}), ErrorCode.TOPIC_ALREADY_EXISTS),
    ("exists, counts", wanted("there", 0, 0), ErrorCode.TOPIC_ALREADY_EXISTS),
    ("null config, conflict", wanted("x", 1, 1, placed={0: [1]}, configs={"a": None}), ErrorCode.INVALID_CONFIG),
    ("null config, counts", wanted("x", 0, 0, configs={"a": None}), ErrorCode.INVALID_CONFIG),
    ("null config, name", wanted("bad!", 1, 1, configs={"a": None}), ErrorCode.INVALID_CONFIG),
    ("conflict, name", wanted("bad!", 1, 1, placed={0: [1]}), ErrorCode.INVALID_REQUEST),
    ("conflict, placement", wanted("x", 1, 1, placed={0: [1, 1]}), ErrorCode.INVALID_REQUEST),
    ("partitions, replicas", wanted("x", 0, 9), ErrorCode.INVALID_PARTITIONS),
    ("partitions, name", wanted("bad!", 0, 1), ErrorCode.INVALID_PARTITIONS),
    ("replicas, name", wanted("bad!", 1, 9), ErrorCode.INVALID_REPLICATION_FACTOR),
    ("replicas, collision", wanted("dotted_name", 1, 9), ErrorCode.INVALID_REPLICATION_FACTOR),
    ("name, placement", wanted("bad!", placed={0: [1, 1]}), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("name, config", wanted("bad!", 1, 1, configs=NEVER), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("collision, placement", wanted("dotted_name", placed={0: [1, 1]}), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("collision, config", wanted("dotted_name", 1, 1, configs=NEVER), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ("placement, config", wanted("x", placed={0: [1, 1]}, configs=NEVER), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ("cluster metadata, counts", wanted("__cluster_metadata", 0, 0), ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("wish", "code"), [case[1:] for case in ORDER], ids=[case[0] for case in ORDER])
async def test_two_faults(cluster: Ruling, wish: CreatableTopic, code: ErrorCode) -> None:
    """K4-C8b: of two faults, the one that Kafka finds first is reported."""
    assert codes(await cluster.ask(creating(wish), LAST)) == [code]


@pytest.mark.parametrize("version", VERSIONS)
async def test_named_twice(cluster: Ruling, version: int) -> None:
    """K4-C2a: every row of a name that stands twice is INVALID_REQUEST, before any other fault, and
    none of them is made; the others are.
    """
    wishes = [
        wanted("two", 1, 1),
        wanted("one", 1, 1),
        wanted("two", 0, 9),
        wanted("there", 1, 1),
        wanted("there", 1, 1),
    ]
    answer = await cluster.ask(creating(*wishes), version)
    refused = ErrorCode.INVALID_REQUEST
    assert [(row.name, row.error_code) for row in answer.topics] == [
        ("two", refused), ("one", 0), ("two", refused), ("there", refused), ("there", refused),
    ]  # fmt: skip
    assert {"one", "two"} & set(cluster.image.topics) == {"one"}


async def test_names_that_collide_in_one_batch(cluster: Ruling) -> None:
    """Of two names in a batch that collide, the first is created; the second is refused with a text
    that names the first.
    """
    answer = await cluster.ask(creating(wanted("a.b", 1, 1), wanted("a_b", 1, 1)), LAST)
    assert codes(answer) == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert "a.b" in (answer.topics[1].error_message or "")


@pytest.mark.parametrize("version", VERSIONS)
async def test_one_result_does_not_affect_another(cluster: Ruling, version: int) -> None:
    """K4-2: each topic has its own result, in the order of the request."""
    wishes = [wanted("b", 1, 1), wanted("bad!", 1, 1), wanted("a", 1, 1), wanted("there", 1, 1), wanted(LONGEST, 1, 1)]
    answer = await cluster.ask(creating(*wishes), version)
    assert [row.name for row in answer.topics] == ["b", "bad!", "a", "there", LONGEST]
    assert codes(answer) == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0, ErrorCode.TOPIC_ALREADY_EXISTS, 0]
    assert {"a", "b", LONGEST} <= set(cluster.image.topics)


@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing(cluster: Ruling, version: int) -> None:
    """A request without topics is answered without rows."""
    assert (await cluster.ask(creating(), version)).topics == []


async def test_a_config_named_twice(cluster: Ruling) -> None:
    """The last value of a key holds, as in Kafka; configs of Alter* are stricter."""
    await cluster.make(wanted("new", 1, 1, configs=[("retention.ms", "1"), ("retention.ms", "2")]))
    assert await cluster.configs("topics/new") == {"retention.ms": "2"}


async def test_internal_topics(cluster: Ruling) -> None:
    """The coordinators' topics are created like others, with the counts that are asked for."""
    await cluster.make(wanted("__consumer_offsets", 2, 1))
    assert len(cluster.topic("__consumer_offsets").partitions) == 2


# ------------------ validate_only


@pytest.mark.parametrize("version", range(1, 8))
async def test_validate_only(cluster: Ruling, version: int) -> None:
    """With validate_only the answer has the topic as it would be created, without an id; nothing is
    created, and the timeout does not matter.
    """
    for timeout_ms in (30_000, 0, -1):
        (row,) = (
            await cluster.ask(creating(wanted("dry", 2, 2), timeout_ms=timeout_ms, validate_only=True), version)
        ).topics
        assert (row.error_code, row.error_message, row.topic_id) == (0, None, NO_ID)
        assert (row.num_partitions, row.replication_factor) == ((2, 2) if version >= 5 else (-1, -1))
        assert len(row.configs) == (36 if version >= 5 else 0)
    assert "dry" not in cluster.image.topics
    assert await cluster.store.get(layout.topic_config_path("dry")) is None


async def test_validate_only_sees_its_batch(cluster: Ruling) -> None:
    """A batch that is only validated is judged as the batch itself would be."""
    answer = await cluster.ask(creating(wanted("a.b", 1, 1), wanted("a_b", 1, 1), validate_only=True), LAST)
    assert codes(answer) == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]


# ------------------ timeouts


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
async def test_no_time(cluster: Ruling, version: int, timeout_ms: int) -> None:
    """K4-C6: with a timeout of 0 faults are answered at once; valid topics are answered
    REQUEST_TIMED_OUT without a text, and are created.
    """
    answer = await cluster.ask(creating(wanted("soon", 1, 1), wanted("bad!", 1, 1), timeout_ms=timeout_ms), version)
    assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert not answer.topics[0].error_message
    assert (answer.topics[0].num_partitions, answer.topics[0].configs) == (-1, [])
    assert answer.topics[0].topic_id == (cluster.topic("soon").topic_id if version >= 7 else NO_ID)
    assert cluster.topic("soon").is_complete


async def test_in_time_and_not(autojump_clock: object) -> None:
    """K4-C7: at the timeout the topics that every node knows carry no error, the others
    REQUEST_TIMED_OUT; what was begun goes on.
    """
    async with ruling({"metadata.completion": "cluster"}) as cluster:
        await cluster.make(wanted("before", 1, 1))
        cluster.deaf.add(3)
        answer = await cluster.ask(creating(wanted("late", 1, 1), wanted("before", 1, 1), timeout_ms=100), LAST)
        assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.TOPIC_ALREADY_EXISTS]
        assert cluster.topic("late").is_complete


async def test_local_completion_waits_for_nobody_else(cluster: Ruling) -> None:
    """K4-C5, K4-6a: with metadata.completion=local (the default) a node that does not answer delays
    no creation.
    """
    cluster.deaf.update({2, 3})
    assert codes(await cluster.ask(creating(wanted("new", 3, 3)), LAST)) == [0]


ALICE = RequestOrigin("User:alice", "10.0.0.9", LAST)


async def create_by_way_of(cluster: Ruling, broker_id: int, name: str) -> int:
    """Create a topic through this node as a forwarding node does, and return the code; after a
    success, the node's reads wait for the change.
    """
    client = cluster.client(peer=True)
    request = creating(wanted(name, 1, 1), timeout_ms=1000)
    (code,) = codes(await client.ask(request, LAST, origin=msgspec.structs.replace(ALICE, received_node=broker_id)))
    if broker_id in cluster.nodes and code == 0:
        cluster.nodes[broker_id].cache.expect_update(client.update_number)
    return code


async def seen_at(cluster: Ruling, broker_id: int, name: str) -> int:
    """Return the code with which Metadata at this node answers for a topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    answer = await Client(cluster.nodes[broker_id], handlers=APIS).ask(request, 12)
    code: int = answer.topics[0].error_code
    return code


async def test_the_node_that_was_asked_shows_what_it_answered(autojump_clock: object) -> None:
    """K4-6a: with metadata.completion=local, a client that creates a topic through a node always
    finds it there afterwards.
    """
    async with ruling() as cluster:
        await cluster.make(wanted("before", 1, 1))
        for number in range(20):
            assert await create_by_way_of(cluster, 2, f"t-{number}") == 0
            assert await seen_at(cluster, 2, f"t-{number}") == 0
        assert not cluster.nodes[3].cache.is_behind
        assert await create_by_way_of(cluster, 99, "of a node that is gone") == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert await create_by_way_of(cluster, 99, "gone") == 0


async def test_a_node_that_is_told_nothing_answers_in_the_end(autojump_clock: object) -> None:
    """With metadata.completion=local a creation does not wait for the node that was asked; its
    readers do, and not for ever.
    """
    async with ruling() as cluster:
        await cluster.make(wanted("before", 1, 1))
        cluster.deaf.add(3)
        began = trio.current_time()
        assert await create_by_way_of(cluster, 3, "unheard") == 0
        assert trio.current_time() - began < 1
        assert await seen_at(cluster, 3, "unheard") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert trio.current_time() - began >= EXPECTED_UPDATE_SECONDS
        began = trio.current_time()
        assert await seen_at(cluster, 3, "unheard") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert trio.current_time() == began


async def test_cluster_completion_waits_for_every_node(autojump_clock: object) -> None:
    """K4-6a: with metadata.completion=cluster every registered node knows the topic when the answer
    comes.
    """
    async with ruling({"metadata.completion": "cluster"}) as cluster:
        await cluster.make(wanted("new", 3, 1))
        assert all(node.cache.image.topics["new"].is_complete for node in cluster.nodes.values())


async def test_a_topic_that_nobody_leads(cluster: Ruling, autojump_clock: object) -> None:
    """K4-C5: complete means led: where no replica can lead, the answer is REQUEST_TIMED_OUT, and
    the topic is there.
    """
    cluster.controller.brokers.begin_shutdown(3)
    answer = await cluster.ask(
        creating(wanted("orphan", placed={0: [3]}), wanted("led", placed={0: [1]}), timeout_ms=50), LAST
    )
    assert codes(answer) == [ErrorCode.REQUEST_TIMED_OUT, 0]
    assert [partition.leader for partition in cluster.topic("orphan").partitions] == [-1]
    assert codes(await cluster.ask(creating(wanted("orphan", 1, 1)), LAST)) == [ErrorCode.TOPIC_ALREADY_EXISTS]


async def test_a_controller_that_is_no_broker_gets_no_replicas() -> None:
    """A registration can say that it holds no replicas: it is neither counted nor chosen, every
    node knows that, and who names it is refused.
    """
    others = [msgspec.structs.replace(broker(3), holds_replicas=False), broker(4)]
    async with ruling(brokers=(broker(1), broker(2), *others)) as cluster:
        rows = [wanted("three", 8, 3), wanted("four", 1, 4), wanted("by-hand", placed={0: [1, 3]})]
        answer = await cluster.ask(creating(*rows), LAST)
        assert codes(answer) == [0, ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_REPLICA_ASSIGNMENT]
        assert {each for partition in cluster.topic("three").partitions for each in partition.replicas} == {1, 2, 4}
        for node in cluster.nodes.values():
            assert [each.holds_replicas for _, each in sorted(node.cache.image.brokers.items())] == [
                True, True, False, True,
            ]  # fmt: skip


# ------------------ who decides


@pytest.mark.parametrize("version", VERSIONS)
async def test_not_the_controller(version: int) -> None:
    """K4-C1: where nothing is forwarded, a node that is not the controller says so for every topic,
    before anything else.
    """
    node = node_with(image([broker(1), broker(2)], controller_id=2))
    answer = await Client(node, handlers=APIS).ask(creating(wanted("bad!", 0, 0), wanted("x", 1, 1)), version)
    assert codes(answer) == [ErrorCode.NOT_CONTROLLER] * 2
    assert {row.error_message for row in answer.topics} == {""}


# ------------------ what would be too much


@pytest.mark.parametrize("count", [2**31 - 1, 10**6, 75_000])
async def test_more_partitions_than_fit(cluster: Ruling, count: int) -> None:
    """A topic too large for a znode is refused before replicas are placed (Kafka runs out of
    memory), and the other topics are created.
    """
    for validate_only in (True, False):
        wishes = [wanted("huge", count, 3), wanted("new", 1, 1)]
        answer = await cluster.ask(creating(*wishes, validate_only=validate_only), LAST)
        assert codes(answer) == [ErrorCode.INVALID_PARTITIONS, 0]
        assert str(count) in (answer.topics[0].error_message or "")
    assert "huge" not in cluster.image.topics


async def test_a_znode_too_large(autojump_clock: object) -> None:
    """The store's own limit refuses a topic with too many replicas placed by hand, and nothing that
    is on its way is harmed.
    """
    async with ruling(brokers=[broker(1000)]) as cluster:
        wishes = [wanted("huge", placed={number: [1000] for number in range(62_000)}), wanted("new", 1, 1)]
        answer = await cluster.ask(creating(*wishes), LAST)
        assert codes(answer) == [ErrorCode.INVALID_REQUEST, 0]
        assert "bytes" in (answer.topics[0].error_message or "")
        assert set(cluster.image.topics) == {"new"}


async def test_the_longest_name(cluster: Ruling) -> None:
    """A name of the greatest length of a string is refused with a text that fits (Kafka fails to
    write the answer).
    """
    answer = await cluster.ask(creating(wanted("n" * 32_767, 1, 1), wanted("new", 1, 1)), LAST)
    assert codes(answer) == [ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    message = answer.topics[0].error_message or ""
    assert "nnn" in message
    assert message.endswith("longer than the max allowed length 249")

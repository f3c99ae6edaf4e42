"""Malformed znodes are ignored and logged, everything beside them works, and no node ends."""

import logging
from collections.abc import Mapping
from contextlib import suppress

import pytest
import trio

from minicontroller.cluster.entities import NO_LEADER, Broker, Endpoint
from minicontroller.cluster.errors import ConfigurationError
from minicontroller.cluster.znodes import layout
from minicontroller.cluster.znodes.configs import encode_config
from minicontroller.controller.node.cluster_paths import prepare
from minicontroller.controller.node.endpoints import registrable
from minicontroller.store.base import AccessDenied, Create, Delete, NodeMissing, SetData, Store, Watch
from minicontroller.store.memory import MemoryStore
from tests.store.worlds import MemoryWorld, World, on_zookeeper
from tests.support.config_znodes import notification
from tests.support.small_cluster import SmallCluster

DEEP = b'{"version":5,"endpoints":[],"x":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
BROKEN: Mapping[str, bytes | None] = {
    "/brokers/ids/nine": b"{}",
    "/brokers/ids/01": b'{"version":5,"endpoints":["PLAINTEXT://h:1"]}',
    "/brokers/ids/99999999999": b'{"version":5,"endpoints":["PLAINTEXT://h:1"]}',
    "/brokers/ids/90": None,
    "/brokers/ids/91": b"not JSON",
    "/brokers/ids/92": b'{"version":5,"endpoints":["A://h:1"],"listener_security_protocol_map":{"A":"QUIC"}}',
    "/brokers/ids/93": b'{"version":5,"endpoints":["PLAINTEXT://h:1"],"rack":"%s"}' % (b"r" * 40_000),
    "/brokers/ids/94": b'{"version":5,"endpoints":["PLAINTEXT://h:11111111111"]}',
    "/brokers/ids/95": b'{"version":5,"endpoints":["PLAINTEXT://h:70000"]}',
    "/brokers/ids/96": DEEP,
    "/brokers/ids/97": b'{"version":NaN}',
    "/brokers/ids/98": b'{"version":5,"endpoints":{"PLAINTEXT":1}}',
    "/brokers/ids/99": b'{"version":1,"host":"h","port":%s}' % (b"9" * 5_000),
    "/brokers/topics/a b": b'{"version":1,"partitions":{"0":[1]}}',
    f"/brokers/topics/{'n' * 300}": b'{"version":1,"partitions":{"0":[1]}}',
    "/brokers/topics/wild": b'{"version":1,"partitions":{"0":[99999999999]}}',
    "/brokers/topics/nan": b'{"version":1,"partitions":{"0":NaN}}',
    "/brokers/topics/null": None,
    "/config/topics/good": b'{"config":' + b"[" * 5_000,
    "/config/brokers/nine": b"[]",
    "/config/changes/config_change_9999999999": b'{"version":2,"entity_path":"topics/a//b"}',
    "/config/changes/odd": b'{"version":2,"entity_path":"topics/../.."}',
    "/admin/delete_topics/a b": None,
    "/isr_change_notification/odd": b'{"version":1,"partitions":[{"topic":"a/b","partition":99999999999}]}',
    "/log_dir_event_notification/odd": b'{"version":1,"broker":-99999999999}',
    "/admin/reassign_partitions": b'{"partitions":NaN}',
    "/admin/preferred_replica_election": b"\xff",
}
THREADS = "log.cleaner.threads"
WITH_A_CHILD = ("/isr_change_notification/odd", "/config/changes/odd", "/admin/delete_topics/a b")
"""They are given a child, so that nobody can remove them."""


async def write(other: Store) -> None:
    for path, data in BROKEN.items():
        await other.ensure(path.rpartition("/")[0])
        child = [Create(f"{path}/child")] if path in WITH_A_CHILD else []
        await other.commit([Create(path, data), *child])


async def take_away(other: Store) -> None:
    """Delete what the controller has not removed."""
    for path in BROKEN:
        for each in (f"{path}/child", path):
            with suppress(NodeMissing):
                await other.commit([Delete(each)])


async def serves(cluster: SmallCluster, topic: str) -> None:
    """Everything that is well formed is served."""
    assert await cluster.create(topic, partitions=3, replication_factor=2) == [0]
    assert await cluster.change_config(topic, "retention.ms", "77") == 0
    assert await cluster.delete(topic) == [0]
    topics = cluster.controller.image.topics
    assert {name for name, each in topics.items() if each.is_readable} <= {"first", "second", "third"}
    await cluster.controller.store.commit(
        [
            Create(path := layout.broker_config_path(layout.DEFAULT_ENTITY), encode_config({THREADS: "2"})),
            notification("brokers/<default>"),
        ]
    )
    nodes = [member.node for member in cluster.members.values()]
    await cluster.until(lambda: all(node.dynamic_configs.current.integer(THREADS) == 2 for node in nodes))
    await cluster.controller.store.commit(
        [
            Delete(path),
            notification("brokers/<default>"),
        ]
    )
    await cluster.until(lambda: all(node.dynamic_configs.current.integer(THREADS) == 1 for node in nodes))


async def storm(world: World, nursery: trio.Nursery) -> None:
    """Write malformed znodes before there is any node, while nodes run, and before another
    controller is elected.
    """
    other = await world.open()
    await write(other)
    cluster = SmallCluster(nursery, world)
    await cluster.start(1, 2)
    await cluster.until_quiet()
    await serves(cluster, "first")
    await take_away(other)
    await write(other)
    await serves(cluster, "second")
    await cluster.kill(cluster.controller.broker_id)
    await cluster.start(3, 4)
    await cluster.until_quiet()
    await serves(cluster, "third")


async def test_what_makes_no_sense_is_left_out(
    memory: MemoryWorld, nursery: trio.Nursery, autojump_clock: object
) -> None:
    """Registrations, topics, configs, marks and notifications that no Kafka would have written:
    before the start, while nodes run, at an election.
    """
    await storm(memory, nursery)


NOTIFICATIONS: Mapping[str, bytes | None] = {
    "/kafka-acl-changes/odd": b"orders",
    "/kafka-acl-extended-changes/odd": b'{"version":2,"resourceType":"TOPIC","name":"a","patternType":"PREFIXED"}',
    "/delegation_token/token_changes/odd": b"\xff",
    "/minicontroller/group_changes/odd": b"a\nb",
    **{path: data for path, data in BROKEN.items() if "_notification/" in path or "/changes/" in path},
}


async def test_the_log_names_each_notification_that_makes_no_sense(
    cluster: SmallCluster, other: Store, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """The log names an unreadable notification by its path, also where several kinds of
    notifications have the same name.
    """
    await other.commit([Create(path, data) for path, data in NOTIFICATIONS.items()])
    await trio.sleep(1)
    assert len(NOTIFICATIONS) == 8
    assert [path for path in NOTIFICATIONS if f"the notification {path} is " not in caplog.text] == []


@on_zookeeper
async def test_what_makes_no_sense_is_left_out_on_zookeeper(world: World, nursery: trio.Nursery) -> None:
    """Malformed znodes are ignored on a real ZooKeeper, too, which has path rules of its own."""
    await storm(world, nursery)


@pytest.mark.parametrize("data", [b"x", b"", b"-1", b"1_0", b" 7", b"2147483647", b"9" * 5_000, b"\xd9\xa1", None])
async def test_an_epoch_that_is_none(
    data: bytes | None,
    cluster: SmallCluster,
    other: Store,
    autojump_clock: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With an unreadable controller epoch no node can be elected and the log repeats the reason at
    intervals; once it is mended a node is elected. All nodes stay up.
    """
    await other.commit([SetData(layout.CONTROLLER_EPOCH, data)])
    cluster.controller.resign()
    with caplog.at_level(logging.WARNING):
        await trio.sleep(600)
    assert cluster.rulers() == []
    said = [record.getMessage() for record in caplog.records if "no epoch of a controller" in record.getMessage()]
    assert 3 <= len(said) <= 100
    await other.commit([SetData(layout.CONTROLLER_EPOCH, b"41")])
    await trio.sleep(60)
    await cluster.until_quiet()
    assert cluster.controller.epoch == 42
    assert await cluster.create("t") == [0]


@pytest.mark.parametrize("data", [b"x", b"[]", b'{"status":"off"}', b'{"status":99999999999}', b"{" * 5_000, None])
async def test_features_that_are_none(
    data: bytes | None, cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """An unreadable `/feature` prevents no election and is left as it is."""
    await other.commit([SetData(layout.FEATURE, data)])
    await cluster.elect_anew()
    entry = await other.get(layout.FEATURE)
    assert entry is not None
    assert entry.data == data
    assert await cluster.create("t") == [0]


@pytest.mark.parametrize("data", [b"x", b'{"leader":1,"leader_epoch":1,"isr":[1.5]}', b'{"leader":99999999999}', None])
async def test_a_state_that_is_none(
    data: bytes | None, cluster: SmallCluster, memory: MemoryWorld, other: Store, autojump_clock: object
) -> None:
    """If no node knows the state of a partition, and it is unreadable, the partition has no leader
    and its state is not overwritten; other partitions are served, and the topic can be deleted.
    """
    await cluster.create("broken", "whole", replication_factor=3)
    for broker_id in list(cluster.members):
        await cluster.kill(broker_id)
    path = layout.partition_state_path("broken", 0)
    await other.commit([SetData(path, data)])
    await cluster.start_in_turn(1, 2, 3)
    await trio.sleep(5)
    assert cluster.controller.image.topics["broken"].partitions[0].leader == NO_LEADER
    assert cluster.controller.image.topics["whole"].is_complete
    entry = await other.get(path)
    assert entry is not None
    assert (entry.data, entry.stat.version) == (data, 1)
    assert await cluster.delete("broken") == [0]
    await cluster.until(lambda: "/brokers/topics/broken" not in memory.tree.nodes)


async def test_a_state_that_is_none_is_written_where_an_unclean_election_is_allowed(
    cluster: SmallCluster, other: Store, autojump_clock: object
) -> None:
    """A partition whose state is unreadable gets a leader where unclean leader election
    is enabled.
    """
    await cluster.create("broken", replication_factor=3)
    await cluster.change_config("broken", "unclean.leader.election.enable", "true")
    for broker_id in list(cluster.members):
        await cluster.kill(broker_id)
    await other.commit([SetData(layout.partition_state_path("broken", 0), b"?")])
    await cluster.start_in_turn(1, 2, 3)
    await cluster.until(lambda: cluster.controller.image.topics["broken"].is_complete)


class StumblingStore(MemoryStore):
    """A store that fails in what a controller reads when it begins."""

    def __init__(self, world: "StumblingWorld") -> None:
        super().__init__(world.tree)
        self._world = world

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        if path == layout.DELETE_TOPICS and self._world.stumbles:
            raise self._world.fault
        return await super().children(path, watch)


class StumblingWorld(MemoryWorld):
    stumbles = False

    def __init__(self, fault: Exception) -> None:
        super().__init__()
        self.fault = fault

    async def open(self) -> Store:
        return StumblingStore(self)


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (ArithmeticError("a bug"), "an unexpected error ended this controller's epoch"),
        (AccessDenied("ZooKeeper does not let it"), "ended: ZooKeeper does not let it"),
    ],
)
async def test_an_exception_ends_the_term_and_not_the_node(
    fault: Exception, line: str, nursery: trio.Nursery, autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    """An unforeseen exception in a controller ends its term and not its node; another node is
    elected, and the failing one waits longer each time before it stands again. A znode that
    ZooKeeper lets nobody read is told in a line without a traceback.
    """
    world = StumblingWorld(fault)
    cluster = SmallCluster(nursery, world)
    await cluster.start(1, 2, 3)
    await cluster.until_quiet()
    controller = cluster.controller
    world.stumbles = True
    controller.resign()
    with caplog.at_level(logging.ERROR):
        await trio.sleep(600)
    endings = [
        record
        for record in caplog.records
        if line in record.getMessage() and (record.exc_info is None) == isinstance(fault, AccessDenied)
    ]
    assert 3 <= len(endings) <= 60
    assert controller not in cluster.rulers()
    world.stumbles = False
    await trio.sleep(60)
    await cluster.until_quiet()
    assert await cluster.create("t") == [0]


@pytest.mark.parametrize(
    "data", [b"x", b'{"version":"1","id":7}', b'{"version":"1","id":"%s"}' % (b"c" * 40_000), None]
)
async def test_a_cluster_without_a_name(data: bytes | None, memory: MemoryWorld) -> None:
    """A node does not start if the cluster id cannot be read, and says why."""
    store = await memory.open()
    await store.ensure("/cluster")
    await store.commit([Create(layout.CLUSTER_ID, data)])
    with pytest.raises(ConfigurationError, match=r"ZooKeeper holds no valid cluster id: /cluster/id"):
        await prepare(store)


@pytest.mark.parametrize(
    "broker",
    [
        Broker(1, (Endpoint("PLAINTEXT", "host", 9092),), rack="r" * 256),
        Broker(1, (Endpoint("PLAINTEXT", "h" * 256, 9092),)),
        Broker(1, (Endpoint("PLAINTEXT", "no host", 9092),)),
    ],
    ids=["rack", "length", "space"],
)
def test_nobody_registers_what_others_cannot_read(broker: Broker) -> None:
    """A configuration that would make such a registration is refused at the start."""
    assert registrable(Broker(1, (Endpoint("PLAINTEXT", "host", 9092),), rack="r" * 255)).rack == "r" * 255
    with pytest.raises(ConfigurationError, match="unreadable to other nodes"):
        registrable(broker)

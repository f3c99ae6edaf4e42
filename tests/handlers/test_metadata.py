"""Metadata: the topics, the fields of each version, and the errors of names, ids and
dead brokers.
"""

from typing import Any

import pytest

from minicontroller.cluster.entities import UNKNOWN_PARTITION
from minicontroller.cluster.image import Image
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.handlers.asking import CLUSTER_ID, Client, broker, image, led, node_with, see, topic, topic_id

VERSIONS = range(13)
LAST = 12
NOT_ASKED = -(2**31)
TOPIC_OPERATIONS = [3, 4, 5, 6, 7, 8, 10, 11]
CLUSTER_OPERATIONS = [5, 7, 8, 9, 10, 11, 12]

ORDERS, PAYMENTS = topic("orders", led(1, 2), led(2, 3)), topic("payments", led(3))
CLUSTER = image([broker(3), broker(1, rack="r1"), broker(2)], [ORDERS, PAYMENTS], controller_id=2)


def wanting(version: int, *names: str, **more: Any) -> MetadataRequest:
    """By name, and nothing made, as far as the version can say so."""
    if version >= 4:
        more.setdefault("allow_auto_topic_creation", False)
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)


def bits(field: int) -> list[int]:
    return [bit for bit in range(31) if field >> bit & 1]


def names(response: MetadataResponse) -> list[str | None]:
    return [each.name for each in response.topics]


def codes(response: MetadataResponse) -> dict[str | None, int]:
    return {each.name: each.error_code for each in response.topics}


@pytest.mark.parametrize("version", VERSIONS)
async def test_tells_brokers_controller_and_partitions(version: int) -> None:
    """K4-M2a: each version fills all of its fields, with brokers in the order of their ids."""
    answer = await Client(node_with(CLUSTER)).ask(wanting(version, "orders"), version)
    assert [(each.node_id, each.host, each.port) for each in answer.brokers] == [
        (1, "plaintext.host", 9100),
        (2, "plaintext.host", 9200),
        (3, "plaintext.host", 9300),
    ]
    assert [each.rack for each in answer.brokers] == ["r1" if version >= 1 else None, None, None]
    assert answer.controller_id == (2 if version >= 1 else -1)
    assert answer.cluster_id == (CLUSTER_ID if version >= 2 else None)
    (row,) = answer.topics
    assert (row.error_code, row.name, row.is_internal) == (0, "orders", False)
    assert row.topic_id == (topic_id("orders") if version >= 10 else bytes(16))
    assert [(each.error_code, each.partition_index, each.leader_id) for each in row.partitions] == [
        (0, 0, 1),
        (0, 1, 2),
    ]
    assert [each.leader_epoch for each in row.partitions] == [3 if version >= 7 else -1] * 2
    assert [(each.replica_nodes, each.isr_nodes, each.offline_replicas) for each in row.partitions] == [
        ([1, 2], [1, 2], []),
        ([2, 3], [2, 3], []),
    ]


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_topics(version: int) -> None:
    """K4-M1a: v0 asks for all topics with an empty list, later versions with null."""
    request = wanting(version)
    if version >= 1:
        request.topics = None
    answer = await Client(node_with(CLUSTER)).ask(request, version)
    assert names(answer) == ["orders", "payments"]


@pytest.mark.parametrize("version", VERSIONS[1:])
async def test_no_topics(version: int) -> None:
    """K4-M1b: from v1 on an empty list asks for no topics; the answer still has the brokers."""
    answer = await Client(node_with(CLUSTER)).ask(wanting(version), version)
    assert names(answer) == []
    assert len(answer.brokers) == 3


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_empty_cluster(version: int) -> None:
    """A node that knows no brokers answers without brokers and without a controller."""
    answer = await Client(node_with(Image())).ask(wanting(version), version)
    assert (answer.brokers, answer.topics, answer.controller_id) == ([], [], -1)
    assert answer.cluster_id == (CLUSTER_ID if version >= 2 else None)


async def test_a_controller_that_is_not_listed_is_not_told() -> None:
    """K4-X1a: clients wait in vain for a controller that they cannot find among the brokers: then
    there is none.
    """
    node = node_with(image([broker(1), broker(2, "INTERNAL")], controller_id=2))
    assert (await Client(node).ask(wanting(LAST), LAST)).controller_id == -1
    assert (await Client(node, listener="INTERNAL").ask(wanting(LAST), LAST)).controller_id == 2


async def test_brokers_stand_where_the_client_reaches_them() -> None:
    """The brokers' addresses are those of the listener at which the client asks."""
    both = [broker(1, "PLAINTEXT", "INTERNAL"), broker(2, "PLAINTEXT", "INTERNAL")]
    node = node_with(image(both))
    at_internal = await Client(node, listener="INTERNAL").ask(wanting(LAST), LAST)
    assert [(each.host, each.port) for each in at_internal.brokers] == [
        ("internal.host", 9101),
        ("internal.host", 9201),
    ]
    at_plaintext = await Client(node).ask(wanting(LAST), LAST)
    assert [(each.host, each.port) for each in at_plaintext.brokers] == [
        ("plaintext.host", 9100),
        ("plaintext.host", 9200),
    ]


async def test_a_topic_named_twice_is_told_once() -> None:
    """The names of a request are a set, as in Kafka."""
    answer = await Client(node_with(CLUSTER)).ask(wanting(LAST, "payments", "orders", "payments"), LAST)
    assert names(answer) == ["payments", "orders"]


@pytest.mark.parametrize("version", VERSIONS[4:])
async def test_unknown_and_illegal_names(version: int) -> None:
    """A name that does not exist is 3, one that never could is 17; both stand behind what was
    found.
    """
    request = wanting(version, "nobody", "orders", "bad name!", "", "__consumer_offsets")
    answer = await Client(node_with(CLUSTER)).ask(request, version)
    assert [(each.name, each.error_code) for each in answer.topics] == [
        ("orders", 0),
        ("nobody", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("bad name!", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__consumer_offsets", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert [each.is_internal for each in answer.topics] == [False, False, False, False, True]
    assert all(each.topic_id == bytes(16) and not each.partitions for each in answer.topics[1:])


@pytest.mark.parametrize("version", VERSIONS)
async def test_nothing_is_made_where_that_is_off(version: int) -> None:
    """Without auto.create.topics.enable a missing topic is 3 at once, also in v0 to v3, which
    always ask for it.
    """
    node = node_with(CLUSTER, {"auto.create.topics.enable": "false"})
    request = wanting(version, "nobody", **({"allow_auto_topic_creation": True} if version >= 4 else {}))
    assert codes(Client(node).ask_at_once(request, version)) == {"nobody": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


@pytest.mark.parametrize("version", VERSIONS)
async def test_internal_topics_are_marked(version: int) -> None:
    """K4-M2b: from v1 on is_internal is set for Kafka's own topics."""
    node = node_with(image([broker(1)], [topic("__consumer_offsets", led(1)), topic("mine", led(1))]))
    answer = await Client(node).ask(wanting(version, "__consumer_offsets", "mine"), version)
    assert [each.is_internal for each in answer.topics] == [version >= 1, False]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_dead_leader(version: int) -> None:
    """A partition without a live leader is answered LEADER_NOT_AVAILABLE with leader -1 and its
    present epoch.
    """
    headless = topic("headless", led(1, 4, leader=-1), led(4, 1))
    answer = await Client(node_with(image([broker(1)], [headless]))).ask(wanting(version, "headless"), version)
    partitions = answer.topics[0].partitions
    assert answer.topics[0].error_code == 0
    assert [(each.error_code, each.leader_id) for each in partitions] == [(ErrorCode.LEADER_NOT_AVAILABLE, -1)] * 2
    assert [each.leader_epoch for each in partitions] == [3 if version >= 7 else -1] * 2


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_dead_replica(version: int) -> None:
    """K4-M3a, K4-M3b: v0 leaves it out and says REPLICA_NOT_AVAILABLE; later versions keep its id
    and see no error.
    """
    halved = topic("halved", led(1, 4, isr=(1,)), led(1, 4), led(1))
    answer = await Client(node_with(image([broker(1)], [halved]))).ask(wanting(version, "halved"), version)
    found = [
        (each.error_code, each.leader_id, each.replica_nodes, each.isr_nodes) for each in answer.topics[0].partitions
    ]
    dead = ErrorCode.REPLICA_NOT_AVAILABLE
    if version == 0:
        assert found == [(dead, 1, [1], [1]), (dead, 1, [1], [1]), (0, 1, [1], [1])]
    else:
        assert found == [(0, 1, [1, 4], [1]), (0, 1, [1, 4], [1, 4]), (0, 1, [1], [1])]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_leader_at_another_listener(version: int) -> None:
    """A leader that lives but does not listen here is LISTENER_NOT_FOUND from v6 on,
    LEADER_NOT_AVAILABLE before.
    """
    node = node_with(image([broker(1), broker(2, "INTERNAL")], [topic("far", led(2, 1))]))
    (partition,) = (await Client(node).ask(wanting(version, "far"), version)).topics[0].partitions
    expected = ErrorCode.LISTENER_NOT_FOUND if version >= 6 else ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.error_code, partition.leader_id) == (expected, -1)


@pytest.mark.parametrize("version", VERSIONS)
async def test_offline_replicas(version: int) -> None:
    """From v5 on the answer has the replicas that the controller reports as offline."""
    node = node_with(image([broker(1)], [topic("t", led(1, 2, offline_replicas=(2,)))]))
    (partition,) = (await Client(node).ask(wanting(version, "t"), version)).topics[0].partitions
    assert partition.offline_replicas == ([2] if version >= 5 else [])


async def test_a_partition_nobody_told_of_is_left_out() -> None:
    """A partition that never had a leader is left out, and the topic's other partitions are not."""
    node = node_with(image([broker(1)], [topic("t", UNKNOWN_PARTITION, led(1))]))
    answer = await Client(node).ask(wanting(LAST, "t"), LAST)
    assert [each.partition_index for each in answer.topics[0].partitions] == [1]


@pytest.mark.parametrize("version", VERSIONS[8:])
async def test_operations_of_topics(version: int) -> None:
    """If asked for, each topic, also a missing one, has all its operations; otherwise the field
    says that they were not requested.
    """
    node = node_with(CLUSTER)
    asked = await Client(node).ask(
        wanting(version, "orders", "nobody", include_topic_authorized_operations=True), version
    )
    assert [bits(each.topic_authorized_operations) for each in asked.topics] == [TOPIC_OPERATIONS] * 2
    unasked = await Client(node).ask(wanting(version, "orders", "nobody"), version)
    assert [each.topic_authorized_operations for each in unasked.topics] == [NOT_ASKED] * 2


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_operations_of_the_cluster(version: int) -> None:
    """The cluster's operations can be asked for in v8 to v10."""
    client = Client(node_with(CLUSTER))
    asked = await client.ask(wanting(version, include_cluster_authorized_operations=True), version)
    assert bits(asked.cluster_authorized_operations) == CLUSTER_OPERATIONS
    assert (await client.ask(wanting(version), version)).cluster_authorized_operations == NOT_ASKED


def by_id(*ids: bytes, name: str | None = None) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=each, name=name) for each in ids], allow_auto_topic_creation=True
    )


async def test_by_id() -> None:
    """v12 finds topics by their ids; an unknown id comes first, with its id, without a name, and
    nothing is made for it.
    """
    nobody = b"\7" * 16
    answer = Client(node_with(CLUSTER)).ask_at_once(by_id(topic_id("payments"), nobody, topic_id("payments")), LAST)
    assert [(each.error_code, each.name, each.topic_id) for each in answer.topics] == [
        (ErrorCode.UNKNOWN_TOPIC_ID, None, nobody),
        (0, "payments", topic_id("payments")),
    ]


async def test_one_id_makes_it_a_request_by_ids() -> None:
    """Names beside an id are not looked at, neither its own nor another topic's."""
    request = by_id(topic_id("payments"), bytes(16), name="orders")
    assert names(Client(node_with(CLUSTER)).ask_at_once(request, LAST)) == ["payments"]


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("name", ["orders", None])
async def test_ids_and_null_names_too_early(version: int, name: str | None) -> None:
    """v10 and v11 have the fields and may not use them: 42 for the whole request,
    without brokers.
    """
    request = by_id(topic_id("orders") if name else bytes(16), name=name)
    answer = Client(node_with(CLUSTER)).ask_at_once(request, version)
    assert [(each.error_code, each.name) for each in answer.topics] == [(ErrorCode.INVALID_REQUEST, name or "")]
    assert (answer.brokers, answer.controller_id) == ([], -1)


async def test_neither_name_nor_id() -> None:
    """A row with neither name nor id is an error of the whole request, because Kafka
    fails on it.
    """
    answer = Client(node_with(CLUSTER)).ask_at_once(by_id(bytes(16)), LAST)
    assert [(each.error_code, each.name) for each in answer.topics] == [(ErrorCode.UNKNOWN_SERVER_ERROR, "")]
    assert (answer.brokers, answer.controller_id) == ([], -1)


async def test_the_answer_follows_the_image() -> None:
    """A change of a topic, of the brokers or of the controller is in the next answer; nothing kept
    hides it.
    """
    node = node_with(CLUSTER)
    client = Client(node)
    before = await client.ask(wanting(LAST, "orders"), LAST)
    moved = topic("orders", led(3, leader_epoch=9))
    see(node, image([broker(1), broker(3)], [moved], controller_id=3))
    after = await client.ask(wanting(LAST, "orders", "payments"), LAST)
    assert (len(before.brokers), before.controller_id) == (3, 2)
    assert ([each.node_id for each in after.brokers], after.controller_id) == ([1, 3], 3)
    assert codes(after) == {"orders": 0, "payments": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert [(each.leader_id, each.leader_epoch) for each in after.topics[0].partitions] == [(3, 9)]

"""UpdateMetadata: how a node learns the cluster - brokers replaced, partitions merged - in every
version.
"""

import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest

from minicontroller.cluster.entities import LEADER_DURING_DELETE
from minicontroller.controller.active.control_requests import CZXID_TAG, RECALL_TAG
from minicontroller.controller.active.recall import topics_told
from minicontroller.controller.node.node import Node
from minicontroller.protocol.error_codes import ErrorCode
from minicontroller.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from tests.handlers.asking import BROKER_EPOCH, Client, led, told_node, topic, topic_id
from tests.support.specs import APIS

VERSIONS = range(1, 9)
"""From v1 on brokers have endpoints; v0 is asked by itself."""
LAST = 8


@pytest.fixture(name="node")
def node_fixture() -> Node:
    return told_node(topic("old", led(1), led(2)))


def state(index: int, leader: int, **how: Any) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=index,
        leader=leader,
        leader_epoch=7,
        isr=[1, 2],
        replicas=[1, 2],
        zk_version=9,
        controller_epoch=4,
        **how,
    )


def telling(
    version: int,
    topics: Sequence[tuple[str, Sequence[UpdateMetadataPartitionState]]] = (),
    brokers: Sequence[int] = (1, 2),
    **how: Any,
) -> UpdateMetadataRequest:
    request = UpdateMetadataRequest(**{"controller_id": 2, "controller_epoch": 5, **how})
    for name, states in topics:
        if version < 5:
            for each in states:
                each.topic_name = name
            request.ungrouped_partition_states += states
        else:
            known = topic_id(name) if version >= 7 else bytes(16)
            request.topic_states.append(
                UpdateMetadataTopicState(topic_name=name, topic_id=known, partition_states=list(states))
            )
    for number in brokers:
        if version == 0:
            request.live_brokers.append(UpdateMetadataBroker(id=number, v0_host=f"host-{number}", v0_port=9092))
            continue
        endpoint = UpdateMetadataEndpoint(port=9090 + number, host=f"host-{number}", security_protocol=0)
        if version >= 3:
            endpoint.listener = "OUTSIDE"
        rack = f"rack-{number}" if version >= 2 else None
        request.live_brokers.append(UpdateMetadataBroker(id=number, endpoints=[endpoint], rack=rack))
    return request


async def code_of(node: Node, request: UpdateMetadataRequest, version: int, *, peer: bool = True) -> int:
    code: int = (await Client(node, handlers=APIS, peer=peer).ask(request, version)).error_code
    return code


@pytest.mark.parametrize("version", VERSIONS)
async def test_brokers_are_replaced(node: Node, version: int) -> None:
    """The brokers are replaced by those of the request, also if it has no topics; v1 and v2 name
    listeners by their protocols.
    """
    assert await code_of(node, telling(version, brokers=[2, 3], controller_id=3, controller_epoch=6), version) == 0
    seen = node.cache.image
    assert (seen.controller_id, seen.controller_epoch) == (3, 6)
    assert set(seen.brokers) == {2, 3}
    ((endpoint,), rack) = (seen.brokers[3].endpoints, seen.brokers[3].rack)
    assert (endpoint.listener, endpoint.host, endpoint.port) == (
        "OUTSIDE" if version >= 3 else "PLAINTEXT",
        "host-3",
        9093,
    )
    assert rack == ("rack-3" if version >= 2 else None)
    assert set(seen.topics) == {"old"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_partitions_are_merged(node: Node, version: int) -> None:
    """Partitions in the request replace the known ones and all others stay; the topic id comes from
    v7 on.
    """
    offline = {"offline_replicas": [2]} if version >= 4 else {}
    request = telling(version, [("old", [state(1, 1, **offline)]), ("new", [state(0, 2)])])
    assert await code_of(node, request, version) == 0
    old, new = (node.cache.image.topics[name] for name in ("old", "new"))
    assert [(each.leader, each.leader_epoch, each.partition_epoch) for each in old.partitions] == [(1, 3, 0), (1, 7, 9)]
    assert old.partitions[1].offline_replicas == ((2,) if version >= 4 else ())
    assert (new.partitions[0].replicas, new.partitions[0].isr, new.partitions[0].leader) == ((1, 2), (1, 2), 2)
    assert new.topic_id == (topic_id("new") if version >= 7 else bytes(16))


@pytest.mark.parametrize("version", VERSIONS)
async def test_deleted_topics(node: Node, version: int) -> None:
    """A leader of -2 takes the topic away."""
    gone = [state(index, LEADER_DURING_DELETE) for index in (0, 1)]
    assert await code_of(node, telling(version, [("old", gone)]), version) == 0
    assert set(node.cache.image.topics) == set()


async def test_a_topic_made_anew(node: Node) -> None:
    """A known name with another id is a new topic, and nothing of the old one is left."""
    request = telling(LAST, [("old", [state(0, 2)])])
    request.topic_states[0].topic_id = b"\3" * 16
    assert await code_of(node, request, LAST) == 0
    made = node.cache.image.topics["old"]
    assert (made.topic_id, len(made.partitions)) == (b"\3" * 16, 1)


async def test_the_transaction_that_created_a_topic(node: Node) -> None:
    """A tag tells it. A controller that does not know the tag keeps it for the same topic, and not
    for another one of its name.
    """
    request = telling(LAST, [("old", [state(0, 2)])])
    rows = request.topic_states
    seen = []
    for tag in (None, b"\0" * 7 + b"\5", b"?", None):
        rows[0].unknown_tags = None if tag is None else {CZXID_TAG: tag}
        assert await code_of(node, request, LAST) == 0
        seen.append(node.cache.image.topics["old"].czxid)
    rows[0].topic_id = b"\3" * 16
    assert await code_of(node, request, LAST) == 0
    assert [*seen, node.cache.image.topics["old"].czxid] == [-1, 5, 5, 5, -1]


async def test_what_the_node_remembers(node: Node) -> None:
    """A tag asks for topics by name; the response tells those that the node knows, with ids, and
    the request is carried out, too. A value that is no list of names is refused.
    """
    client = Client(node, handlers=APIS, peer=True)
    request = telling(LAST, brokers=[1, 2, 3])
    request.unknown_tags = {RECALL_TAG: b'["old","new","old"]'}
    (told,) = topics_told(await client.ask(request, LAST), max_topic_bytes=1_000_000)
    assert (told.name, told.topic_id) == ("old", topic_id("old"))
    assert [each.leader for each in told.partitions] == [1, 2]
    assert set(node.cache.image.brokers) == {1, 2, 3}
    for value in (b"", b"?", b'{"old":1}', b"[1]", b"null"):
        request.unknown_tags = {RECALL_TAG: value}
        answer = await client.ask(request, LAST)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert topics_told(answer, max_topic_bytes=1_000_000) == []


async def test_a_topic_without_an_id(node: Node) -> None:
    """An update without an id clears a topic's id and keeps its partitions."""
    request = telling(LAST, [("old", [state(0, 2)])])
    request.topic_states[0].topic_id = bytes(16)
    assert await code_of(node, request, LAST) == 0
    seen = node.cache.image.topics["old"]
    assert (seen.topic_id, [each.leader for each in seen.partitions]) == (bytes(16), [2, 2])


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_past(node: Node, version: int) -> None:
    """K590-2c: a controller of the past, or one who means an earlier life of the node (v5 on),
    changes nothing.
    """
    before = node.cache.image
    stale = telling(version, brokers=[9], controller_epoch=4)
    assert await code_of(node, stale, version) == ErrorCode.STALE_CONTROLLER_EPOCH
    if version >= 5:
        earlier = telling(version, brokers=[9], broker_epoch=BROKER_EPOCH - 1)
        assert await code_of(node, earlier, version) == ErrorCode.STALE_BROKER_EPOCH
        for epoch in (BROKER_EPOCH, BROKER_EPOCH + 1, -1):
            assert await code_of(node, telling(version, broker_epoch=epoch), version) == 0
    else:
        assert node.cache.image is before
    assert set(node.cache.image.brokers) == {1, 2}


@pytest.mark.parametrize("version", VERSIONS)
async def test_who_is_no_node(node: Node, version: int) -> None:
    """Only nodes of the cluster may send UpdateMetadata."""
    before = node.cache.image
    assert (
        await code_of(node, telling(version, brokers=[9]), version, peer=False)
        == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    assert node.cache.image is before


async def test_the_oldest_form(node: Node) -> None:
    """In v0 a broker has one address, its PLAINTEXT endpoint; racks come from v2 on."""
    assert await code_of(node, telling(0, [("new", [state(0, 2)])], brokers=[2]), 0) == 0
    (endpoint,) = node.cache.image.brokers[2].endpoints
    assert (endpoint.listener, endpoint.host, endpoint.port) == ("PLAINTEXT", "host-2", 9092)
    assert node.cache.image.brokers[2].rack is None
    assert node.cache.image.topics["new"].is_complete


async def test_brokers_told_again(node: Node) -> None:
    """An update with equal brokers keeps the same object, so that cached answers stay valid."""
    await code_of(node, telling(LAST), LAST)
    brokers = node.cache.image.brokers
    await code_of(node, telling(LAST), LAST)
    assert node.cache.image.brokers is brokers


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("index", [-1, -(2**31), 20_000_000, 2**31 - 1])
async def test_a_partition_that_no_topic_can_have(node: Node, version: int, index: int) -> None:
    """INVALID_REQUEST, at the cost of reading it, and nothing of the request is believed."""
    before = node.cache.image
    tracemalloc.start()
    request = telling(version, [("old", [state(0, 2)]), ("new", [state(index, 1)])], brokers=[9])
    assert await code_of(node, request, version) == ErrorCode.INVALID_REQUEST
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000
    assert node.cache.image is before


async def test_a_partition_far_out(node: Node) -> None:
    """A partition with a high number, whose lower ones never had leaders, is accepted up to the
    number of partitions that a topic in the store can have.
    """
    assert await code_of(node, telling(LAST, [("new", [state(30_000, 1)])]), LAST) == ErrorCode.NONE
    assert len(node.cache.image.topics["new"].partitions) == 30_001

"""A delta is data, and an image shows it once it was applied, and not before."""

from collections.abc import Mapping

import msgspec
import pytest
from immutables import Map

from minicontroller.cluster.delta import (
    NO_CHANGE,
    ConfigsLeft,
    Delta,
    EntitiesChanged,
    OutsideOfTheImage,
    PartitionsChanged,
    ReplicasLost,
    TopicBecomes,
    TopicConfigured,
    TopicIdentified,
    TopicMarked,
    TopicRemoved,
    broker_configs,
)
from minicontroller.cluster.entities import AclEntries, EntityConfigs, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.protocol.acls import AccessControlEntry, AclOperation, PermissionType

LED = Partition(replicas=(1, 2), leader=1, leader_epoch=3, isr=(1, 2), partition_epoch=5)
ORDERS = Topic("orders", b"orders".ljust(16, b"0"), (LED, LED), version=2, config_version=0)
OTHER = msgspec.structs.replace(ORDERS, topic_id=bytes(15) + b"1")
MOVED = msgspec.structs.replace(LED, leader=2, leader_epoch=4, partition_epoch=6)
IMAGE = Image().with_topic(ORDERS)
ENTRY = AccessControlEntry("User:alice", "*", AclOperation.READ, PermissionType.ALLOW)
ACL_PATH = "/kafka-acl/Topic/orders"

CHANGES: Mapping[str, Delta] = {
    "a new topic": TopicBecomes.of(Topic("new", b"new".ljust(16, b"0"), (LED,))),
    "removal": TopicRemoved("orders", ORDERS.topic_id),
    "a deletion marker": TopicMarked("orders", ORDERS.topic_id),
    "an id": TopicIdentified("orders", ORDERS.topic_id, bytes(range(16)), version=3),
    "configs of a topic": TopicConfigured("orders", ORDERS.topic_id, EntityConfigs(Map({"retention.ms": "1"}), 1)),
    "an election": PartitionsChanged("orders", ORDERS.topic_id, {1: MOVED}),
    "growth": PartitionsChanged("orders", ORDERS.topic_id, {2: LED}, version=3, count=3, has_parent=True),
    "ACLs": EntitiesChanged({ACL_PATH: AclEntries(frozenset({ENTRY}), 0)}),
    "configs of a broker": broker_configs("brokers/1", EntityConfigs(Map({"log.retention.ms": "1"}), 0)),
}


@pytest.mark.parametrize("delta", CHANGES.values(), ids=CHANGES)
def test_an_image_holds_a_delta_once_it_is_applied(delta: Delta) -> None:
    after = delta.apply(IMAGE)
    assert not delta.holds(IMAGE)
    assert delta.holds(after)
    assert delta.apply(after) == after


@pytest.mark.parametrize("name", [name for name, delta in CHANGES.items() if delta.changed_topic == "orders"])
def test_a_delta_is_not_about_another_topic_of_the_same_name(name: str) -> None:
    """A topic that was deleted and created again shows no change of the former one, and is not
    changed by it, and overtakes whoever waits for it; a deletion of the former one is done.
    """
    delta, image = CHANGES[name], Image().with_topic(OTHER)
    if name == "a deletion marker":
        assert delta.holds(image) and delta.is_complete(image)
    else:
        assert delta.is_overtaken(image)
    if name != "removal":
        assert delta.apply(image) == image


def test_a_change_is_complete_when_a_node_shows_it() -> None:
    created, leaderless = CHANGES["a new topic"], Topic("new", b"new".ljust(16, b"0"), (Partition((1,)),))
    assert not created.is_complete(IMAGE)
    assert not created.is_complete(IMAGE.with_topic(leaderless))
    assert created.is_complete(created.apply(IMAGE))
    for name in ("growth", "an election"):
        assert not CHANGES[name].is_complete(IMAGE)
        assert CHANGES[name].is_complete(CHANGES[name].apply(IMAGE))
    marked = CHANGES["a deletion marker"]
    assert not marked.is_complete(marked.apply(IMAGE))  # a node forgets the topic instead
    assert marked.is_complete(Image())


def test_a_topic_that_is_marked_overtakes_its_other_changes() -> None:
    marked = CHANGES["a deletion marker"].apply(IMAGE)
    assert CHANGES["growth"].is_overtaken(marked)
    assert not CHANGES["growth"].is_overtaken(IMAGE)
    assert not CHANGES["a deletion marker"].is_overtaken(marked)


def test_lost_replicas_are_those_of_one_topic() -> None:
    lost = ReplicasLost("orders", ORDERS.topic_id, {1: (2,)})
    assert [each.lost_replicas for each in lost.apply(IMAGE).topics["orders"].partitions] == [(), (2,)]
    assert lost.apply(Image().with_topic(OTHER)).topics["orders"] == OTHER


def test_leftover_configs_are_known_until_they_are_gone() -> None:
    left = ConfigsLeft("gone", 4).apply(IMAGE)
    assert left.leftover_configs["gone"] == 4
    assert "gone" not in ConfigsLeft("gone", -1).apply(left).leftover_configs


def test_what_no_image_shows_changes_none() -> None:
    assert NO_CHANGE.apply(IMAGE) is IMAGE
    assert OutsideOfTheImage().apply(IMAGE) is IMAGE
    assert not OutsideOfTheImage().holds(IMAGE)

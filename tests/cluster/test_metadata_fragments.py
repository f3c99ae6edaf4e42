"""Metadata's fragments: byte for byte what would be encoded without them, and no more work than
what changed.
"""

from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minicontroller.cluster.entities import Broker, Endpoint, Partition, Topic
from minicontroller.cluster.image import Image
from minicontroller.network.serving.fragments import MAX_VARIANTS, MetadataFragments, Variant, VariantFragments
from minicontroller.network.serving.kept_rows import SLACK
from minicontroller.protocol.compiler import encoder
from minicontroller.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

VERSIONS = range(13)
LISTENERS = ("PLAINTEXT", "INTERNAL")
ALL_TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))

broker_ids = st.integers(1, 5)
id_lists = st.lists(broker_ids, min_size=1, max_size=4, unique=True)


@st.composite
def partitions(draw: Any) -> Partition:
    replicas = draw(id_lists)
    return Partition(
        replicas=tuple(replicas),
        leader=draw(st.sampled_from([-1, *replicas])),
        leader_epoch=draw(st.integers(0, 99)),
        isr=tuple(draw(st.lists(st.sampled_from(replicas), unique=True))),
        partition_epoch=draw(st.integers(0, 9)),
        offline_replicas=tuple(draw(st.lists(st.sampled_from(replicas), unique=True, max_size=1))),
    )


topics = st.builds(
    Topic,
    name=st.sampled_from(["orders", "payments", "__consumer_offsets", "a.b", "ü"]),
    topic_id=st.integers(1, 2**128 - 1).map(lambda number: number.to_bytes(16)),
    partitions=st.lists(partitions(), max_size=4).map(tuple),
)
endpoints = st.builds(
    Endpoint,
    listener=st.sampled_from(LISTENERS),
    host=st.sampled_from(["a.host", "::1", ""]),
    port=st.integers(0, 65_535),
)
brokers = st.builds(
    Broker,
    broker_ids,
    st.lists(endpoints, unique_by=lambda each: each.listener).map(tuple),
    rack=st.none() | st.text(max_size=3),
)


images = st.builds(
    lambda nodes, chosen: Image().with_brokers(nodes).with_topics(chosen),
    st.lists(brokers, max_size=4, unique_by=lambda each: each.broker_id),
    st.lists(topics, max_size=4, unique_by=(lambda each: each.name, lambda each: each.topic_id)),
)


def plain_topic(image: Image, topic: Topic, variant: Variant) -> MetadataResponseTopic:
    """Build Metadata's answer for a topic without any caching."""
    here = {broker.broker_id for broker in image.brokers.values() if broker.endpoint(variant.listener)}
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name.startswith("__"),
        partitions=[
            plain_partition(image, here, index, partition, variant.version)
            for index, partition in enumerate(topic.partitions)
        ],
        topic_authorized_operations=ALL_TOPIC_OPERATIONS if variant.with_operations else -(2**31),
    )


def plain_partition(
    image: Image, here: set[int], index: int, partition: Partition, version: int
) -> MetadataResponsePartition:
    replicas, isr = list(partition.replicas), list(partition.isr)
    if version == 0:
        replicas, isr = [each for each in replicas if each in here], [each for each in isr if each in here]
    if partition.leader not in here:
        code = 72 if partition.leader in image.brokers and version >= 6 else 5
    else:
        code = 9 if len(replicas) + len(isr) < len(partition.replicas) + len(partition.isr) else 0
    return MetadataResponsePartition(
        error_code=code,
        partition_index=index,
        leader_id=partition.leader if partition.leader in here else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=list(partition.offline_replicas),
    )


def plain_answer(image: Image, variant: Variant) -> bytes:
    reachable = [
        (broker, endpoint)
        for _, broker in sorted(image.brokers.items())
        if (endpoint := broker.endpoint(variant.listener)) is not None
    ]
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=broker.broker_id, host=at.host, port=at.port, rack=broker.rack)
            for broker, at in reachable
        ],
        cluster_id="c",
        topics=[plain_topic(image, image.topics[name], variant) for name in sorted(image.topics)],
    )
    return encoder(MetadataResponse, variant.version)(response)


def joined_answer(fragments: VariantFragments, version: int) -> bytes:
    response = MetadataResponse(cluster_id="c")
    response.brokers = list[Any](fragments.brokers)
    response.topics = cast("Any", fragments.all_topics())
    return encoder(MetadataResponse, version)(response)


@given(st.lists(images, min_size=1, max_size=3), st.sampled_from(VERSIONS), st.sampled_from(LISTENERS), st.booleans())
@settings(max_examples=80)
def test_fragments_are_what_the_encoder_writes(
    seen: list[Image], version: int, listener: str, with_operations: bool
) -> None:
    """An answer made of cached fragments equals, byte for byte, one that is encoded as a whole."""
    variant = Variant(version, listener, with_operations and version >= 8)
    kept = MetadataFragments()
    for image in [*seen, seen[0]]:
        fragments = kept.of(image, variant)
        assert joined_answer(fragments, version) == plain_answer(image, variant)


def numbered(count: int) -> Image:
    node = Broker(1, (Endpoint("PLAINTEXT", "h", 9092),))
    return (
        Image()
        .with_brokers([node])
        .with_topics(
            Topic(f"t{number}", topic_id=number.to_bytes(16), partitions=(Partition((1,), 1),))
            for number in range(count)
        )
    )


VARIANT = Variant(12, "PLAINTEXT", with_operations=False)


def test_a_change_of_one_topic_costs_one_fragment() -> None:
    """After a change of one topic the others' fragments are the same objects as before."""
    kept, image = MetadataFragments(), numbered(10)
    before = {name: kept.of(image, VARIANT).topic(each) for name, each in image.topics.items()}
    moved = image.with_topics([Topic("t3", topic_id=b"n" * 16, partitions=(Partition((1,), 1, 8),))])
    after = {name: kept.of(moved, VARIANT).topic(each) for name, each in moved.topics.items()}
    assert [name for name in before if before[name] is not after[name]] == ["t3"]


def test_equal_brokers_keep_the_fragments() -> None:
    """An UpdateMetadata with equal brokers keeps the cached fragments."""
    kept, image = MetadataFragments(), numbered(2)
    before = kept.of(image, VARIANT).topic(image.topics["t0"])
    again = image.with_brokers([Broker(1, (Endpoint("PLAINTEXT", "h", 9092),))])
    assert again.brokers is not image.brokers
    assert kept.of(again, VARIANT).topic(again.topics["t0"]) is before


def test_other_brokers_drop_the_fragments() -> None:
    """A broker that comes can be the one that a partition lacked."""
    kept, image = MetadataFragments(), numbered(1)
    before = kept.of(image, VARIANT).topic(image.topics["t0"])
    alone = image.with_brokers([])
    assert kept.of(alone, VARIANT).topic(alone.topics["t0"]) != before


@pytest.mark.parametrize("asked_for_all", [True, False])
def test_deleted_topics_are_forgotten(asked_for_all: bool) -> None:
    """However many topics come and go, the fragments stay few."""
    kept = MetadataFragments()
    image = numbered(0)
    for number in range(5 * SLACK):
        name = f"t{number}"
        image = image.with_topics([Topic(name, partitions=(Partition((1,), 1),))], [f"t{number - 1}"])
        fragments = kept.of(image, VARIANT)
        fragments.topic(image.topics[name])
        if asked_for_all:
            fragments.all_topics()
    assert kept.of(image, VARIANT).size <= SLACK + 2


def test_dialects_are_bounded() -> None:
    """A client that asks in every version and at every listener does not fill the memory."""
    kept, image = MetadataFragments(), numbered(1)
    for version in VERSIONS:
        for listener in LISTENERS:
            kept.of(image, Variant(version, listener, with_operations=False)).all_topics()
    assert len(kept) == MAX_VARIANTS


def test_an_image_is_listed_once() -> None:
    """All topics of the same image are the same list: nothing is done twice."""
    kept, image = MetadataFragments(), numbered(3)
    assert kept.of(image, VARIANT).all_topics() is kept.of(image, VARIANT).all_topics()
    assert len(kept.of(image, VARIANT).all_topics()) == 3

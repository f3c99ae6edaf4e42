"""confluent-kafka (librdkafka) looks at the cluster and its groups."""

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from tests.clients.test_confluent_topics import Create, placed, refusal
from tests.support.cluster import Cluster, controller_id
from tests.support.waiting import until


def test_describes_the_cluster(confluent: AdminClient, cluster: Cluster) -> None:
    """The client sees all nodes at their addresses, the controller, and an id (K4-X1a)."""
    seen = confluent.describe_cluster(request_timeout=60).result()
    assert {node.id: f"{node.host}:{node.port}" for node in seen.nodes} == dict(cluster.addresses)
    assert seen.controller.id == controller_id(cluster)
    assert len(seen.cluster_id) == 22


def test_tells_what_one_may_do(confluent: AdminClient) -> None:
    """Without an authorizer every client may do all seven operations on the cluster."""
    seen = confluent.describe_cluster(include_authorized_operations=True, request_timeout=60).result()
    assert len(seen.authorized_operations) == 7
    assert AclOperation.ALTER in seen.authorized_operations


def test_describes_topics(confluent: AdminClient, create: Create, topic: str) -> None:
    """A topic is described with id, partitions, leaders and operations; an unknown one is refused
    by itself.
    """
    create(placed(topic, [2, 3]))
    wished = TopicCollection([topic, f"{topic}-no"])
    futures = confluent.describe_topics(wished, include_authorized_operations=True, request_timeout=60)
    seen = futures[topic].result()
    (partition,) = seen.partitions
    assert (partition.leader.id, [node.id for node in partition.replicas]) == (2, [2, 3])
    assert not seen.is_internal
    assert len(seen.authorized_operations) == 8
    assert refusal(futures[f"{topic}-no"]).code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_asking_for_a_topic_by_name_makes_it(confluent: AdminClient, topic: str) -> None:
    """Librdkafka's question for one topic carries the flag for automatic creation: it is made, and
    then led.
    """
    until(lambda: list(confluent.list_topics(topic, timeout=60).topics[topic].partitions), right=lambda got: got == [0])


def test_lists_no_groups(confluent: AdminClient) -> None:
    """There are no groups, and no node fails to say so; filters are taken."""
    for options in ({}, {"states": {ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY}}):
        listed = confluent.list_consumer_groups(request_timeout=60, **options).result()
        assert (listed.valid, listed.errors) == ([], [])


@pytest.mark.usefixtures("coordinated")
def test_describes_a_group_that_does_not_exist(confluent: AdminClient, topic: str) -> None:
    """A group without members is described as dead, by its coordinator (K590-7)."""
    seen = confluent.describe_consumer_groups([topic], request_timeout=60)[topic].result()
    assert seen.state == ConsumerGroupState.DEAD
    assert seen.members == []


@pytest.mark.parametrize("node", [1, 2, 3])
def test_starts_from_any_node(cluster: Cluster, node: int) -> None:
    """A client that knows one node only learns of all the others from it."""
    client = AdminClient({"bootstrap.servers": cluster.addresses[node]})
    assert set(client.list_topics(timeout=60).brokers) == set(cluster.addresses)

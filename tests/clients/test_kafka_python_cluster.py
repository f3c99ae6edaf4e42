"""kafka-python looks at the cluster, its groups and its reassignments; one refused answer fails its
whole call.
"""

import pytest
from kafka.admin import KafkaAdminClient

from tests.support.cluster import Cluster, controller_id


def test_describes_the_cluster(python_admin: KafkaAdminClient, cluster: Cluster) -> None:
    """The client sees all nodes at their addresses, and the controller (K4-X1a)."""
    seen = python_admin.describe_cluster()
    nodes = {each["broker_id"]: f"{each['host']}:{each['port']}" for each in seen["brokers"]}
    assert nodes == dict(cluster.addresses)
    assert seen["controller_id"] == controller_id(cluster)
    assert len(seen["cluster_id"]) == 22
    assert len(seen["authorized_operations"]) == 7


def test_infers_a_recent_broker(python_admin: KafkaAdminClient) -> None:
    """From the versions that are offered the client takes us for a broker that has defaults for
    counts and topic ids.
    """
    assert python_admin._manager.broker_version >= (2, 8)


@pytest.mark.usefixtures("coordinated")
def test_lists_no_groups(python_admin: KafkaAdminClient) -> None:
    """Every node answers, and none has groups; filters are taken."""
    assert python_admin.list_groups() == []
    assert python_admin.list_groups(states_filter=["stable"], types_filter=["classic"]) == []


def test_lists_no_reassignments(python_admin: KafkaAdminClient, topic: str) -> None:
    """Nothing is being moved, also of a topic that does not exist."""
    assert python_admin.list_partition_reassignments() == {}
    assert python_admin.list_partition_reassignments({topic: [0]}) == {}


@pytest.mark.usefixtures("coordinated")
def test_describes_groups_that_do_not_exist(python_admin: KafkaAdminClient, topic: str) -> None:
    """Groups that do not exist are dead, not an error."""
    seen = python_admin.describe_groups([topic, f"{topic}-2"])
    assert {name: each["group_state"] for name, each in seen.items()} == {topic: "Dead", f"{topic}-2": "Dead"}

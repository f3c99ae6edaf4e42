"""The parts that the APIs of groups share: which permissions clients need, and which node
coordinates a group.
"""

from collections.abc import Mapping

from ...admin.permissions import Permission
from ...cluster.coordinators import CoordinatorType, coordinator_of
from ...cluster.entities import Topic
from ...network.serving.context import RequestContext
from ...protocol.acls import AclOperation, AclResourceType
from .controller_port import ControllerPort

DESCRIBE_GROUP = Permission(AclOperation.DESCRIBE, AclResourceType.GROUP, "GROUP_AUTHORIZATION_FAILED for the group")
DESCRIBE_TOPIC = Permission(
    AclOperation.DESCRIBE,
    AclResourceType.TOPIC,
    "TOPIC_AUTHORIZATION_FAILED for its partitions; they are left out if all were asked for",
)


def reached_coordinator(port: ControllerPort, context: RequestContext, group_id: str) -> bool:
    """Whether the node to which the client sent the request coordinates this group."""
    receiver = context.origin.received_node if context.forwarded else port.broker_id
    return coordinator_of(CoordinatorType.GROUP, group_id, port.cache.image.topics) == receiver


def has_partition(topics: Mapping[str, Topic], name: str, partition: int) -> bool:
    """Whether there is such a partition, and its topic is not being deleted."""
    topic = topics.get(name)
    return topic is not None and not topic.marked_for_deletion and topic.partition(partition) is not None

"""The parts that the APIs of groups share: which permissions clients need, and the edits of a
group's offsets, which administrators set through the controller.
"""

from collections.abc import Callable, Mapping
from typing import Any

from immutables import Map

from ...admin.changes import Change
from ...admin.groups import KIND
from ...admin.permissions import Permission
from ...cluster.coordinators import CoordinatorType, coordinator_of
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.groups import Group
from ...cluster.image import Image
from ...cluster.znodes.groups import group_path
from ...network.serving.context import RequestContext
from ...protocol.acls import AclOperation, AclResourceType
from .controller_port import ControllerPort
from .entity_changes import EntityEdit

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


def edit_of(
    group_id: str,
    edit: Callable[[Group | None], Group | None],
    operations: Mapping[str, str | None],
    check: Callable[[Image, Group | None], None] = lambda _image, _after: None,
) -> EntityEdit:
    kinds = {key: "delete" if operand is None else "set" for key, operand in operations.items()}
    return EntityEdit(Change(group_id, KIND, Map(operations), Map(kinds)), group_path(group_id), edit, check)


def refusing(group_id: str, refusal: Refusal, operations: Mapping[str, str | None]) -> EntityEdit:
    def refuse(_group: object) -> Any:
        raise refusal

    return EntityEdit(Change(group_id, KIND, Map(operations), Map()), "", refuse)


def has_partition(topics: Mapping[str, Topic], name: str, partition: int) -> bool:
    """Whether there is such a partition, and its topic is not being deleted."""
    topic = topics.get(name)
    return topic is not None and not topic.marked_for_deletion and topic.partition(partition) is not None

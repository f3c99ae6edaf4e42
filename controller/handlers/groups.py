"""The parts that the APIs of groups share: which node answers for a group, which permissions
clients need, and the edits of a group's offsets.

Rule: groups have no members, since there are no records to read. Their offsets are those that
administrators have set.
"""

from collections.abc import Callable, Mapping
from typing import Any

from immutables import Map

from ...admin.changes import Change
from ...admin.groups import KIND
from ...admin.permissions import Permission
from ...cluster.coordinators import COORDINATED_BY, CoordinatorType, coordinator_of
from ...cluster.entities import Topic
from ...cluster.errors import Refusal
from ...cluster.groups import Group
from ...cluster.image import Image
from ...cluster.znodes.groups import group_path, name_of
from ...network.serving.context import RequestContext
from ...protocol.acls import AclOperation, AclResourceType
from ..broker.view import BrokerView
from .controller_port import ControllerPort
from .entity_changes import EntityEdit

EMPTY, DEAD = "Empty", "Dead"
"""The states of a group without members that exists, and of one that does not."""

DESCRIBE_GROUP = Permission(AclOperation.DESCRIBE, AclResourceType.GROUP, "GROUP_AUTHORIZATION_FAILED for the group")
DESCRIBE_TOPIC = Permission(
    AclOperation.DESCRIBE,
    AclResourceType.TOPIC,
    "TOPIC_AUTHORIZATION_FAILED for its partitions; they are left out if all were asked for",
)


def is_coordinated_by(broker_id: int, topics: Mapping[str, Topic], group_id: str) -> bool:
    """Whether a broker coordinates this group: it leads the group's partition of the offsets'
    topic.
    """
    return coordinator_of(group_id, topics.get(COORDINATED_BY[CoordinatorType.GROUP])) == broker_id


def receiving_node(port: ControllerPort, context: RequestContext) -> int:
    """Return the id of the node to which the client sent the request."""
    return context.origin.received_node if context.forwarded else port.broker_id


def group_at(view: BrokerView, group_id: str) -> Group | None:
    """Return a group that exists, as this node knows it."""
    image = view.cache.image
    group = image.groups.get(name_of(group_id))
    return group if group is not None and group.exists(image.topics) else None


def edit_of(
    group_id: str,
    edit: Callable[[Group | None], Group | None],
    operations: Mapping[str, str | None],
    check: Callable[[Image, Group | None], None] = lambda _image, _after: None,
) -> EntityEdit:
    kinds = {key: "delete" if operand is None else "set" for key, operand in operations.items()}
    return EntityEdit(Change(group_id, KIND, Map(operations), Map(kinds)), group_path(group_id), edit, check)


def refusing(group_id: str, refusal: Refusal, operations: Mapping[str, str | None]) -> EntityEdit:
    """Return an edit that refuses a change of a group."""

    def refuse(_group: object) -> Any:
        raise refusal

    return EntityEdit(Change(group_id, KIND, Map(operations), Map()), "", refuse)


def has_partition(topics: Mapping[str, Topic], name: str, partition: int) -> bool:
    """Whether there is such a partition, and its topic is not being deleted."""
    topic = topics.get(name)
    return topic is not None and not topic.marked_for_deletion and topic.partition(partition) is not None

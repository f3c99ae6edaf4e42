"""The parts that the APIs of groups share: which permissions clients need, and the changes of a
group's offsets.
"""

from collections.abc import Mapping

from immutables import Map

from ..cluster.errors import Refusal
from ..cluster.groups import Group
from ..cluster.image import Image
from ..cluster.znodes.groups import name_of
from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.error_codes import ErrorCode
from .changes import Change
from .permissions import Permission

KIND = "group"
"""The kind of these changes in the audit log."""
READ_GROUP = Permission(AclOperation.READ, AclResourceType.GROUP, "GROUP_AUTHORIZATION_FAILED for each partition")
DELETE_GROUP = Permission(AclOperation.DELETE, AclResourceType.GROUP, "GROUP_AUTHORIZATION_FAILED for the group")
READ_TOPIC = Permission(AclOperation.READ, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for its partitions")


def key_of(topic: str, partition: int) -> str:
    """Return the key of an offset in the audit log."""
    return f"{topic}-{partition}"


def requested(group_id: str, operations: Mapping[str, str | None]) -> Change:
    kinds = {key: "delete" if operand is None else "set" for key, operand in operations.items()}
    return Change(group_id, KIND, Map(operations), Map(kinds))


def existing(image: Image, group_id: str) -> Group:
    """Return a group that has offsets, or what is damaged of one. Raises GROUP_ID_NOT_FOUND."""
    group = image.groups.get(name_of(group_id))
    if group is None or not (group.exists(image.topics) or group.is_damaged):
        raise Refusal(ErrorCode.GROUP_ID_NOT_FOUND)
    return group

"""The parts that the APIs of groups share: which node answers for a group, which permissions
clients need, and the edits of a group's offsets.
"""

from collections.abc import Mapping

from ..protocol.acls import AclOperation, AclResourceType
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
    return Change(group_id, KIND, operations)

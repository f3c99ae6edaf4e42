"""The bit fields of authorized operations in responses (KIP-430): what the client may do with the
cluster, or with a group.
"""

from ...admin.permissions import Permission
from ...network.serving.context import RequestContext
from ...protocol.acls import NO_OPERATIONS, AclResourceType


def cluster_operations(context: RequestContext, describe: Permission, *, asked: bool) -> int:
    """Return what the client may do with the cluster: 0 if the client may not describe it, and
    NO_OPERATIONS if it did not ask.
    """
    if not asked:
        return NO_OPERATIONS
    return context.authorized_operations(AclResourceType.CLUSTER) if context.may(describe) else 0


def group_operations(context: RequestContext, group: str, *, asked: bool) -> int:
    return context.authorized_operations(AclResourceType.GROUP, group) if asked else NO_OPERATIONS

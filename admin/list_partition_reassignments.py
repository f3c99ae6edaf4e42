"""ListPartitionReassignments (46) names the partitions whose replicas are being moved, with the
replicas that they gain and lose.
"""

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from .permissions import Permission
from .spec import Spec

DESCRIBE_CLUSTER = Permission(
    AclOperation.DESCRIBE, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request"
)

SPEC = Spec(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    permissions=(DESCRIBE_CLUSTER,),
    at_controller=True,
)

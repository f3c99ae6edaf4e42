"""AlterPartitionReassignments (45) moves the replicas of partitions to other brokers, or cancels
such moves.
"""

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from .permissions import Permission
from .requested_changes import reassigned_topics
from .spec import Changes, Spec

ALTER_CLUSTER = Permission(AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for the request")

SPEC = Spec(
    key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    at_controller=True,
    permissions=(ALTER_CLUSTER,),
    changes=Changes("alter_partition_reassignments", reassigned_topics),
)

"""UpdateFeatures (57): clusters in ZooKeeper mode have no features that could be finalized, so
every update is refused, at every node.
"""

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from .permissions import Permission
from .spec import Spec

ALTER = Permission(AclOperation.ALTER, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED")

SPEC = Spec(
    key=ApiKey.UPDATE_FEATURES,
    permissions=(ALTER,),
)

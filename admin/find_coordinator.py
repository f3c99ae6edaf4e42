"""FindCoordinator (10) returns the node that leads the partition to which the key hashes."""

from ..protocol.acls import AclOperation, AclResourceType
from ..protocol.api_keys import ApiKey
from ..protocol.messages.find_coordinator import CoordinatorEndpoint
from .permissions import Permission
from .spec import Rows, Spec, called

MANY_KEYS_SINCE, SHARE_SINCE = 4, 6
DESCRIBE_GROUP = Permission(AclOperation.DESCRIBE, AclResourceType.GROUP, "GROUP_AUTHORIZATION_FAILED for the key")
DESCRIBE_TRANSACTIONAL_ID = Permission(
    AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the key"
)

SPEC = Spec(
    key=ApiKey.FIND_COORDINATOR,
    waits_for_update=True,
    permissions=(DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID),
    rows=Rows(
        "coordinators",
        CoordinatorEndpoint,
        {"coordinator_keys": called("key")},
        since=MANY_KEYS_SINCE,
        fixed={"node_id": -1, "host": "", "port": -1},
        default_message=lambda _code: "",
    ),
)

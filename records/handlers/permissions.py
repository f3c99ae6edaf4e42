"""The permissions that several APIs of groups and transactions ask for."""

from ...admin.permissions import Permission
from ...protocol.acls import AclOperation, AclResourceType

READ_GROUP = Permission(AclOperation.READ, AclResourceType.GROUP, "GROUP_AUTHORIZATION_FAILED")
READ_TOPIC = Permission(AclOperation.READ, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for its partitions")
WRITE_TOPIC = Permission(AclOperation.WRITE, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for its partitions")
WRITE_TRANSACTIONAL_ID = Permission(
    AclOperation.WRITE, AclResourceType.TRANSACTIONAL_ID, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
)

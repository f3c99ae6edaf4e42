"""The permissions for which AlterConfigs and IncrementalAlterConfigs ask."""

from ..protocol.acls import AclOperation, AclResourceType
from .permissions import Permission

ALTER_CONFIGS_OF_TOPIC = Permission(
    AclOperation.ALTER_CONFIGS, AclResourceType.TOPIC, "TOPIC_AUTHORIZATION_FAILED for the topic"
)
ALTER_CONFIGS_OF_CLUSTER = Permission(
    AclOperation.ALTER_CONFIGS, AclResourceType.CLUSTER, "CLUSTER_AUTHORIZATION_FAILED for brokers and loggers"
)

"""An administrative client for any Kafka, on trio (KIP-117).

    from minicontroller.client import AdminClient, NewTopic, configure

    async with AdminClient.connect(configure({"bootstrap.servers": "127.0.0.1:9092"})) as admin:
        await admin.create_topic(NewTopic("orders", num_partitions=6))
        print(await admin.list_topics())

`configure` takes the keys of Kafka's AdminClientConfig, and a call about several topics returns a
value or an AdminError for each. docs/client.md has more. Only `connect` loads trio, for which a
shell that completes a command must not wait.
"""

from ..cluster.errors import ConfigurationError
from ..protocol.acls import (
    AccessControlEntry,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from ..protocol.config_resources import ConfigOperation, ResourceType
from ..protocol.error_codes import ErrorCode
from .acls import AclBinding, AclBindingFilter
from .admin_client import AdminClient
from .cluster import BrokerDescription, ClusterDescription
from .configs import AlterConfigOp, ConfigEntry, Resource
from .configuration import Address, ClientConfig, configure, load_client_config
from .errors import AdminError, ClusterUnreachable, Results
from .groups import GroupDescription, GroupListing, OffsetAndMetadata
from .log_dirs import LogDirDescription, Replica, ReplicaLog
from .partitions import PartitionReassignment
from .quotas import ClientQuotaEntity, ClientQuotaFilterComponent
from .records import ListedOffset, OffsetSpec
from .tokens import DelegationToken
from .topic_partition import TopicPartition
from .topics import BROKER_DEFAULT, CreatedTopic, NewTopic, PartitionDescription, TopicDescription, TopicListing
from .users import ScramCredentialInfo, ScramDeletion, ScramUpsertion

__all__ = [
    "BROKER_DEFAULT",
    "AccessControlEntry",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclResourceType",
    "Address",
    "AdminClient",
    "AdminError",
    "AlterConfigOp",
    "BrokerDescription",
    "ClientConfig",
    "ClientQuotaEntity",
    "ClientQuotaFilterComponent",
    "ClusterDescription",
    "ClusterUnreachable",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigurationError",
    "CreatedTopic",
    "DelegationToken",
    "ErrorCode",
    "GroupDescription",
    "GroupListing",
    "ListedOffset",
    "LogDirDescription",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetSpec",
    "PartitionDescription",
    "PartitionReassignment",
    "PatternType",
    "PermissionType",
    "Replica",
    "ReplicaLog",
    "Resource",
    "ResourcePattern",
    "ResourceType",
    "Results",
    "ScramCredentialInfo",
    "ScramDeletion",
    "ScramUpsertion",
    "TopicDescription",
    "TopicListing",
    "TopicPartition",
    "configure",
    "load_client_config",
]

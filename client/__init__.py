"""An administrative client for any Kafka, on trio (KIP-117).

    from minicontroller.client import AdminClient, NewTopic, configure

    async with AdminClient.connect(configure({"bootstrap.servers": "127.0.0.1:9092"})) as admin:
        await admin.create_topic(NewTopic("orders", num_partitions=6))
        print(await admin.list_topics())

`configure` takes the keys of Kafka's AdminClientConfig, and a call about several topics returns a
value or an AdminError for each. docs/client.md has more. AdminClient is imported when it is first
used: a shell that completes a command must not wait for trio.
"""

from typing import TYPE_CHECKING, Any

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
from .configuration import Address, ClientConfig, configure, load_client_config
from .errors import AdminError, ClusterUnreachable
from .model import (
    BROKER_DEFAULT,
    AclBinding,
    AclBindingFilter,
    AlterConfigOp,
    BrokerDescription,
    ClientQuotaEntity,
    ClientQuotaFilterComponent,
    ClusterDescription,
    ConfigEntry,
    CreatedTopic,
    DelegationToken,
    GroupDescription,
    GroupListing,
    ListedOffset,
    LogDirDescription,
    NewTopic,
    OffsetAndMetadata,
    OffsetSpec,
    PartitionDescription,
    PartitionReassignment,
    Replica,
    ReplicaLog,
    Resource,
    Results,
    ScramCredentialInfo,
    ScramDeletion,
    ScramUpsertion,
    TopicDescription,
    TopicListing,
    TopicPartition,
)

if TYPE_CHECKING:
    from .admin_client import AdminClient

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


def __getattr__(name: str) -> Any:
    """Import AdminClient when it is first asked for (PEP 562)."""
    if name != "AdminClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .admin_client import AdminClient

    return AdminClient

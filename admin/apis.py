"""The APIs that every role has to know: those that change the cluster, and three that a gateway
also answers itself.
"""

from collections.abc import Mapping

from ..protocol.api_keys import ApiKey
from . import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    elect_leaders,
    expire_delegation_token,
    find_coordinator,
    incremental_alter_configs,
    list_partition_reassignments,
    offset_commit,
    offset_delete,
    renew_delegation_token,
    update_features,
)
from .spec import Spec

_DECLARED = (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    elect_leaders,
    expire_delegation_token,
    find_coordinator,
    incremental_alter_configs,
    list_partition_reassignments,
    offset_commit,
    offset_delete,
    renew_delegation_token,
    update_features,
)

SPECS: Mapping[ApiKey, Spec] = {module.SPEC.key: module.SPEC for module in _DECLARED}

"""The APIs of a node, by the parts of it that their handlers take. The node advertises them, and a
request of any other API ends the connection.
"""

from collections.abc import Iterator, Sequence
from typing import TypeVarTuple

from ..network.serving.api import ServedApi
from ..network.serving.kept_rows import Fragments, Joined, KeptRows, LatestAnswers
from .handlers import (
    allocate_producer_ids,
    alter_client_quotas,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_delegation_token,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_delegation_token,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    envelope,
    expire_delegation_token,
    find_coordinator,
    incremental_alter_configs,
    init_producer_id,
    leader_and_isr,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    renew_delegation_token,
    sasl_authenticate,
    sasl_handshake,
    stop_replica,
    update_features,
    update_metadata,
    write_txn_markers,
)
from .node.node import Node

Parts = TypeVarTuple("Parts")


def apis_of(node: Node) -> Sequence[ServedApi[()]]:
    """Return the APIs of a node, each bound to the parts that its handler takes."""
    own = (*_reads(node), *_logs(node), *_changes(node), *_between_nodes(node))
    return tuple({api.key: api for api in (*own, *node.data.apis(node.port))}.values())


def _bound(parts: tuple[*Parts], *apis: ServedApi[*Parts]) -> Iterator[ServedApi[()]]:
    return (api.bound(*parts) for api in apis)


def _reads(node: Node) -> Iterator[ServedApi[()]]:
    view = node.view
    yield from _bound((), sasl_handshake.API, sasl_authenticate.API)
    yield from _bound((), consumer_group_describe.API, consumer_group_heartbeat.API)
    yield from _bound((node.cache,), api_versions.API, update_features.API)
    yield from _bound((view,), describe_cluster.API)
    yield from _bound((node.cache, KeptRows[Joined](), Fragments()), describe_acls.API)
    yield from _bound((view, node.auto_creation), metadata.API, find_coordinator.API)
    yield from _bound((view, node.topic_overrides), describe_configs.API)
    yield from _bound((node.security,), describe_user_scram_credentials.API)
    yield from _bound((node.quotas.clients,), describe_client_quotas.API)
    yield from _bound((node.security.tokens,), describe_delegation_token.API)


def _logs(node: Node) -> Iterator[ServedApi[()]]:
    """Yield the APIs of logs, groups and transactions, which ask the node's two ports."""
    view, logs, coordinator = node.view, node.data.logs, node.data.coordinator
    yield from _bound((view, logs, LatestAnswers()), list_offsets.API)
    yield from _bound((view, logs), describe_producers.API, write_txn_markers.API)
    yield from _bound((view, logs, describe_log_dirs.KeptReplicas()), describe_log_dirs.API)
    yield from _bound((node.port, logs), delete_records.API, alter_replica_log_dirs.API)
    yield from _bound((coordinator,), list_groups.API, describe_groups.API, offset_fetch.API, leave_group.API)
    yield from _bound((coordinator,), list_transactions.API, describe_transactions.API)
    yield from _bound((view, coordinator), init_producer_id.API)


def _changes(node: Node) -> Iterator[ServedApi[()]]:
    port, quotas, tokens = node.port, node.quotas.changes, node.security.tokens
    yield from _bound((port, quotas, node.random), create_topics.API, create_partitions.API)
    yield from _bound((port, quotas), delete_topics.API)
    yield from _bound((port,), alter_partition_reassignments.API, elect_leaders.API)
    yield from _bound((port, node.own_configs), alter_configs.API, incremental_alter_configs.API)
    yield from _bound((port,), create_acls.API, delete_acls.API, alter_client_quotas.API)
    yield from _bound((port,), alter_user_scram_credentials.API)
    yield from _bound((port, tokens), create_delegation_token.API, renew_delegation_token.API)
    yield from _bound((port, tokens), expire_delegation_token.API)
    yield from _bound((port,), offset_commit.API, offset_delete.API, delete_groups.API)


def _between_nodes(node: Node) -> Iterator[ServedApi[()]]:
    """Yield the APIs of nodes, and those reads that the active controller answers itself."""
    yield from _bound((node.place,), allocate_producer_ids.API, alter_partition.API, controlled_shutdown.API)
    yield from _bound((node.place,), envelope.API, list_partition_reassignments.API)
    yield from _bound((node.elected,), stop_replica.API)
    yield from _bound((node.view, node.elected), leader_and_isr.API, update_metadata.API)

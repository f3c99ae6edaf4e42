"""The APIs that pass through the gateway, and up to which version.

A version is passed only if it is known that its messages carry no address of a broker, or if the
gateway rewrites them. What is not in the table is hidden from ApiVersions and refused: the APIs
between brokers and controllers, and whatever Kafka may add later. docs/gateway.md says what is
hidden from clients, and why.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ..protocol.api_keys import ApiKey

NEWEST: Mapping[int, int] = MappingProxyType(
    {
        ApiKey.PRODUCE: 13,
        ApiKey.FETCH: 18,
        ApiKey.LIST_OFFSETS: 11,
        ApiKey.METADATA: 12,
        ApiKey.OFFSET_COMMIT: 9,  # version 10 names topics by ids, and rules judge offsets by names
        ApiKey.OFFSET_FETCH: 10,
        ApiKey.FIND_COORDINATOR: 6,
        ApiKey.JOIN_GROUP: 9,
        ApiKey.HEARTBEAT: 4,
        ApiKey.LEAVE_GROUP: 5,
        ApiKey.SYNC_GROUP: 5,
        ApiKey.DESCRIBE_GROUPS: 6,
        ApiKey.LIST_GROUPS: 5,
        ApiKey.SASL_HANDSHAKE: 1,
        ApiKey.API_VERSIONS: 4,  # version 5 names the cluster and the broker that the client expects
        ApiKey.CREATE_TOPICS: 7,
        ApiKey.DELETE_TOPICS: 6,
        ApiKey.DELETE_RECORDS: 2,
        ApiKey.INIT_PRODUCER_ID: 5,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
        ApiKey.ADD_PARTITIONS_TO_TXN: 3,  # brokers use the versions above
        ApiKey.ADD_OFFSETS_TO_TXN: 4,
        ApiKey.END_TXN: 5,
        ApiKey.WRITE_TXN_MARKERS: 2,  # also what an administrator aborts a transaction by
        ApiKey.TXN_OFFSET_COMMIT: 5,  # version 6 names topics by ids, too
        ApiKey.DESCRIBE_ACLS: 3,
        ApiKey.CREATE_ACLS: 3,
        ApiKey.DELETE_ACLS: 3,
        ApiKey.DESCRIBE_CONFIGS: 4,
        ApiKey.ALTER_CONFIGS: 2,
        ApiKey.ALTER_REPLICA_LOG_DIRS: 2,
        ApiKey.DESCRIBE_LOG_DIRS: 5,
        ApiKey.SASL_AUTHENTICATE: 2,
        ApiKey.CREATE_PARTITIONS: 3,
        ApiKey.CREATE_DELEGATION_TOKEN: 3,
        ApiKey.RENEW_DELEGATION_TOKEN: 2,
        ApiKey.EXPIRE_DELEGATION_TOKEN: 2,
        ApiKey.DESCRIBE_DELEGATION_TOKEN: 3,
        ApiKey.DELETE_GROUPS: 2,
        ApiKey.ELECT_LEADERS: 2,
        ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
        ApiKey.OFFSET_DELETE: 0,
        ApiKey.DESCRIBE_CLIENT_QUOTAS: 1,
        ApiKey.ALTER_CLIENT_QUOTAS: 1,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
        ApiKey.DESCRIBE_QUORUM: 1,  # version 2 names the endpoints of the controllers
        ApiKey.UPDATE_FEATURES: 1,
        ApiKey.DESCRIBE_CLUSTER: 1,
        ApiKey.DESCRIBE_PRODUCERS: 0,
        ApiKey.UNREGISTER_BROKER: 0,
        ApiKey.DESCRIBE_TRANSACTIONS: 0,
        ApiKey.LIST_TRANSACTIONS: 2,
        ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
        ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: 0,
        ApiKey.PUSH_TELEMETRY: 0,
        ApiKey.LIST_CLIENT_METRICS_RESOURCES: 1,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: 0,
        ApiKey.SHARE_GROUP_HEARTBEAT: 1,
        ApiKey.SHARE_GROUP_DESCRIBE: 1,
        ApiKey.SHARE_FETCH: 2,
        ApiKey.SHARE_ACKNOWLEDGE: 2,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: 1,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: 0,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: 0,
    }
)
"""The newest version of each API that passes; all older ones do."""

OLDEST: Mapping[int, int] = MappingProxyType(
    {
        ApiKey.SASL_HANDSHAKE: 1,  # after version 0 come bytes without a request around them
        ApiKey.SHARE_GROUP_HEARTBEAT: 1,  # the versions 0 were early access, in Kafka 4.0
        ApiKey.SHARE_GROUP_DESCRIBE: 1,
        ApiKey.SHARE_FETCH: 1,
        ApiKey.SHARE_ACKNOWLEDGE: 1,
    }
)
"""The oldest version of an API that passes, where it is not 0."""

ADVERTISED_SINCE: Mapping[int, int] = MappingProxyType({ApiKey.PRODUCE: 0})
"""The oldest version that is advertised whatever the broker says: old librdkafka takes a Produce
that begins later for one without compression (KAFKA-18659).
"""

NEEDED_BY_FEATURES: Mapping[str, Mapping[int, int]] = MappingProxyType(
    {
        "group.version": {ApiKey.CONSUMER_GROUP_HEARTBEAT: 0, ApiKey.CONSUMER_GROUP_DESCRIBE: 0},
        "transaction.version": {ApiKey.PRODUCE: 12, ApiKey.TXN_OFFSET_COMMIT: 5, ApiKey.END_TXN: 5},
        "share.version": {ApiKey.SHARE_GROUP_HEARTBEAT: 1, ApiKey.SHARE_FETCH: 1, ApiKey.SHARE_ACKNOWLEDGE: 1},
        "streams.version": {ApiKey.STREAMS_GROUP_HEARTBEAT: 0},
    }
)
"""The versions that clients use once the cluster has a feature, by its name."""

LOGIN_APIS = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
DELEGATION_TOKEN_APIS = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    }
)
"""The APIs of tokens with which a client can log in at the brokers, and not at the gateway."""

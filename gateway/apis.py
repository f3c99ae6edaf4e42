"""The APIs that pass through the gateway, each declared once: in which versions, and what
happens to its requests and responses.

A version is passed only if it is known that its messages carry no address of a broker, or if the
gateway rewrites them. An API that changes the cluster passes in the versions that this program
reads, because the gateway may have to judge it. What is not here is hidden from ApiVersions and
refused: the APIs between brokers and controllers, and whatever Kafka may add later. docs/gateway.md
says what is hidden from clients, and why.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from ..admin.apis import SPECS
from ..protocol.api_keys import ApiKey
from ..protocol.registry import KAFKA
from . import addresses, node_endpoints
from .cluster import UpstreamCluster
from .node_endpoints import ResponseTail

Rewrite = Callable[[UpstreamCluster, Any], Awaitable[None]]
"""Puts the gateway's addresses into a response in place."""


class PassedApi(msgspec.Struct, frozen=True, eq=False):
    """An API that passes, and how."""

    key: ApiKey
    newest: int
    oldest: int = 0
    advertised_since: int | None = None
    """The oldest version that is advertised, whatever the broker advertises."""
    is_login: bool = False
    is_forwarded: bool = False
    """Whether brokers of KRaft have the controller answer it (KIP-590)."""
    rewrite: Rewrite | None = None
    """Rewrites a response that names brokers anywhere in it."""
    tails: Mapping[int, ResponseTail] = MappingProxyType({})
    """Where responses name brokers at their end, by version."""


def _declared() -> Iterator[PassedApi]:
    for spec in SPECS.values():
        yield PassedApi(spec.key, KAFKA[spec.key].max_version, is_forwarded=spec.at_controller and spec.in_envelopes)
    yield from (
        PassedApi(
            ApiKey.PRODUCE,
            13,
            advertised_since=0,  # old librdkafka takes a later begin for no compression (KAFKA-18659)
            tails=node_endpoints.PRODUCE,
        ),
        PassedApi(ApiKey.FETCH, 18, tails=node_endpoints.FETCH),
        PassedApi(ApiKey.LIST_OFFSETS, 11),
        PassedApi(ApiKey.METADATA, 12, rewrite=addresses.rewrite_metadata),
        PassedApi(ApiKey.OFFSET_FETCH, 10),
        PassedApi(ApiKey.FIND_COORDINATOR, 6, rewrite=addresses.rewrite_coordinators),
        PassedApi(ApiKey.JOIN_GROUP, 9),
        PassedApi(ApiKey.HEARTBEAT, 4),
        PassedApi(ApiKey.LEAVE_GROUP, 5),
        PassedApi(ApiKey.SYNC_GROUP, 5),
        PassedApi(ApiKey.DESCRIBE_GROUPS, 6),
        PassedApi(ApiKey.LIST_GROUPS, 5),
        # After version 0 come bytes without a request around them.
        PassedApi(ApiKey.SASL_HANDSHAKE, 1, oldest=1, is_login=True),
        PassedApi(ApiKey.API_VERSIONS, 4),  # version 5 names the cluster and the broker that the client expects
        PassedApi(ApiKey.INIT_PRODUCER_ID, 5),
        PassedApi(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4),
        PassedApi(ApiKey.ADD_PARTITIONS_TO_TXN, 3),  # brokers use the versions above
        PassedApi(ApiKey.ADD_OFFSETS_TO_TXN, 4),
        PassedApi(ApiKey.END_TXN, 5),
        PassedApi(ApiKey.WRITE_TXN_MARKERS, 2),  # also what an administrator aborts a transaction by
        PassedApi(ApiKey.TXN_OFFSET_COMMIT, 5),  # version 6 names topics by ids, and rules judge offsets by names
        PassedApi(ApiKey.DESCRIBE_ACLS, 3),
        PassedApi(ApiKey.DESCRIBE_CONFIGS, 4),
        PassedApi(ApiKey.DESCRIBE_LOG_DIRS, 5),
        PassedApi(ApiKey.SASL_AUTHENTICATE, 2, is_login=True),
        PassedApi(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3),
        PassedApi(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1),
        PassedApi(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0),
        PassedApi(ApiKey.DESCRIBE_QUORUM, 1, is_forwarded=True),  # version 2 names the endpoints of the controllers
        PassedApi(ApiKey.UPDATE_FEATURES, 1, is_forwarded=True),
        PassedApi(ApiKey.DESCRIBE_CLUSTER, 1, rewrite=addresses.rewrite_cluster),
        PassedApi(ApiKey.DESCRIBE_PRODUCERS, 0),
        PassedApi(ApiKey.UNREGISTER_BROKER, 0, is_forwarded=True),
        PassedApi(ApiKey.DESCRIBE_TRANSACTIONS, 0),
        PassedApi(ApiKey.LIST_TRANSACTIONS, 2),
        PassedApi(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1),
        PassedApi(ApiKey.CONSUMER_GROUP_DESCRIBE, 1),
        PassedApi(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0),
        PassedApi(ApiKey.PUSH_TELEMETRY, 0),
        PassedApi(ApiKey.LIST_CLIENT_METRICS_RESOURCES, 1),
        PassedApi(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0),
        # The versions 0 of share groups were early access, in Kafka 4.0.
        PassedApi(ApiKey.SHARE_GROUP_HEARTBEAT, 1, oldest=1),
        PassedApi(ApiKey.SHARE_GROUP_DESCRIBE, 1, oldest=1),
        PassedApi(ApiKey.SHARE_FETCH, 2, oldest=1, tails=node_endpoints.SHARE_FETCH),
        PassedApi(ApiKey.SHARE_ACKNOWLEDGE, 2, oldest=1, tails=node_endpoints.SHARE_ACKNOWLEDGE),
        PassedApi(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 1),
        PassedApi(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0),
        PassedApi(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0),
    )


APIS: Mapping[int, PassedApi] = MappingProxyType({api.key: api for api in _declared()})

WITHOUT_DELEGATION_TOKENS: Mapping[int, PassedApi] = MappingProxyType(
    {key: api for key, api in APIS.items() if not api.key.name.endswith("_DELEGATION_TOKEN")}
)
"""The APIs of a gateway that authenticates clients itself: with a token, they could log in at the
brokers, and not here.
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
